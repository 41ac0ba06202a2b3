"""The paper's tables as targets, with its numbers next to ours.

`report.methods` of the config maps rows to systems: ``CDMAE: cdmae-stage3`` for the row CDMAE of
every table that has it, or ``"table 3: RetroMAE"`` for a row of one table. A row that no table of
the paper has belongs to table 1. ``./run table_stages`` trains the systems of its rows, and writes
the output of `table`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from cdmae import formats
from cdmae.errors import InputError
from cdmae.report import columns
from cdmae.report.columns import Column
from cdmae.report.facts import Facts, Target
from cdmae.report.frames import Frames, only_means
from cdmae.report.paper import published
from cdmae.report.paper.published import Key, Row
from cdmae.report.sections import shown_mean

MOST_ACROSS = 8  # above this number of collections, a table has them as rows
SETS = {"table 3": 14, published.NANO: 13}  # the number of datasets in their averages
EXHIBITS = pd.read_csv(
    Path(__file__).with_suffix(".csv"),
    index_col="name",
    keep_default_na=False,
    converters={"measures": str.split},
)
HEADS = ["row", "line", "from"]
_CPU = "ms on a CPU"
_GPU = "ms on a V100"
# a measured form of masking: the paper's row for it, its complexity, and the paper's unit
FORMS = {
    "MAE": ("MAE", "O(n)", _CPU),
    "RetroMAE, in Python": ("RetroMAE", "O(n²)", _CPU),
    "RetroMAE, ours": ("RetroMAE", "O(n²)", _CPU),
    "SimLM, masks": ("SimLM", "O(n²)", _CPU),
    "SimLM, generator": ("SimLM", "O(n²)", _GPU),
    "CDMAE": ("CDMAE", "O(n log n)", _CPU),
}


class Table(NamedTuple):
    """A table: a caption, the rows as texts, and the rows with unrounded numbers."""

    caption: str
    texts: pd.DataFrame
    numbers: pd.DataFrame


class Line(NamedTuple):
    """A line of a table: its labels, below `HEADS`, its cells as texts, and as points."""

    labels: list[str]
    texts: list[str]
    points: list[float]


def systems(facts: Facts, source: str) -> dict[str, str]:
    """Map the rows of a published table to the systems that `report.methods` names for them."""
    found = {}
    for key, system in facts.report.methods.items():
        table, _, label = key.partition(": ")
        if table in published.tables():
            if table == source:
                found[label] = system
            continue
        having = [name for name in published.tables() if key in published.rows(name)]
        if source in (having or ["table 1"]):
            found[key] = system
    return found


def wanted(name: str, config: dict[str, Any]) -> list[str]:
    """Return the systems that a table shows.

    Raises `InputError` if the config has no row or no column of the table.
    """
    facts = planned(config)
    row = EXHIBITS.loc[name]
    missing = ""
    if not _columns(facts, row["source"], row["measures"]):
        missing = "collections without training queries in evaluation"
    elif not systems(facts, row["source"]):
        missing = f"rows of {row['source']} in report.methods"
    if missing:
        raise InputError(f"{name} needs {missing}, which this config lacks; see {row['has']}")
    return list(dict.fromkeys(systems(facts, row["source"]).values()))


def planned(config: dict[str, Any]) -> Facts:
    """Return the facts that a complete run of the config would have, but without numbers."""
    facts = Facts(config)
    values = {}
    for system in config["systems"]:
        for name, splits in facts.evaluation.collections.items():
            for split in splits:
                for measure in facts.evaluation.measured(name, split):
                    values[system, Target(name, split), measure] = pd.DataFrame()
    return replace(facts, values=values)


# --- columns --------------------------------------------------------------------------------------


def _keys(source: str) -> list[Key]:
    """List the columns of a published table."""
    keys = [key for row in published.rows(source).values() for key in row.values]
    return list(dict.fromkeys(keys))


def _columns(facts: Facts, source: str, measures: Sequence[str]) -> list[Column]:
    """Return the paper's columns if its queries are measured; otherwise this run's columns."""
    if source in SETS:
        return _zero_shot(facts, source)
    inside = columns.in_domain(facts)
    named = {published.dataset(facts, column.targets[0]): column.targets[0] for column in inside}
    theirs = []
    for key in _keys(source):
        datasets = {published.DL: [published.DL19, published.DL20]}.get(key.dataset, [key.dataset])
        targets = [named[dataset] for dataset in datasets if dataset in named]
        measured = all(key.measure in facts.measures_of(target) for target in targets)
        if len(targets) == len(datasets) and measured:
            sets = tuple((target,) for target in targets)
            theirs.append(Column(key.dataset, sets, key.measure, key))
    if theirs:
        return theirs
    own = []
    for column in inside:
        known = [name for name in measures if name in facts.measures_of(column.targets[0])]
        own += [replace(column, measure=name) for name in known or [column.measure]]
    return own


def _zero_shot(facts: Facts, source: str) -> list[Column]:
    """Return a column per zero-shot collection, and their average if there are several."""
    theirs = [key for key in _keys(source) if key != published.AVERAGE]
    found = []
    for column in columns.zero_shot(facts):
        dataset = column.name
        if source == published.NANO:
            dataset = published.nano(facts, column.targets[0])
        if dataset:
            key = Key(dataset, column.measure)
            found.append(replace(column, key=key if key in theirs else None))
    if len(found) > 1:
        is_whole = len(found) == SETS[source] and {*theirs} <= {column.key for column in found}
        average = columns.together(found, "average")
        found.append(replace(average, key=published.AVERAGE if is_whole else None))
    return found


# --- tables ---------------------------------------------------------------------------------------


def table(name: str, facts: Facts) -> Table:
    """Return a table of the paper."""
    if name == "table_latency":
        return _latency(facts)
    row = EXHIBITS.loc[name]
    return grid(facts, only_means(facts), row["source"], row["title"], row["measures"])


def on_the_papers_data(facts: Facts, frames: Frames) -> list[Table]:
    """List the tables of which this run measures rows and columns of the paper."""
    found = []
    for row in EXHIBITS.itertuples():
        shown = _columns(facts, row.source, row.measures)
        if systems(facts, row.source) and any(column.key for column in shown):
            found.append(grid(facts, frames, row.source, row.title, row.measures))
    return found


def grid(
    facts: Facts, frames: Frames, source: str, title: str, measures: Sequence[str] = ()
) -> Table:
    """Show a published table's rows, each with the lines *paper* and *ours*.

    On other data than the paper's, a column has the published MRR@10 on MS MARCO instead.
    """
    shown = _columns(facts, source, measures)
    papers = any(column.key for column in shown)
    named = systems(facts, source)
    known = published.rows(source)
    if not papers and source not in ("table 1", *SETS):
        known = {label: row for label, row in known.items() if label in named}
    further = published.rows(published.FURTHER) if source == "table 1" else {}
    lines: list[Line] = []
    for label in dict.fromkeys([*known, *named, *further]):
        row = known.get(label) or further.get(label)
        lines += _lines(frames, label, named.get(label, ""), row, shown, papers=papers)
    heads = [*HEADS, *(column.head for column in shown)]
    caption = f"{source}: {title}" if source == published.NANO else f"The paper’s {source}: {title}"
    if not papers:
        heads.append(f"published: {published.DEV}, MRR@10")
        names = dict.fromkeys(target.collection for column in shown for target in column.targets)
        caption += f"; ours alone: {formats.listed([*names])} is not the paper’s data"
    texts = pd.DataFrame([[*line.labels, *line.texts] for line in lines], columns=heads)
    numbers = pd.DataFrame([[*line.labels, *line.points] for line in lines], columns=heads)
    if len(shown) > MOST_ACROSS:
        return Table(caption, _turned(texts), _turned(numbers))
    return Table(caption, texts, numbers)


def _lines(
    frames: Frames, label: str, system: str, row: Row | None, shown: list[Column], *, papers: bool
) -> Iterator[Line]:
    """Yield the lines of a row: the paper's and ours; elsewhere than on its data, one of them."""
    kind = f" ({row.kind})" if row and row.kind else ""
    values = row.values if row else {}
    more = [] if papers else [values.get(published.MAIN, math.nan)]
    if row and (papers or not system):
        points = [*(values.get(column.key, math.nan) for column in shown), *more]
        yield Line([label + kind, "paper", row.source], list(map(_shown, points)), points)
    if system:
        means = [frames.mean(system, column) for column in shown]
        texts = [*map(shown_mean, means), *map(_shown, more)]
        points = [*(100 * mean.value for mean in means), *more]
        yield Line([label + kind, "ours", system], texts, points)


