"""Show systems in a table or a figure of the paper, with the paper's numbers next to ours.

On the paper's collections, an entry has the lines *paper*, *ours* and *difference*. On other
collections it has only the line *ours*, as the caption states; the published MRR@10 on MS
MARCO, if there is one, has a column of its own.
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

# above this number of collections, a table has them as rows and the methods as columns
MOST_ACROSS = 8
SETS = {"table 3": 14, published.NANO: 13}  # the number of datasets in their averages
PAPERS = "The paper\N{RIGHT SINGLE QUOTATION MARK}s "


class Entry(NamedTuple):
    """A method or a setting: its label, its system in this run, if any, and the paper's row."""

    label: tuple[str, ...]
    system: str = ""
    paper: Row | None = None


@dataclass(frozen=True)
class Grid:
    """A table of systems: `entries` below `heads`, compared with the paper's table `source`.

    It needs at least `least` entries with a system. lacks: a description of the entries that a
    config may lack. has: a config file with these entries. measures: the columns if the paper's
    collections are not measured; by default the main measure.
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
        """Return the title that follows the name of the paper's table."""
        return (
            f"{PAPERS}{self.source}: {self.title}"
            if self.source not in ("", published.NANO)
            else self.title
        )

    def systems(self, facts: Facts) -> list[str]:
        """List the systems of the entries."""
        return [entry.system for entry in self.entries(facts) if entry.system]

    def columns(self, facts: Facts) -> list[Column]:
        """Return the paper's columns if its queries are measured; otherwise this run's columns."""
        if self.source in SETS:
            return _zero_shot(facts, self.source)
        theirs = _papers(facts, self.source) if self.source else []
        return theirs or self._own_columns(facts)

    def _own_columns(self, facts: Facts) -> list[Column]:
        """Return columns of all in-domain targets, in the grid's measures or in the main one."""
        columns = []
        for column in in_domain(facts):
            measured = facts.measures_of(column.target)
            names = [measure for measure in self.measures if measure in measured]
            for name in names or [column.measure]:
                columns.append(Column.of(facts, column.target, name))
        return columns


def _papers(facts: Facts, source: str) -> list[Column]:
    """Return the columns of one of the paper's tables that this run measures."""
    named = {published.dataset(facts, column.target): column.target for column in in_domain(facts)}
    columns = []
    keys = [key for row in published.rows(source).values() for key in row.values]
    for key in dict.fromkeys(keys):
        datasets = {published.DL: (published.DL19, published.DL20)}.get(key.dataset, (key.dataset,))
        targets = [named[dataset] for dataset in datasets if dataset in named]
        measured = all(key.measure in facts.measures_of(target) for target in targets)
        if len(targets) == len(datasets) and measured:
            sets = [[target] for target in targets]
            columns.append(Column(facts, key.dataset, sets, key.measure, key))
    return columns


def _zero_shot(facts: Facts, source: str) -> list[Column]:
    """Return a column per collection, and their average if there are several.

    The table of NanoBEIR has columns only for NanoBEIR's collections.
    """
    theirs = {key for row in published.rows(source).values() for key in row.values}
    theirs.discard(published.AVERAGE)
    columns = []
    for column in zero_shot(facts):
        dataset = column.name
        if source == published.NANO:
            dataset = published.nano(facts, column.target)
        if dataset:
            key = Key(dataset, column.measure)
            columns.append(replace(column, key=key if key in theirs else None))
    if len(columns) > 1:
        whole = theirs <= {column.key for column in columns} and len(columns) == SETS[source]
        average = together(columns, "average")
        columns.append(replace(average, key=published.AVERAGE if whole else None))
    return columns


def planned(config: dict[str, Any]) -> Facts:
    """Return the facts that a complete run of the config would have, but without numbers."""
    evaluation = Facts(config).evaluation
    values = {}
    for system in config["systems"]:
        for name, splits in evaluation.collections.items():
            for split in splits:
                for measure in evaluation.measured(name, split):
                    values[system, Target(name, split), measure] = pd.DataFrame()
    masked = {
        name: {}
        for name, entry in Facts(config).entries("encoders").items()
        if entry.get("decoder_masking") == "importance"
    }
    return Facts(config, values, masked_terms=masked)


