"""A table or a figure of systems, as the paper has them: its own lines beside ours.

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
        """The name with the measure."""
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
    """The facts as they will be when everything in the config has been measured, without any numbers."""
    evaluation = parse(Evaluation, config.get("evaluation"))
    targets = [Target(name, each) for name, splits in evaluation.collections.items() for each in splits]
    nothing = pd.Series(dtype=float)
    keys = ((system, target, each) for system in config["systems"] for target in targets
            for each in evaluation.measured(*target))  # fmt: skip
    return Facts(config=config, values=dict.fromkeys(keys, nothing))


def chosen(grid: Grid, facts: Facts) -> list[Entry]:
    """The entries as the whole config has them: an exhibit that is asked for alone has measures of its systems only."""
    return grid.entries(planned(facts.config))


def table(grid: Grid, name: str, facts: Facts) -> Table:
    """The lines of a grid; collections down instead of across where there are many."""
    columns = grid.columns(facts)
    theirs = any(column.key for column in columns)
    found = [line for entry in chosen(grid, facts) for line in _lines(facts, entry, columns, theirs)]
    caption = grid.caption if theirs else f"{grid.caption}; ours alone: {_where(columns)} is not the paper's data"
    heads = [*grid.heads, "line", "from"]
    if len(columns) <= MOST_ACROSS:
        body = [[*labels, *cells] for labels, cells in found]
        return Table(name, caption, [*heads, *(each.head for each in columns)], body, len(heads), texts=heads[1:])
    across = [", ".join(filter(None, (*labels[: len(grid.heads)], labels[-2], _system(labels)))) for labels, _ in found]
    one = len({column.measure for column in columns}) == 1
    names = [column.name if one else column.head for column in columns]
    body = [[head, *(cells[at] for _, cells in found)] for at, head in enumerate(names)]
    caption += f", {formats.measure_name(columns[0].measure)}" if one else ""
    return Table(name, caption, ["collection", *across], body)


def _system(labels: list[str]) -> str:
    return labels[-1] if labels[-2] == "ours" else ""


def _where(columns: list[Column]) -> str:
    names = dict.fromkeys(target.collection for column in columns for each in column.sets for target in each)
    return formats.listed(list(names))


def _lines(facts: Facts, entry: Entry, columns: list[Column], theirs: bool) -> Iterator[tuple[list[str], list[Cell]]]:
    """The labels and the cells of an entry's lines: paper, ours, difference and band, as far as there are both."""
    paper = entry.paper if theirs else None
    values = [paper.values.get(column.key) if paper and column.key else None for column in columns]
    ours = [mean_value(facts, entry.system, column.sets, column.measure) for column in columns] if entry.system else []
    if paper:
        yield [*entry.label, "paper", paper.source], [_points(value) for value in values]
    if ours:
        spreads = [mean_spread(facts, entry.system, column.sets, column.measure) for column in columns]
        cells = [value_cell(value, spread=each) for value, each in zip(ours, spreads, strict=True)]
        yield [*entry.label, "ours", entry.system], cells
    if paper and ours:
        pairs = list(zip(values, ours, strict=True))
        yield [*entry.label, "difference", ""], [_difference(*pair) for pair in pairs]
        bands = [100 * mean_noise(facts, column.sets, column.measure) for column in columns]
        cells = [_band(band, *pair) for band, pair in zip(bands, pairs, strict=True)]
        yield [*entry.label, "band", "of one seed"], cells


def _points(value: float | None) -> Cell:
    return Cell(formats.NONE) if value is None else Cell(f"{value:.1f}", value)


def _difference(paper: float | None, ours: float) -> Cell:
    if paper is None or ours != ours:
        return Cell(formats.NONE)
    return Cell(formats.signed(ours - paper / 100), 100 * ours - paper)


def _band(band: float, paper: float | None, ours: float) -> Cell:
    return Cell(formats.NONE) if paper is None or ours != ours else Cell(f"\N{PLUS-MINUS SIGN}{band:.1f}", band)


def figure(grid: Grid, name: str, facts: Facts) -> Figure:
    """A panel per column: ours over the entries, and the paper's line where it measured the same."""
    panels, everything = [], chosen(grid, facts)
    for column in grid.columns(facts):
        entries = [entry for entry in everything if entry.system or column.key]
        series = []
        for label, value, colour in (("ours", _ours, 0), ("the paper", _theirs, 2)):
            points = [(at, found) for at, entry in enumerate(entries) if (found := value(facts, entry, column))]
            if points:
                series.append(Series(label, *zip(*points, strict=True), colour))
        panels.append(
            lines(
                name, column.head, series, x_axis=grid.heads[0], x_names=[entry.label[0] for entry in entries],
                y_axis=formats.measure_name(column.measure), markers=True,
            )
        )  # fmt: skip
    return stacked(name, grid.caption, panels)


def _ours(facts: Facts, entry: Entry, column: Column) -> float | None:
    return 100 * mean_value(facts, entry.system, column.sets, column.measure) if entry.system else None


def _theirs(_: Facts, entry: Entry, column: Column) -> float | None:
    return entry.paper.values.get(column.key) if entry.paper and column.key else None
