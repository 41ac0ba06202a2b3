"""The sections of the page: functions of the facts that return a `Section`, or None where nothing was run.

A section gathers numbers, tables and figures; the template of its name says them in words.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from statistics import fmean, stdev
from typing import Any

from cdmae import formats
from cdmae.report.charts import Figure, Row, rows
from cdmae.report.comparisons import noise, pooled
from cdmae.report.facts import Difference, Facts, Spread, Target
from cdmae.report.tables import Cell, Table
from cdmae.report.templates import TemplateModule, fill

SERIES, GREY = 8, 2  # colours of lines, s0 to s7, and the one of what is not trained here
MOST_SETS = 4  # zero-shot collections that are listed one by one beside the others
LONG = 12  # rows beyond which tables that few look into are folded

Sets = Sequence[Sequence[Target]]  # the mean over the sets of the means over their targets: forums of one collection


@dataclass
class Section:
    """A part of the page. ``<id>.html.j2`` says its `values`; tables and figures are written as files too.

    A table without rows and a figure that is None are left out.
    """

    id: str
    values: Mapping[str, Any] = field(default_factory=dict)
    tables: Sequence[Table] = ()
    figures: Sequence[Figure | None] = ()

    def __post_init__(self) -> None:
        self.tables = [table for table in self.tables if table.rows]
        self.figures = [figure for figure in self.figures if figure]

    @cached_property
    def text(self) -> TemplateModule:
        """Fill its template, which sets a `title`, and `short` where links have another name for it."""
        return fill(f"{self.id}.html.j2", tables=self.tables, figures=self.figures, **self.values)


def colour(facts: Facts, system: str) -> int:
    """Choose the colour of a system: its encoder's; grey for what is not trained here."""
    return encoder_colour(facts, facts.entries("systems").get(system, {}).get("encoder", ""))


def encoder_colour(facts: Facts, encoder: str) -> int:
    """Choose the colour of an encoder: the first that masks by importance has the first, the first other the second.

    The first that is not pre-trained has the third, which is grey.
    """
    kinds = {
        name: GREY if entry.get("objective") == "none" else int(entry.get("decoder_masking") != "importance")
        for name, entry in facts.entries("encoders").items()
    }
    chosen = {kind: name for name, kind in reversed(kinds.items())}  # the first of each kind
    others = [name for name in kinds if name not in chosen.values()]
    places = {name: kind for kind, name in chosen.items()}
    places |= {name: 3 + place % (SERIES - 3) for place, name in enumerate(others)}
    return places.get(encoder, GREY)


def in_domain(facts: Facts) -> list[Target]:
    """List the targets that are not zero-shot."""
    return [target for target in facts.targets if not facts.zero_shot(target)]


def main_target(facts: Facts) -> Target | None:
    """Choose what the first screen speaks of: the first in-domain target."""
    return next(iter([*in_domain(facts), *facts.targets]), None)


def zero_shot_sets(facts: Facts) -> dict[str, list[Target]]:
    """Map the name of a column to its zero-shot targets; CQADupStack is the mean of its forums, as in BEIR."""
    sets: dict[str, list[Target]] = {}
    targets = [target for target in facts.targets if facts.zero_shot(target)]
    one_split = len({target.split for target in targets}) == 1
    for target in targets:
        forum = target.collection.startswith("cqadupstack-")
        name = "cqadupstack" if forum else target.collection if one_split else str(target)
        sets.setdefault(name, []).append(target)
    return sets


def columns(facts: Facts) -> dict[str, Sets]:
    """Name everything that was measured on; many zero-shot collections are one mean."""
    named: dict[str, Sets] = {str(target): [[target]] for target in in_domain(facts)}
    others = zero_shot_sets(facts)
    if len(others) > MOST_SETS:
        return named | {f"mean of {len(others)} collections, zero-shot": list(others.values())}
    return named | {f"{name}, zero-shot": [targets] for name, targets in others.items()}


def main_measure(facts: Facts, sets: Sets) -> str:
    """Choose the measure that stands for sets of targets."""
    return facts.main_measure(sets[0][0])


