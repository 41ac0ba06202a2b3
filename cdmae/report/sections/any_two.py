"""Compare any two systems: a matrix, and a table with the baseline that the reader chooses."""

from __future__ import annotations

import math
from typing import Any

from cdmae import formats
from cdmae.evaluation.significance import Difference
from cdmae.report.columns import SIGNIFICANT, Column, main_column
from cdmae.report.facts import Facts
from cdmae.report.pairwise import average_ranks, every_pair
from cdmae.report.plots import rank_figure
from cdmae.report.sections import Section, colour
from cdmae.report.sections.results import DOUBTFUL, SURE
from cdmae.report.tables import Cell, Table

OPEN, UNSURE, CERTAIN = range(3)  # the test of a pair, as the page's script reads it


def section(facts: Facts) -> Section | None:
    """Show the matrix of the main column, and pass every other column to the page's script."""
    column = main_column(facts)
    if not column or len(facts.systems) < 2:
        return None
    ranks = average_ranks(facts)
    figures = []
    if ranks:
        hues = [colour(facts, name) for name in ranks.systems]
        figures.append(rank_figure(ranks.systems, ranks.ranks, hues, ranks.critical, ranks.groups))
    pairs = every_pair(column)
    values = {
        "facts": facts,
        "column": column,
        "pairs": len(pairs),
        "ranks": ranks,
        "data": {"explore": choices(facts, column)},
    }
    return Section("compare", values, [matrix(column, pairs)], figures)


def matrix(column: Column, pairs: dict[tuple[str, str], Difference]) -> Table:
    """Make a matrix of differences in points, row minus column, with the best systems first."""
    names = [name for name in column.facts.systems if not math.isnan(column.value(name))]
    names.sort(key=column.value, reverse=True)
    body = []
    for place, name in enumerate(names, 1):
        cells = [_cell(column, name, other, pairs) for other in names]
        body.append([f"{place} {name}", column.cell(name), *cells])
    head = [str(place) for place in range(1, len(names) + 1)]
    caption = f"Every pair on {column.target}: the row’s {column.unit} minus the column’s"
    return Table("pairs", caption, ["system", column.unit, *head], body)


def _cell(column: Column, name: str, other: str, pairs: dict[tuple[str, str], Difference]) -> Cell:
    turned = (name, other) not in pairs
    gap = pairs.get((other, name) if turned else (name, other))
    if gap is None:
        return Cell(formats.NONE if name != other else "")
    difference = -gap.difference if turned else gap.difference
    certainty = _certainty(gap)
    marks = {OPEN: {}, UNSURE: DOUBTFUL, CERTAIN: SURE}[certainty]
    note = f"{name} minus {other}: {formats.signed(difference)}, {formats.probability(gap.p)}"
    mark = marks.get(difference > 0, "")
    return Cell(formats.signed(difference), 100 * difference, mark=mark, note=note)


def _certainty(gap: Difference) -> int:
    if gap.p >= SIGNIFICANT:
        return OPEN
    return CERTAIN if gap.p_with_seeds < SIGNIFICANT else UNSURE


def choices(facts: Facts, main: Column) -> dict[str, Any]:
    """Gather all targets and measures for the page's script.

    means: points with four decimals, one per system, or null. tests: one entry per pair, in the
    order of `itertools.combinations`, or null for a pair without a test. An entry has the
    half-width of the interval in hundredths of a point, p in thousandths, and the certainty.
    """
    columns = []
    for target in facts.targets:
        for measure in facts.measures_of(target):
            column = Column.of(facts, target, measure)
            columns.append(_choice(column))
    return {
        "systems": facts.systems,
        "baseline": facts.baseline or facts.bm25 or facts.systems[0],
        "target": str(main.target),
        "measure": main.unit,
        "columns": columns,
    }


def _choice(column: Column) -> dict[str, Any]:
    facts = column.facts
    means = [column.value(name) for name in facts.systems]
    pairs = every_pair(column)
    tests: list[Any] = []
    for index, first in enumerate(facts.systems):
        for second in facts.systems[index + 1 :]:
            gap = pairs.get((first, second))
            if gap is None or not gap.has_interval:
                tests.append(0)
                continue
            half = round(1e4 * gap.half_width)
            tests.append([half, math.ceil(1000 * gap.p - 0.5), _certainty(gap)])
    return {
        "target": str(column.target),
        "measure": column.unit,
        "means": [None if math.isnan(mean) else round(100 * mean, 4) for mean in means],
        "tests": tests,
    }
