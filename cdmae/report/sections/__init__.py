"""The sections of the page: one file each, with ``section(facts) -> Section | None`` (None where nothing was run)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from cdmae import formats
from cdmae.report.charts import Row
from cdmae.report.comparisons import noise, pooled
from cdmae.report.facts import Difference, Facts, Target
from cdmae.report.figures import Figure
from cdmae.report.markup import Markup, tag
from cdmae.report.palette import assign
from cdmae.report.tables import Cell, Table

GREY = 2
MOST_SETS = 4  # zero-shot collections that are listed one by one beside the others
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
    class_ = "panels few" if len(figures) in (2, 4) else "panels"
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


def columns(facts: Facts) -> dict[str, list[list[Target]]]:
    """Everything that was measured on, by name: sets of targets whose means count alike, most often one of one."""
    found = {str(target): [[target]] for target in in_domain(facts)}
    others = zero_shot_sets(facts)
    if len(others) > MOST_SETS:
        return found | {f"mean of {len(others)} collections, zero-shot": list(others.values())}
    return found | {f"{name}, zero-shot": [targets] for name, targets in others.items()}


def main_measure(facts: Facts, sets: Sequence[Sequence[Target]]) -> str:
    """The measure that stands for sets of targets."""
    return facts.main_measure(sets[0][0])


def mean_value(facts: Facts, system: str, sets: Sequence[Sequence[Target]], measure: str) -> float:
    """The mean over the sets of the mean over their targets; nan unless all were measured."""
    means = [math.fsum(facts.value(system, target, measure) for target in each) / len(each) for each in sets]
    return math.fsum(means) / len(means)


def mean_difference(facts: Facts, a: str, b: str, sets: Sequence[Sequence[Target]]) -> Difference | None:
    """System `a` minus system `b`, averaged in the same way; None unless both were measured on all."""
    by_set = []
    for targets in sets:
        found = [facts.difference(a, b, target, facts.main_measure(target)) for target in targets]
        if None in found:
            return None
        by_set.append(pooled([each for each in found if each]))
    return pooled(by_set) if by_set else None


def mean_noise(facts: Facts, sets: Sequence[Sequence[Target]]) -> float:
    """The noise band of such a mean: the mean of theirs, one seed serving them all."""
    bands = [noise(facts, target, facts.main_measure(target)) for each in sets for target in each]
    return math.fsum(bands) / len(bands)


def value_cell(value: float, *, mark: str = "", note: str = "") -> Cell:
    """A measure in points; a dash where it is nan."""
    return Cell(formats.points(value), 100 * value if value == value else None, mark=mark, note=note)


def difference_cells(found: Difference | None) -> list[Cell]:
    """The difference in points, its interval and its p-value; dashes where there is none."""
    if found is None:
        return [Cell(formats.NONE)] * 3
    p = formats.probability(found.p).removeprefix("p ").removeprefix("= ")
    interval = Cell(formats.interval(found.low, found.high), f"{100 * found.low:.6g} to {100 * found.high:.6g}")
    return [Cell(formats.signed(found.difference), 100 * found.difference), interval, Cell(p, found.p)]


def difference_row(label: str, found: Difference, colour_: int, band: float = 0.0) -> Row:
    """A row of a figure of differences, in points, with the band of noise around zero."""
    interval = (100 * found.low, 100 * found.difference, 100 * found.high)
    return Row(label, formats.signed(found.difference), interval=interval, band=100 * band, colour=colour_)


def bm25(facts: Facts) -> str:
    """The first BM25 system, or nothing."""
    systems = facts.entries("systems")
    return next((name for name in facts.systems if systems.get(name, {}).get("kind") == "bm25"), "")


def main_target(facts: Facts) -> Target | None:
    """What the first screen speaks of: the first in-domain target."""
    return next(iter([*in_domain(facts), *facts.targets]), None)
