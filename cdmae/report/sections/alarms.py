"""Make the first lines of the page: what went wrong in the run."""

from __future__ import annotations

from typing import NamedTuple

from cdmae import formats
from cdmae.config.kinds import TEACHERS
from cdmae.report.columns import Column, main_column
from cdmae.report.comparisons import retrievers
from cdmae.report.facts import Facts
from cdmae.report.sections import Section
from cdmae.report.sections.insight import audit, percent

CAUSES = (
    "Usual causes: a learning rate or a number of steps that suits random weights, not a finished "
    "model; a pooling, similarity, temperature or prompt other than in the checkpoint’s own "
    "training; a pre-training that replaces the contrastive one; too few labels; judged passages "
    "that are not the only right ones, so that hard negatives are often right answers."
)


class Alarm(NamedTuple):
    """A system or an encoder, and what is wrong with it, in a sentence or more."""

    name: str
    words: str


def section(facts: Facts) -> Section | None:
    """List the alarms of the run, if there are any."""
    found = [*noted(facts), *misled(facts)]
    column = main_column(facts)
    if column:
        found += [*worse_than_input(column), *worse_than_checkpoint(column)]
    return Section("alarms", {"alarms": found}) if found else None


def noted(facts: Facts) -> list[Alarm]:
    """List the notes of the trainings, such as a collapse."""
    return [
        Alarm(name, f"{note}.{_taught(facts, name)}")
        for name, training in {**facts.encoders, **facts.trained}.items()
        for note in training.about.get("notes", [])
    ]


def worse_than_input(column: Column) -> list[Alarm]:
    """List the rerankers that rank significantly worse than the run that they reorder."""
    facts = column.facts
    found = []
    for name in facts.systems:
        run = facts.system(name).get("reranks", "")
        gap = column.difference(name, run) if run else None
        if gap and gap.verdict == "worse":
            points = formats.points(abs(gap.difference))
            found.append(
                Alarm(
                    name,
                    f"ranks {points} points below {run}, the run that it reorders "
                    f"({formats.probability(gap.p)}): use {run} without it.{_taught(facts, name)}",
                )
            )
    return found


def misled(facts: Facts) -> list[Alarm]:
    """List the teachers that prefer random negatives to the judged passage as often as mined ones.

    A random passage is hardly ever a right answer, and a mined one often resembles one. Scores that
    do not show it carry little about relevance.
    """
    found = []
    for student, shares in audit(facts).items():
        if shares.random >= shares.mined:
            teacher = facts.system(student).get("teacher", "")
            found.append(
                Alarm(
                    teacher,
                    f"scores {percent(shares.random)} of the random negatives of {student} above "
                    f"the judged passage, and {percent(shares.mined)} of the mined ones: random "
                    "passages are hardly ever right answers, so its scores say little about "
                    "relevance.",
                )
            )
    return found


def worse_than_checkpoint(column: Column) -> list[Alarm]:
    """List the retrievers that are significantly worse than their initial checkpoint.

    The checkpoint must be measured as a system of kind external.
    """
    facts = column.facts
    published = {
        facts.system(name)["model"]: name
        for name in facts.systems
        if facts.system(name).get("model")
    }
    found = []
    for name in retrievers(facts):
        encoder = facts.entries("encoders").get(facts.encoder_of(name), {})
        start = facts.entries("starts").get(encoder.get("start", ""), {})
        checkpoint = published.get(start.get("checkpoint") or None, "")
        gap = column.difference(name, checkpoint) if checkpoint else None
        if gap and gap.verdict == "worse":
            found.append(
                Alarm(
                    name,
                    f"is worse than its initial checkpoint ({formats.probability(gap.p)}): "
                    f"{checkpoint}, as it was published, reaches {formats.points(gap.b)}; after "
                    f"the training here it reaches {formats.points(gap.a)}. {CAUSES}",
                )
            )
    return found


def _taught(facts: Facts, name: str) -> str:
    """Return a sentence about the students of a system; "" without any."""
    entries = facts.entries("systems").items()
    students = [other for other, entry in entries if name in [entry.get(key) for key in TEACHERS]]
    return f" It taught {formats.listed(students)}." if students else ""