def _shown(points: float) -> str:
    return formats.points(points / 100)


def _turned(frame: pd.DataFrame) -> pd.DataFrame:
    """Transpose a table: a row per collection, and a column per line."""
    turned = frame.drop(columns=HEADS).T
    turned.columns = (frame["row"] + ", " + frame["line"]).tolist()
    return turned.reset_index(names="collection")


def _latency(facts: Facts) -> Table:
    """Make a row per form of masking: the paper's milliseconds, ours, and multiples of MAE's.

    The last times are measured on one passage of n word-pieces.
    """
    batch = facts.latency["batch"]
    growth = facts.latency["growth"]
    papers = {}
    for label, row in published.rows("table 6").items():
        papers |= {(label, key.measure): value for key, value in row.values.items()}
    rows = []
    for form, (label, complexity, unit) in FORMS.items():
        paper = papers.get((label, unit), math.nan)
        ours = float(batch[form])
        row = {"form": form, "complexity": complexity, "paper, ms": paper, "ours, ms": ours}
        row["paper, of MAE"] = paper / papers["MAE", _CPU]
        row["ours, of MAE"] = ours / batch["MAE"]
        for length in growth["MAE"]:
            row[f"ms, n = {length}"] = growth[form].get(length, math.nan)
        rows.append(row)
    caption = (
        f"The paper’s table 6: masking {facts.latency['passages']} passages of "
        f"{facts.latency['length']} word-pieces; ours on one thread of another machine, "
        "so only ratios are comparable; then one passage of n"
    )
    numbers = pd.DataFrame(rows)
    texts = numbers.astype(object).copy()
    for name in texts.columns[2:]:
        texts[name] = ["" if value != value else f"{value:.3g}" for value in numbers[name]]
    return Table(caption, texts, numbers)
