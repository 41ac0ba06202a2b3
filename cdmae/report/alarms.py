"""List what went wrong in a run: the first lines of the page."""

from __future__ import annotations

from typing import NamedTuple

import pandas as pd

from cdmae.config.kinds import TEACHERS
from cdmae.formats import listed
from cdmae.report import columns
from cdmae.report.columns import Column
from cdmae.report.comparisons import Pair, tested
from cdmae.report.facts import Facts
from cdmae.report.notation import percent, points, probability

CAUSES = (
    "Usual causes: a learning rate or a number of steps that suits random weights, not a finished "
    "model; a pooling, similarity, temperature or prompt other than in the checkpoint’s own "
    "training; a pre-training that replaces the contrastive one; too few labels; judged passages "
    "that are not the only right ones, so that hard negatives are often right answers."
)
JUDGED = "Judged@10"
LESS_JUDGED = 0.1  # a difference in the share of judged passages that decides between systems
LEAST_SAVED = 0.1  # nats: below, a decoder has hardly begun to use the passage's vector


class Alarm(NamedTuple):
    """A system or an encoder, what is wrong with it, and perhaps the usual causes."""

    name: str
    words: str
    causes: str = ""


def alarms(facts: Facts) -> list[Alarm]:
    """List the alarms of the run."""
    column = columns.reported(facts)
    worse = worse_than_input(facts, column) if column else []
    return noted(facts) + unread_vectors(facts) + worse + unjudged(facts)


def noted(facts: Facts) -> list[Alarm]:
    """List the notes of the trainings, such as a collapse."""
    found = []
    for name, training in {**facts.encoders, **facts.trained}.items():
        for note in training.about.get("notes", []):
            found.append(Alarm(f"{name}:", f"{note}.{_taught(facts, name)}"))
    return found


def unread_vectors(facts: Facts) -> list[Alarm]:
    """List the encoders whose pre-training ended before the decoder used the passage's vector."""
    found = []
    for name, training in facts.encoders.items():
        last = {quantity: value for quantity, _, value in training.points}
        if "true" in last and last["shuffled"] - last["true"] < LEAST_SAVED:
            saved = max(0.0, last["shuffled"] - last["true"])
            words = (
                "pre-training ended before the decoder used the passage’s vector: the vector of "
                f"another passage raises its loss by {saved:.2f} nats. So far the encoder has "
                "learnt from its own loss alone; raise steps."
            )
            found.append(Alarm(f"{name}:", words))
    return found


def worse_than_input(facts: Facts, column: Column) -> list[Alarm]:
    """List the systems that are significantly worse than the system from which they were made.

    Of a reranker, this is the run that it reorders; of a retriever, its initial checkpoint, if that
    was measured as a system of kind external.
    """
    models = {facts.entry(name).model: name for name in facts.systems if facts.entry(name).model}
    found = []
    for name in facts.systems:
        entry = facts.entry(name)
        other = models.get(_checkpoint(facts, entry.encoder), "") if entry.encoder else ""
        what = "its initial checkpoint as published"
        if entry.kind == "reranker":
            (other,) = entry.parts()
            what = "the run that it reorders"
        gap = tested(facts, column, Pair(name, other)) if other else None
        if gap and gap.verdict == "worse":
            words = (
                f"scores {points(-gap.difference)} points below {other}, {what} "
                f"({probability(gap.p)}): use {other} instead.{_taught(facts, name)}"
            )
            found.append(Alarm(name, words, CAUSES if entry.kind == "retriever" else ""))
    return found


def unjudged(facts: Facts) -> list[Alarm]:
    """List the systems that found more unjudged passages than others, where a pool was judged."""
    found = []
    for target in facts.targets:
        if facts.config.collections[target.collection].source == "queries":
            shares = {}
            for name in facts.systems:
                values = facts.values.get((name, target, JUDGED), pd.DataFrame())
                shares[name] = values.mean(axis=None)
            highest = max(shares.values())
            for name, share in shares.items():
                if share < highest - LESS_JUDGED:
                    words = (
                        f"has only {percent(share)} of its best ten passages on {target} judged, "
                        f"other systems up to {percent(highest)}, so its scores are too low: "
                        "judge its passages, too, with ./run serve --judge."
                    )
                    found.append(Alarm(name, words))
    return found


def _checkpoint(facts: Facts, encoder: str) -> str:
    """Return the checkpoint from which an encoder starts; "" for random weights."""
    start = facts.config.encoders[encoder].start
    return facts.config.starts[start].checkpoint


def _taught(facts: Facts, name: str) -> str:
    """Return a sentence about the students of a system; "" without any."""
    students = []
    for other, system in facts.config.systems.items():
        if name in [getattr(system, key) for key in TEACHERS]:
            students.append(other)
    return f" It taught {listed(students)}." if students else ""
