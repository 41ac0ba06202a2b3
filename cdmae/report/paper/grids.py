"""Show systems in a table or a figure as the paper has them: its own lines beside ours.

An entry has the lines *paper*, *ours*, *difference* and *band* where the collections are the
paper's; elsewhere ours stand alone, and the caption says so.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import pandas as pd

from cdmae import formats
from cdmae.report.charts import Figure, Series, lines, stacked
from cdmae.report.columns import Column, in_domain, together, zero_shot
from cdmae.report.facts import Facts, Target
from cdmae.report.paper import published
from cdmae.report.paper.published import Key, Row
from cdmae.report.tables import Cell, Table, number_cell

MOST_ACROSS = 8  # with more collections than this a table has them down and the methods across
SETS = {"table 3": 14, published.NANO: 13}  # of which their averages are
PAPERS = "The paper\N{RIGHT SINGLE QUOTATION MARK}s "


class Entry(NamedTuple):
    """A method or a setting: its label, its system in this run, if any, and the paper's row."""

    label: tuple[str, ...]
    system: str = ""
    paper: Row | None = None


@dataclass(frozen=True)
class Grid:
    """A table of systems: `entries` below `heads`, compared with the paper's table `source`.

    It makes sense from `least` entries with a system on; `lacks` says what the config would need,
    `has` names a config file that has it. measures: what is shown where the paper's columns are not
    measured; the main one without.
    """

    entries: Callable[[Facts], list[Entry]]
    source: str
    title: str
    heads: tuple[str, ...]
    measures: Sequence[str]
    least: int
    lacks: str
    has: str

    @property
    def caption(self) -> str:
        """Return the title behind the name of the paper's table."""
        return (
            f"{PAPERS}{self.source}: {self.title}"
            if self.source not in ("", published.NANO)
            else self.title
        )

    def systems(self, facts: Facts) -> list[str]:
        """List the systems of the entries."""
        return [entry.system for entry in self.entries(facts) if entry.system]

    def columns(self, facts: Facts) -> list[Column]:
        """Return the paper's columns where its queries are measured; else our own."""
        if self.source in SETS:
            return _zero_shot(facts, self.source)
        theirs = _papers(facts, self.source) if self.source else []
        return theirs or [
            Column.of(facts, column.target, name)
            for column in in_domain(facts)
            for name in [
                measure for measure in self.measures if measure in facts.measures_of(column.target)
            ]
            or [column.measure]
        ]


def _papers(facts: Facts, source: str) -> list[Column]:
    """Return the columns of one of the paper's tables that are measured here."""
    named = {published.dataset(facts, column.target): column.target for column in in_domain(facts)}
    columns = []
    for key in dict.fromkeys(key for row in published.rows(source).values() for key in row.values):
        datasets = {published.DL: (published.DL19, published.DL20)}.get(key.dataset, (key.dataset,))
        targets = [named[dataset] for dataset in datasets if dataset in named]
        if len(targets) == len(datasets) and all(
            key.measure in facts.measures_of(target) for target in targets
        ):
            columns.append(
                Column(facts, key.dataset, [[target] for target in targets], key.measure, key)
            )
    return columns


def _zero_shot(facts: Facts, source: str) -> list[Column]:
    """Return a column per collection, and their average if there are several.

    NanoBEIR has columns for its own sets alone.
    """
    theirs = {key for row in published.rows(source).values() for key in row.values} - {
        published.AVERAGE
    }
    columns = []
    for column in zero_shot(facts):
        if (
            dataset := published.nano(facts, column.target)
            if source == published.NANO
            else column.name
        ):
            key = Key(dataset, column.measure)
            columns.append(replace(column, key=key if key in theirs else None))
    if len(columns) > 1:
        all_there = theirs <= {column.key for column in columns} and len(columns) == SETS[source]
        columns.append(
            replace(together(columns, "average"), key=published.AVERAGE if all_there else None)
        )
    return columns


