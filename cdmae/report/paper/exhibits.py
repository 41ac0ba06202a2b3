"""The paper's tables as targets, with its numbers next to ours.

`report.methods` of the config maps rows to systems: ``CDMAE: cdmae-stage3`` for the row CDMAE of
every table that has it, or ``"table 3: RetroMAE"`` for a row of one table. A row that no table of
the paper has belongs to table 1. ``./run table_stages`` trains the systems of its rows, and writes
the output of `table`.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from cdmae import formats
from cdmae.config import systems
from cdmae.config.schema import Config
from cdmae.errors import InputError
from cdmae.report import columns, frames, notation
from cdmae.report.columns import Column
from cdmae.report.facts import Facts, Target
from cdmae.report.frames import Frames
from cdmae.report.paper import published
from cdmae.report.paper.published import AVERAGE, Key

SETS = {"table 3": 14, published.NANO: 13}  # the number of datasets in their averages
EXHIBITS = pd.read_csv(
    Path(__file__).with_suffix(".csv"),
    index_col="name",
    keep_default_na=False,
    converters={"measures": str.split},
)
HEADS = ["row", "line", "from"]


class Table(NamedTuple):
    """A table: a caption, and rows with unrounded numbers, in points."""

    caption: str
    numbers: pd.DataFrame

    def texts(self) -> pd.DataFrame:
        """Round the numbers; a dash where a line has none."""
        return self.numbers.map(
            lambda cell: notation.points(cell / 100) if isinstance(cell, float) else cell
        )


def rows_of(config: Config, source: str) -> dict[str, str]:
    """Map the rows of a published table to the systems that `report.methods` names for them."""
    tables = published.tables()
    found = {}
    for key, system in config.report.methods.items():
        table, _, label = key.partition(": ")
        if table in tables:
            having = [table]
        else:
            label = key
            having = [name for name, rows in tables.items() if key in rows] or ["table 1"]
        if source in having:
            found[label] = system
    return found


def wanted(name: str, config: Config) -> list[str]:
    """Return the systems that a table shows.

    Raises `InputError` if the config has no row or no column of the table.
    """
    facts = Facts(config)
    row = EXHIBITS.loc[name]
    targets = [Target(*each) for each in systems.targets(config)]
    zero_shot = [target for target in targets if facts.zero_shot(target)]
    if row["source"] == published.NANO:
        zero_shot = [target for target in zero_shot if published.dataset(config, target)]
    named = rows_of(config, row["source"])
    missing = ""
    if row["source"] in SETS and not zero_shot:
        missing = "collections without training queries in evaluation"
    elif not named:
        missing = f"rows of {row['source']} in report.methods"
    if missing:
        raise InputError(f"{name} needs {missing}, which this config lacks; see {row['has']}")
    return list(dict.fromkeys(named.values()))


def _columns(facts: Facts, source: str, measures: list[str]) -> dict[Key, Column]:
    """Return the paper's columns if its queries are measured; otherwise this run's columns."""
    if source in SETS:
        return _zero_shot(facts, source)
    inside = columns.inside(facts)
    named = {published.dataset(facts.config, column.targets[0]): column for column in inside}
    both = [named.get(f"msmarco {split}") for split in ("dl19", "dl20")]
    if all(both):
        named[published.DL] = columns.together(both, published.DL)
    rows = published.tables()[source].values()
    theirs = {}
    for key in dict.fromkeys(key for row in rows for key in row.values):
        column = named.get(key.dataset)
        if column and all(key.measure in facts.measures_of(each) for each in column.targets):
            theirs[key] = column._replace(name=key.dataset, measure=key.measure)
    if theirs:
        return theirs
    own = {}
    for column in inside:
        known = [name for name in measures if name in facts.measures_of(column.targets[0])]
        for name in known or [column.measure]:
            own[Key(column.name, name)] = column._replace(measure=name)
    return own


def _zero_shot(facts: Facts, source: str) -> dict[Key, Column]:
    """Return a column per zero-shot collection, and their average if there are several.

    The average is the paper's only if all of its datasets are measured.
    """
    found = {}
    for column in columns.zero_shot(facts):
        column = columns.graded(facts, column)
        dataset = column.name
        if source == published.NANO:
            dataset = published.dataset(facts.config, column.targets[0])
        if dataset:
            found[Key(dataset, column.measure)] = column
    if len(found) > 1:
        rows = published.tables()[source].values()
        theirs = {key for row in rows for key in row.values} - {AVERAGE}
        is_whole = len(found) == SETS[source] and theirs <= found.keys()
        key = AVERAGE if is_whole else Key(f"average of {len(found)}", AVERAGE.measure)
        found[key] = columns.together([*found.values()], "average")
    return found


def table(name: str, facts: Facts) -> Table:
    """Return a table of the paper, each of its rows with the lines *paper* and *ours*.

    On other data than the paper's, the line *paper* has the published MRR@10 on MS MARCO instead.
    """
    exhibit = EXHIBITS.loc[name]
    source = exhibit["source"]
    means = Frames(frames.results(facts))
    rows = published.tables()[source]
    if source == "table 1":
        rows = rows | published.tables()[published.FURTHER]
    ours = _columns(facts, source, exhibit["measures"])
    heads = {key: column.head for key, column in ours.items()}
    caption = f"{source}: {exhibit['title']}"
    if source != published.NANO:
        caption = f"The paper’s {caption}"
    if not any(ours.keys() & row.values.keys() for row in rows.values()):
        heads[published.MAIN] = f"published: {published.DEV}, MRR@10"
        targets = [target for column in ours.values() for target in column.targets]
        collections = dict.fromkeys(target.collection for target in targets)
        caption += f"; ours alone: {formats.listed([*collections])} is not the paper’s data"
    named = rows_of(facts.config, source)
    lines = []
    for label in dict.fromkeys([*rows, *named]):
        name = label
        if label in rows:
            row = rows[label]
            name = f"{label} ({row.kind})" if row.kind else label
            points = {head: row.values.get(key, math.nan) for key, head in heads.items()}
            lines.append({"row": name, "line": "paper", "from": row.source} | points)
        if label in named:
            system = named[label]
            points = {heads[key]: 100 * means.mean(system, ours[key]).value for key in ours}
            lines.append({"row": name, "line": "ours", "from": system} | points)
    numbers = pd.DataFrame(lines, columns=[*HEADS, *heads.values()])
    return Table(caption, _turned(numbers) if source in SETS else numbers)


def _turned(frame: pd.DataFrame) -> pd.DataFrame:
    """Transpose a table: a row per collection, and a column per line."""
    turned = frame.drop(columns=HEADS).T
    turned.columns = (frame["row"] + ", " + frame["line"]).tolist()
    return turned.reset_index(names="collection")