def mean_value(facts: Facts, system: str, sets: Sets, measure: str) -> float:
    """Average over the sets the means over their targets; nan unless all were measured."""
    return fmean(fmean(facts.value(system, target, measure) for target in targets) for targets in sets)


def mean_spread(facts: Facts, system: str, sets: Sets, measure: str) -> Spread | None:
    """Tell how far apart the seeds are in that mean, in points; None if trained once, or not measured on all."""
    by_seed = [[facts.by_seed(system, target, measure) for target in targets] for targets in sets]
    seeds = min(len(values) for targets in by_seed for values in targets)
    means = [fmean(fmean(values[seed] for values in targets) for targets in by_seed) for seed in range(seeds)]
    return Spread(100 * stdev(means), seeds) if seeds > 1 else None


def mean_difference(facts: Facts, a: str, b: str, sets: Sets) -> Difference | None:
    """Subtract system `b` from system `a`, averaged in the same way; None unless both were measured on all."""
    by_set = [[facts.difference(a, b, target, facts.main_measure(target)) for target in targets] for targets in sets]
    if not by_set or any(None in differences for differences in by_set):
        return None
    return pooled([pooled(differences) for differences in by_set])


def mean_noise(facts: Facts, sets: Sets, measure: str = "") -> float:
    """Average the noise bands, of `measure` or the main ones: one seed serves all targets."""
    return fmean(noise(facts, target, measure or facts.main_measure(target)) for targets in sets for target in targets)


def value_cell(value: float, *, mark: str = "", note: str = "", spread: Spread | None = None) -> Cell:
    """Show a measure in points, with its spread over seeds in points; a dash where it is nan."""
    return Cell(formats.points(value), 100 * value if value == value else None, mark=mark, note=note, spread=spread)


def system_cell(facts: Facts, system: str, sets: Sets, measure: str, *, mark: str = "", note: str = "") -> Cell:
    """Show the mean of a system over sets of targets, with its spread over seeds."""
    spread = mean_spread(facts, system, sets, measure)
    return value_cell(mean_value(facts, system, sets, measure), mark=mark, note=note, spread=spread)


def difference_cells(gap: Difference | None) -> list[Cell]:
    """Show the difference in points, its interval and its p-value; dashes where there is none."""
    if gap is None:
        return [Cell(formats.NONE)] * 3
    p = formats.probability(gap.p).removeprefix("p ").removeprefix("= ")
    interval = Cell(formats.interval(gap.low, gap.high), f"{100 * gap.low:.6g} to {100 * gap.high:.6g}")
    return [Cell(formats.signed(gap.difference), 100 * gap.difference), interval, Cell(p, gap.p)]


def difference_figure(
    facts: Facts, name: str, title: str, pairs: Iterable[tuple[str, str, str, Sets]], *, beside: bool = False
) -> Figure | None:
    """Draw (label, system, reference, sets): their mean differences in points; None where there is none."""
    entries = []
    for label, system, reference, sets in pairs:
        if gap := mean_difference(facts, system, reference, sets):
            interval = (100 * gap.low, 100 * gap.difference, 100 * gap.high)
            shown, band, hue = formats.signed(gap.difference), 100 * mean_noise(facts, sets), colour(facts, system)
            entries.append(Row(label, shown, interval=interval, band=band, colour=hue))
    axis = "points, with the 95 % interval; grey: noise of one seed"
    return rows(name, title, entries, axis=axis, beside=beside)


def bm25(facts: Facts) -> str:
    """Name the first BM25 system, or nothing."""
    systems = facts.entries("systems")
    return next((name for name in facts.systems if systems.get(name, {}).get("kind") == "bm25"), "")


def seeds(facts: Facts) -> str:
    """Name the seeds: ``seed 42``, or ``seeds 42, 43 and 44``."""
    return f"{'seeds' if len(facts.seeds) > 1 else 'seed'} {formats.listed([str(seed) for seed in facts.seeds])}"