def planned(config: dict[str, Any]) -> Facts:
    """Return the facts of a complete run of the config, without any numbers."""
    evaluation, encoders = Facts(config).evaluation, Facts(config).entries("encoders")
    targets = [
        Target(name, split) for name, splits in evaluation.collections.items() for split in splits
    ]
    measured = [(target, measure) for target in targets for measure in evaluation.measured(*target)]
    keys = ((system, *place) for system in config["systems"] for place in measured)
    masked = [
        name for name, entry in encoders.items() if entry.get("decoder_masking") == "importance"
    ]
    return Facts(
        config, dict.fromkeys(keys, pd.DataFrame()), masked_terms=dict.fromkeys(masked, {})
    )


def table(grid: Grid, name: str, facts: Facts) -> Table:
    """Return the lines of a grid; collections down instead of across where there are many.

    Its entries are those of the whole config: an exhibit asked for alone has measures of its
    systems only.
    """
    columns, caption, heads = grid.columns(facts), grid.caption, [*grid.heads, "line", "from"]
    theirs = any(column.key for column in columns)
    whose = "published" if grid.source == published.NANO else "paper"
    entries = grid.entries(planned(facts.config))
    labelled = [
        line for entry in entries for line in _lines(facts, entry, columns, whose if theirs else "")
    ]
    if not theirs:
        names = dict.fromkeys(
            target.collection for column in columns for some in column.sets for target in some
        )
        caption += f"; ours alone: {formats.listed(list(names))} is not the paper's data"
    if len(columns) <= MOST_ACROSS:
        body = [[*labels, *cells] for labels, cells in labelled]
        return Table(
            name,
            caption,
            [*heads, *(column.head for column in columns)],
            body,
            len(heads),
            texts=heads[1:],
        )
    across = []
    for (*label, line, source), _ in labelled:
        across.append(", ".join(filter(None, (*label, line, source if line == "ours" else ""))))
    one = len({column.measure for column in columns}) == 1
    names = [column.name if one else column.head for column in columns]
    body = [[head, *(cells[at] for _, cells in labelled)] for at, head in enumerate(names)]
    caption += f", {columns[0].unit}" if one else ""
    return Table(name, caption, ["collection", *across], body)


def _lines(
    facts: Facts, entry: Entry, columns: Sequence[Column], whose: str
) -> Iterator[tuple[list[str], list[Cell]]]:
    """Yield labels and cells of an entry's lines: `whose`, ours, difference and band, if known."""
    paper = entry.paper if whose else None
    points = [paper.values.get(column.key, math.nan) if paper else math.nan for column in columns]
    if paper:
        yield (
            [*entry.label, whose, paper.source],
            [number_cell(value, "{:.1f}".format) for value in points],
        )
    if not entry.system:
        return
    ours = [column.cell(entry.system) for column in columns]
    yield [*entry.label, "ours", entry.system], ours
    if paper:
        gaps = [
            math.nan if cell.value is None else cell.value - value
            for cell, value in zip(ours, points, strict=True)
        ]
        bands = [
            math.nan if math.isnan(gap) else 100 * of.noise
            for gap, of in zip(gaps, columns, strict=True)
        ]
        differences = [number_cell(gap, lambda gap: formats.signed(gap / 100)) for gap in gaps]
        yield [*entry.label, "difference", ""], differences
        shown = [number_cell(band, "\N{PLUS-MINUS SIGN}{:.1f}".format) for band in bands]
        yield [*entry.label, "band", "of one seed"], shown


def figure(grid: Grid, name: str, facts: Facts) -> Figure:
    """Draw a panel per column: ours over the entries, and the paper's line if comparable."""
    panels, everything = [], grid.entries(planned(facts.config))
    for column in grid.columns(facts):
        entries = [entry for entry in everything if entry.system or column.key]
        ours = {
            at: 100 * column.value(entry.system) for at, entry in enumerate(entries) if entry.system
        }
        papers = {
            at: entry.paper.values.get(column.key)
            for at, entry in enumerate(entries)
            if entry.paper
        }
        papers = {at: value for at, value in papers.items() if value is not None}
        both = (("ours", ours, 0), ("the paper", papers, 2))
        series = [
            Series(label, list(points), list(points.values()), hue)
            for label, points, hue in both
            if points
        ]
        style = {
            "x_axis": grid.heads[0],
            "x_names": [entry.label[0] for entry in entries],
            "markers": True,
        }
        panels.append(lines(name, column.head, series, y_axis=column.unit, **style))
    return stacked(name, grid.caption, panels)
