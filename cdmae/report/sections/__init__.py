"""Make the page's sections: functions of the facts that return a `Section`, or None without data.

A section gathers numbers, tables and figures; the template of the same name has the words.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from cdmae import formats
from cdmae.evaluation.significance import Difference
from cdmae.report.charts import Figure, Row, rows
from cdmae.report.columns import Column
from cdmae.report.facts import Facts
from cdmae.report.tables import Cell, Table
from cdmae.report.templates import TemplateModule, fill

# the wording of the verdicts of `Difference.verdict`
READINGS = {"better": "better", "worse": "worse", "open": "undecided"}
ONCE = " (one training)"  # follows a verdict about systems that were trained once
SERIES = 8  # colours of lines, s0 to s7
GREY = 2  # the colour of systems that are not trained here
UNKNOWN = "too few queries"  # replaces an interval where the queries allow no inference
INTERVAL = "interval, Holm"  # 95 % and wider: it excludes 0 exactly where "p, Holm" is below .05
LONG = 12  # rows beyond which secondary tables are folded


@dataclass
class Section:
    """A section of the page; its tables and figures are also written as files.

    The template ``<id>.html.j2`` has the text around its `values`. Empty tables and missing figures
    are omitted.
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
        """Fill the template, which sets a `title`, and also a `short` title if links need one."""
        return fill(f"{self.id}.html.j2", tables=self.tables, figures=self.figures, **self.values)


def colour(facts: Facts, system: str) -> int:
    """Choose the colour of a system: its encoder's colour, or grey if it was not trained here."""
    return encoder_colour(facts, facts.encoder_of(system))


def encoder_colour(facts: Facts, encoder: str) -> int:
    """Choose the colour of an encoder.

    The first encoder with importance-aware masks has the first colour, and the first encoder with
    other masks the second. The first encoder without pre-training has the third colour, grey.
    """
    first_of = ["", "", ""]  # encoder by colour
    others = []
    for name, entry in facts.entries("encoders").items():
        kind = int(entry.get("decoder_masking") != "importance")
        if entry.get("objective") == "none":
            kind = GREY
        if first_of[kind]:
            others.append(name)
        else:
            first_of[kind] = name
    if encoder in others:
        return len(first_of) + others.index(encoder) % (SERIES - len(first_of))
    return first_of.index(encoder) if encoder and encoder in first_of else GREY


def difference_cells(gap: Difference | None) -> list[Cell]:
    """Make the cells of a difference: points, interval and p-value; dashes for None."""
    if gap is None:
        return [Cell(formats.NONE)] * 3
    difference = Cell(formats.signed(gap.difference), 100 * gap.difference)
    if not gap.has_interval:
        return [difference, Cell(UNKNOWN), Cell(formats.NONE)]
    bounds = f"{100 * gap.low:.6g} to {100 * gap.high:.6g}"
    p = formats.probability(gap.p).removeprefix("p ").removeprefix("= ")
    return [difference, Cell(formats.interval(gap.low, gap.high), bounds), Cell(p, gap.p)]


def reading(gap: Difference) -> str:
    """Put a verdict into words; a significant one says if another seed may change it."""
    once = gap.significant and gap.seeds == 1
    return READINGS[gap.verdict] + (ONCE if once else "")


def comparison_table(
    name: str,
    system: str,
    reference: str,
    columns: Sequence[Column],
    planned: Column | None = None,
) -> Table:
    """Tabulate two systems on several collections: both means and their difference.

    planned: the column of a comparison that stands alone, without Holm's correction.
    """
    body = []
    for column in columns:
        alone = column is planned
        gap = (column.alone if alone else column.difference)(system, reference)
        if gap:
            both = [_compared_cell(column, system, gap.a), _compared_cell(column, reference, gap.b)]
            body.append([column.head, *both, *difference_cells(gap)])
    head = ["measured on", system, reference, "difference", INTERVAL, "p, Holm"]
    return Table(name, f"{system} compared with {reference}", head, body)


def _compared_cell(column: Column, system: str, mean: float) -> Cell:
    """Format a mean for a comparison, which counts only the seeds that both systems have."""
    if math.isclose(mean, column.value(system)):
        return column.cell(system)
    return Cell(f"{formats.points(mean)} (seed {column.facts.seed})", 100 * mean)


def difference_figure(
    name: str,
    title: str,
    pairs: Iterable[tuple[str, str, str, Column]],
    *,
    beside: bool = False,
    planned: Column | None = None,
) -> Figure | None:
    """Draw differences of means in points; None without differences.

    pairs: (label, system, reference, column). planned: as in `comparison_table`.
    """
    entries = []
    for label, system, reference, column in pairs:
        alone = column is planned
        gap = (column.alone if alone else column.difference)(system, reference)
        if gap is None or not gap.has_interval:
            continue
        interval = (100 * gap.low, 100 * gap.difference, 100 * gap.high)
        entries.append(
            Row(
                label,
                formats.signed(gap.difference),
                interval=interval,
                hollow=gap.seeds == 1,
                colour=colour(column.facts, system),
            )
        )
    axis = "points, with the interval"
    if any(entry.hollow for entry in entries):
        axis += "; hollow: one training each"
    return rows(name, title, entries, axis=axis, beside=beside)
