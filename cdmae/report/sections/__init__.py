"""The sections of the page: one file each, with ``section(facts) -> Section | None`` (None where nothing was run)."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from cdmae import formats
from cdmae.report.charts import Row
from cdmae.report.comparisons import noise, pooled
from cdmae.report.facts import Difference, Facts, Spread, Target
from cdmae.report.figures import Figure
from cdmae.report.markup import Markup, tag
from cdmae.report.palette import assign
from cdmae.report.tables import Cell, Table

GREY = 2
MOST_SETS = 4  # zero-shot collections that are listed one by one beside the others
LONG = 12  # rows beyond which tables that few look into are folded
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


def folded(table: Table) -> Markup:
    """A table behind its caption."""
    return tag("details", tag("summary", f"{table.caption} ({len(table.rows)})"), table.html())


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


def mean_spread(facts: Facts, system: str, sets: Sequence[Sequence[Target]], measure: str) -> Spread | None:
    """How far apart the seeds of a system are in that mean, in points; None if it was trained once, or not on all."""
    by_seed = _means(_means(facts.by_seed(system, target, measure) for target in each) for each in sets)
    return Spread(100 * statistics.stdev(by_seed), len(by_seed)) if len(by_seed) > 1 else None


def _means(several: Iterable[Iterable[float]]) -> list[float]:
    """Their means place by place, as many as the shortest has."""
    return [statistics.fmean(each) for each in zip(*several, strict=False)]


def mean_difference(facts: Facts, a: str, b: str, sets: Sequence[Sequence[Target]]) -> Difference | None:
    """System `a` minus system `b`, averaged in the same way; None unless both were measured on all."""
    by_set = []
    for targets in sets:
        found = [facts.difference(a, b, target, facts.main_measure(target)) for target in targets]
        if None in found:
            return None
        by_set.append(pooled([each for each in found if each]))
    return pooled(by_set) if by_set else None


def mean_noise(facts: Facts, sets: Sequence[Sequence[Target]], measure: str = "") -> float:
    """The noise band of such a mean, of `measure` or the main ones: the mean of theirs, one seed serving them all."""
    bands = [noise(facts, target, measure or facts.main_measure(target)) for each in sets for target in each]
    return math.fsum(bands) / len(bands)


def value_cell(value: float, *, mark: str = "", note: str = "", spread: Spread | None = None) -> Cell:
    """A measure in points, with its spread over seeds in points; a dash where it is nan."""
    return Cell(formats.points(value), 100 * value if value == value else None, mark=mark, note=note, spread=spread)


def system_cell(facts: Facts, system: str, target: Target, measure: str, *, mark: str = "", note: str = "") -> Cell:
    """The mean of a system on a target, with its spread over seeds."""
    spread = mean_spread(facts, system, [[target]], measure)
    return value_cell(facts.value(system, target, measure), mark=mark, note=note, spread=spread)


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


def seeds(facts: Facts) -> str:
    """``seed 42``, or ``seeds 42, 43 and 44``."""
    return f"{'seeds' if len(facts.seeds) > 1 else 'seed'} {formats.listed([str(seed) for seed in facts.seeds])}"


def main_target(facts: Facts) -> Target | None:
    """What the first screen speaks of: the first in-domain target."""
    return next(iter([*in_domain(facts), *facts.targets]), None)
