"""Show systems in a table or a figure as the paper has them: its own lines beside ours.

An entry has the lines *paper*, *ours*, *difference* and *band* where the collections are the paper's; elsewhere ours
stand alone, and the caption says so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import pandas as pd

from cdmae import formats
from cdmae.config.schema import Evaluation
from cdmae.fields import parse
from cdmae.report.charts import Figure, Series, lines, stacked
from cdmae.report.facts import Facts, Target
from cdmae.report.paper.published import Key, Row
from cdmae.report.sections import mean_noise, mean_spread, mean_value, value_cell
from cdmae.report.tables import Cell, Table

MOST_ACROSS = 8  # with more collections than this a table has them down and the methods across


class Entry(NamedTuple):
    """A method or a setting: its label, the system that stands for it here, if any, and the paper's row."""

    label: tuple[str, ...]
    system: str = ""
    paper: Row | None = None


class Column(NamedTuple):
    """What a column measures: sets of targets whose means count alike; `key` is the paper's column, if it has one."""

    name: str
    sets: list[list[Target]]
    measure: str
    key: Key | None = None

    @property
    def head(self) -> str:
        """Return the name with the measure."""
        return f"{self.name}, {formats.measure_name(self.measure)}"


@dataclass(frozen=True)
class Grid:
    """A table of systems: `entries` down and `columns` across.

    It makes sense from `least` entries with a system on; `lacks` says what the config would need, `has` names
    a config file that has it.
    """

    caption: str
    heads: tuple[str, ...]
    entries: Callable[[Facts], list[Entry]]
    columns: Callable[[Facts], list[Column]]
    least: int
    lacks: str
    has: str


def planned(config: dict[str, Any]) -> Facts:
    """Return the facts as they will be when everything in the config has been measured, without any numbers."""
    evaluation = parse(Evaluation, config.get("evaluation"))
    targets = [Target(name, split) for name, splits in evaluation.collections.items() for split in splits]
    measured = [(target, measure) for target in targets for measure in evaluation.measured(*target)]
    keys = ((system, *place) for system in config["systems"] for place in measured)
    return Facts(config=config, values=dict.fromkeys(keys, pd.Series(dtype=float)))


def table(grid: Grid, name: str, facts: Facts) -> Table:
    """Return the lines of a grid; collections down instead of across where there are many."""
    columns = grid.columns(facts)
    theirs = any(column.key for column in columns)
    labelled = [line for entry in _entries(grid, facts) for line in _lines(facts, entry, columns, theirs)]
    caption = grid.caption
    if not theirs:
        names = dict.fromkeys(target.collection for column in columns for some in column.sets for target in some)
        caption += f"; ours alone: {formats.listed(list(names))} is not the paper's data"
    heads = [*grid.heads, "line", "from"]
    if len(columns) <= MOST_ACROSS:
        body = [[*labels, *cells] for labels, cells in labelled]
        return Table(name, caption, [*heads, *(column.head for column in columns)], body, len(heads), texts=heads[1:])
    across = []
    for (*label, line, source), _ in labelled:
        across.append(", ".join(filter(None, (*label, line, source if line == "ours" else ""))))
    one = len({column.measure for column in columns}) == 1
    names = [column.name if one else column.head for column in columns]
    body = [[head, *(cells[at] for _, cells in labelled)] for at, head in enumerate(names)]
    caption += f", {formats.measure_name(columns[0].measure)}" if one else ""
    return Table(name, caption, ["collection", *across], body)


def figure(grid: Grid, name: str, facts: Facts) -> Figure:
    """Draw a panel per column: ours over the entries, and the paper's line where it measured the same."""
    panels, everything = [], _entries(grid, facts)
    for column in grid.columns(facts):
        entries = [entry for entry in everything if entry.system or column.key]
        ours = [
            (at, 100 * mean_value(facts, entry.system, column.sets, column.measure))
            for at, entry in enumerate(entries)
            if entry.system
        ]
        papers = [
            (at, entry.paper.values[column.key])
            for at, entry in enumerate(entries)
            if entry.paper and column.key in entry.paper.values
        ]
        parts = (("ours", ours, 0), ("the paper", papers, 2))
        series = [Series(label, *zip(*points, strict=True), colour) for label, points, colour in parts if points]
        panels.append(
            lines(
                name, column.head, series, x_axis=grid.heads[0], x_names=[entry.label[0] for entry in entries],
                y_axis=formats.measure_name(column.measure), markers=True,
            )
        )  # fmt: skip
    return stacked(name, grid.caption, panels)


def _entries(grid: Grid, facts: Facts) -> list[Entry]:
    """Return the entries as the whole config has them: an exhibit asked for alone has measures of its systems only."""
    return grid.entries(planned(facts.config))


def _lines(facts: Facts, entry: Entry, columns: list[Column], theirs: bool) -> Iterator[tuple[list[str], list[Cell]]]:
    """Yield labels and cells of an entry's lines: paper, ours, difference and band, as far as there are both."""
    none, paper = Cell(formats.NONE), entry.paper if theirs else None
    values = [paper.values.get(column.key) if paper else None for column in columns]
    ours = [mean_value(facts, entry.system, column.sets, column.measure) for column in columns] if entry.system else []
    if paper:
        cells = [none if value is None else Cell(f"{value:.1f}", value) for value in values]
        yield [*entry.label, "paper", paper.source], cells
    if ours:
        spreads = [mean_spread(facts, entry.system, column.sets, column.measure) for column in columns]
        cells = [value_cell(mean, spread=spread) for mean, spread in zip(ours, spreads, strict=True)]
        yield [*entry.label, "ours", entry.system], cells
    if paper and ours:
        differences, bands = [], []
        for column, value, mean in zip(columns, values, ours, strict=True):
            known = value is not None and mean == mean
            band = 100 * mean_noise(facts, column.sets, column.measure)
            differences.append(Cell(formats.signed(mean - value / 100), 100 * mean - value) if known else none)
            bands.append(Cell(f"\N{PLUS-MINUS SIGN}{band:.1f}", band) if known else none)
        yield [*entry.label, "difference", ""], differences
        yield [*entry.label, "band", "of one seed"], bands
