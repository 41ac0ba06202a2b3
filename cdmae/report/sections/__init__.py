"""The sections of the page: one file each, with ``section(facts) -> Section | None`` (None where nothing was run)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cdmae import formats
from cdmae.report.charts import Row
from cdmae.report.comparisons import noise, pooled
from cdmae.report.facts import Difference, Facts, Target
from cdmae.report.figures import Figure
from cdmae.report.markup import Markup, tag
from cdmae.report.palette import assign
from cdmae.report.tables import Table

UP, DOWN = "\N{BLACK UP-POINTING TRIANGLE}", "\N{BLACK DOWN-POINTING TRIANGLE}"
GREY = 2
NOISE_AXIS = "points, with the 95 % interval; grey: noise of one seed"


@dataclass(frozen=True)
class Section:
    """A part of the page, and the tables and figures that are written as files too; `short` is its name in links."""

    id: str
    title: str
    short: str
    body: Markup
    tables: Sequence[Table] = ()
    figures: Sequence[Figure] = ()


def panels(figures: Sequence[Figure]) -> Markup:
    """Figures beside each other, as many as there is room for."""
    class_ = "panels few" if len(figures) == 2 else "panels"
    return tag("div", [figure.html() for figure in figures], class_=class_) if figures else Markup("")


def paragraphs(*texts: Markup | str | None) -> Markup:
    """One paragraph for each text."""
    return Markup("".join(tag("p", text) for text in texts if text))


def colour(facts: Facts, system: str) -> int:
    """The colour of a system: its encoder's; grey for what is not trained here."""
    encoder = facts.entries("systems").get(system, {}).get("encoder", "")
    return assign(facts.entries("encoders")).get(encoder, GREY)


def in_domain(facts: Facts) -> list[Target]:
    """The targets that are not zero-shot."""
    return [target for target in facts.targets if not facts.zero_shot(target)]


def zero_shot_sets(facts: Facts) -> dict[str, list[Target]]:
    """The zero-shot targets by the name of their column; CQADupStack is the mean of its forums, as in BEIR."""
    sets: dict[str, list[Target]] = {}
    splits = {target.split for target in facts.targets if facts.zero_shot(target)}
    for target in facts.targets:
        if facts.zero_shot(target):
            forum = target.collection.startswith("cqadupstack-")
            name = "cqadupstack" if forum else target.collection if len(splits) == 1 else str(target)
            sets.setdefault(name, []).append(target)
    return sets


def set_difference(facts: Facts, a: str, b: str, targets: Sequence[Target]) -> Difference | None:
    """System `a` minus system `b` over a set of targets; None unless both were measured on all."""
    found = [facts.difference(a, b, target, facts.main_measure(target)) for target in targets]
    if not found or None in found:
        return None
    return found[0] if len(found) == 1 else pooled([each for each in found if each])


def difference_row(label: str, found: Difference, colour_: int, band: float = 0.0) -> Row:
    """A row of a figure of differences, in points, with the band of noise around zero."""
    interval = (100 * found.low, 100 * found.difference, 100 * found.high)
    return Row(label, formats.signed(found.difference), interval=interval, band=100 * band, colour=colour_)


def set_noise(facts: Facts, targets: Sequence[Target]) -> float:
    """The noise band of a mean over targets: the mean of theirs, one seed serving them all."""
    return sum(noise(facts, target, facts.main_measure(target)) for target in targets) / len(targets)


def bm25(facts: Facts) -> str:
    """The first BM25 system, or nothing."""
    systems = facts.entries("systems")
    return next((name for name in facts.systems if systems.get(name, {}).get("kind") == "bm25"), "")


def main_target(facts: Facts) -> Target | None:
    """What the first screen speaks of: the first in-domain target."""
    return next(iter([*in_domain(facts), *facts.targets]), None)