def table(grid: Grid, name: str, facts: Facts) -> Table:
    """Return the lines of a grid; many collections are rows instead of columns.

    The entries come from the whole config, because a run that makes only one exhibit measures only
    its systems.
    """
    columns = grid.columns(facts)
    entries = grid.entries(planned(facts.config))
    caption = grid.caption
    whose = ""
    elsewhere = False
    if any(column.key for column in columns):
        whose = "published" if grid.source == published.NANO else "paper"
    else:
        targets = [target for column in columns for some in column.sets for target in some]
        names = list(dict.fromkeys(target.collection for target in targets))
        caption += f"; ours alone: {formats.listed(names)} is not the paper's data"
        known = any(entry.paper and published.MAIN in entry.paper.values for entry in entries)
        elsewhere = known and len(columns) < MOST_ACROSS
    labelled = []
    for entry in entries:
        if elsewhere:
            labelled.append(_elsewhere(entry, columns))
        else:
            labelled += _lines(facts, entry, columns, whose)
    if len(columns) <= MOST_ACROSS:
        heads = [*grid.heads, "line", "from"]
        body = [[*labels, *cells] for labels, cells in labelled]
        heads_and_columns = [*heads, *(column.head for column in columns)]
        if elsewhere:
            heads_and_columns.append(f"published: {published.DEV}, MRR@10")
        return Table(name, caption, heads_and_columns, body, len(heads), texts=heads[1:])
    return _turned(name, caption, columns, labelled)


def _turned(
    name: str,
    caption: str,
    columns: Sequence[Column],
    labelled: Sequence[tuple[list[str], list[Cell]]],
) -> Table:
    """Make the transposed table: a row per collection and a column per line."""
    across = []
    for (*label, line, source), _ in labelled:
        across.append(", ".join(filter(None, (*label, line, source if line == "ours" else ""))))
    one_measure = len({column.measure for column in columns}) == 1
    if one_measure:
        caption += f", {columns[0].unit}"
    body = []
    for index, column in enumerate(columns):
        head = column.name if one_measure else column.head
        body.append([head, *(cells[index] for _, cells in labelled)])
    return Table(name, caption, ["collection", *across], body)


def _elsewhere(entry: Entry, columns: Sequence[Column]) -> tuple[list[str], list[Cell]]:
    """Return the labels and cells of an entry: our numbers, and the published one on MS MARCO."""
    source = entry.paper.source if entry.paper else ""
    value = entry.paper.values.get(published.MAIN, math.nan) if entry.paper else math.nan
    there = number_cell(value, "{:.1f}".format)
    nothing = number_cell(math.nan, str)
    ours = [column.cell(entry.system) if entry.system else nothing for column in columns]
    line = ("ours", entry.system) if entry.system else ("published", source)
    return [*entry.label, *line], [*ours, there]


def _lines(
    facts: Facts, entry: Entry, columns: Sequence[Column], whose: str
) -> Iterator[tuple[list[str], list[Cell]]]:
    """Yield labels and cells of an entry's lines: published, ours and their difference, if known.

    whose: the label of the published line.
    """
    paper = entry.paper if whose else None
    points = [paper.values.get(column.key, math.nan) if paper else math.nan for column in columns]
    if paper:
        cells = [number_cell(value, "{:.1f}".format) for value in points]
        yield [*entry.label, whose, paper.source], cells
    if not entry.system:
        return
    ours = [column.cell(entry.system) for column in columns]
    yield [*entry.label, "ours", entry.system], ours
    if not paper:
        return
    differences = []
    for cell, value in zip(ours, points, strict=True):
        gap = math.nan if cell.value is None else cell.value - value
        differences.append(number_cell(gap, lambda points: formats.signed(points / 100)))
    yield [*entry.label, "difference", ""], differences


def figure(grid: Grid, name: str, facts: Facts) -> Figure:
    """Draw a panel per column: our values over the entries, and the paper's line if comparable."""
    everything = grid.entries(planned(facts.config))
    panels = []
    for column in grid.columns(facts):
        entries = [entry for entry in everything if entry.system or column.key]
        ours = {}
        papers = {}
        for index, entry in enumerate(entries):
            if entry.system:
                ours[index] = 100 * column.value(entry.system)
            if entry.paper and column.key in entry.paper.values:
                papers[index] = entry.paper.values[column.key]
        series = []
        for label, points, hue in (("ours", ours, 0), ("the paper", papers, 2)):
            if points:
                series.append(Series(label, list(points), list(points.values()), hue))
        panel = lines(
            name,
            column.head,
            series,
            x_axis=grid.heads[0],
            y_axis=column.unit,
            x_names=[entry.label[0] for entry in entries],
            markers=True,
        )
        panels.append(panel)
    return stacked(name, grid.caption, panels)
