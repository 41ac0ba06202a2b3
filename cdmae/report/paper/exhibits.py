"""The paper's tables and figures as targets, with its numbers next to ours.

`report.methods` of the config maps rows to systems: ``CDMAE: cdmae-stage3`` for the row CDMAE of
every table that has it, or ``"table 3: RetroMAE"`` for a row of one table. A row that no table of
the paper has belongs to table 1. ``./run table_stages`` trains the systems of its rows, and writes
the output of `table` or `figure`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from cdmae import formats
from cdmae.errors import InputError
from cdmae.report import columns, figures
from cdmae.report.columns import Column
from cdmae.report.facts import Facts, Target
from cdmae.report.figures import GREY, SERIES, Drawn, Series
from cdmae.report.frames import Frames, only_means
from cdmae.report.masks import masked_figure, sampling_figure, shown_masks
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
OF_MASKS = {"figure_masked_terms": "figure 2", "figure_sampling": "figure 3"}
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


class Wanted(NamedTuple):
    """The inputs of an exhibit; `everything` means all inputs of the report."""

    everything: bool = False
    systems: list[str] = []
    encoders: list[str] = []
    latency: bool = False


class Table(NamedTuple):
    """A table: a caption, the rows as texts, and the rows with unrounded numbers."""

    caption: str
    texts: pd.DataFrame
    numbers: pd.DataFrame


def systems(facts: Facts, source: str) -> dict[str, str]:
    """Map the rows of a published table to the systems that `report.methods` names for them."""
    found = {}
    own = published.rows(source)
    for key, system in facts.report.methods.items():
        table, _, label = key.partition(": ")
        everywhere = table not in published.tables()
        if everywhere:
            label = key
        elif table != source:
            continue
        elsewhere = any(label in published.rows(other) for other in published.tables())
        if not everywhere or label in own or (source == "table 1" and not elsewhere):
            found[label] = system
    return found


def wanted(name: str, config: dict[str, Any]) -> Wanted:
    """Return the inputs that an exhibit needs from a config (`Config.values`).

    Raises `InputError` if the config lacks some of them.
    """
    facts = planned(config)
    if name in ("table_latency", "table_claims"):
        return Wanted(everything=name == "table_claims", latency=True)
    if name in OF_MASKS:
        if not facts.masked_terms:
            raise InputError(
                f"{name} needs an encoder with decoder_masking: importance, which this config "
                "lacks; see config/config.yaml"
            )
        return Wanted(encoders=[shown_masks(facts)])
    row = EXHIBITS.loc[name]
    if not _columns(facts, row["source"], row["measures"]):
        raise InputError(
            f"{name} needs collections without training queries in evaluation, which this config "
            f"lacks; see {row['has']}"
        )
    found = systems(facts, row["source"])
    if not found:
        raise InputError(
            f"{name} needs rows of {row['source']} in report.methods, which this config lacks; "
            f"see {row['has']}"
        )
    return Wanted(systems=list(dict.fromkeys(found.values())))


@cache
def _all_keys(source: str) -> list[Key]:
    """List the columns of a published table."""
    return list(dict.fromkeys(key for row in published.rows(source).values() for key in row.values))


def _columns(facts: Facts, source: str, measures: list[str]) -> list[Column]:
    """Return the paper's columns if its queries are measured; otherwise this run's columns."""
    if source in SETS:
        return _zero_shot(facts, source)
    inside = columns.in_domain(facts)
    named = {published.dataset(facts, column.targets[0]): column.targets[0] for column in inside}
    theirs = []
    for key in _all_keys(source):
        datasets = {published.DL: (published.DL19, published.DL20)}.get(key.dataset, (key.dataset,))
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
    theirs = [key for key in _all_keys(source) if key != published.AVERAGE]
    found = []
    for column in columns.zero_shot(facts):
        dataset = column.name
        if source == published.NANO:
            dataset = published.nano(facts, column.targets[0])
        key = Key(dataset, column.measure)
        if dataset:
            found.append(replace(column, key=key if key in theirs else None))
    if len(found) > 1:
        whole = {*theirs} <= {column.key for column in found} and len(found) == SETS[source]
        average = columns.together(found, "average")
        found.append(replace(average, key=published.AVERAGE if whole else None))
    return found


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


# --- tables and figures ---------------------------------------------------------------------------


def table(name: str, facts: Facts) -> Table:
    """Return the table of an exhibit."""
    if name == "table_latency":
        return _latency(facts)
    if name in OF_MASKS:
        masked = facts.masked_terms[shown_masks(facts)]
        if name == "figure_sampling":
            frame = pd.DataFrame(masked["example"])
        else:
            kinds = {kind: pd.DataFrame(masked[kind]["top"]) for kind in ("uniform", "importance")}
            frame = pd.concat(kinds, axis=1)
            frame.columns = [f"{kind} {('term', 'share')[at]}" for kind, at in frame.columns]
        return Table(f"The paper’s {OF_MASKS[name]}", frame, frame)
    row = EXHIBITS.loc[name]
    return grid(facts, only_means(facts), row["source"], row["title"], row["measures"])


def grid(
    facts: Facts, frames: Frames, source: str, title: str, measures: Sequence[str] = ()
) -> Table:
    """Show a published table's rows, each with the lines *paper* and *ours*.

    On other data than the paper's, a column has the published MRR@10 on MS MARCO instead.
    """
    shown = _columns(facts, source, list(measures))
    papers = any(column.key for column in shown)
    named = systems(facts, source)
    known = published.rows(source)
    labels = [*(known if papers or source in ("table 1", *SETS) else {}), *named]
    lines = []
    for label in dict.fromkeys(labels):
        row = known.get(label)
        lines += _lines(frames, label, named.get(label, ""), row, shown, papers=papers)
    if source == "table 1":
        for label, row in published.rows(published.FURTHER).items():
            lines += _lines(frames, label, "", row, shown, papers=papers)
    heads = [*HEADS, *(column.head for column in shown)]
    heads += [] if papers else [f"published: {published.DEV}, MRR@10"]
    texts = pd.DataFrame([[*names, *cells] for names, cells, _ in lines], columns=heads)
    numbers = pd.DataFrame([[*names, *values] for names, _, values in lines], columns=heads)
    origin = f"The paper’s {source}" if source != published.NANO else source
    caption = f"{origin}: {title}"
    if not papers:
        names = dict.fromkeys(target.collection for column in shown for target in column.targets)
        caption += f"; ours alone: {formats.listed([*names])} is not the paper’s data"
    if len(shown) > MOST_ACROSS:
        return Table(caption, *(_turned(frame) for frame in (texts, numbers)))
    return Table(caption, texts, numbers)


def _lines(
    frames: Frames, label: str, system: str, row: Row | None, shown: list[Column], *, papers: bool
) -> Iterator[tuple[list[str], list[str], list[float]]]:
    """Yield the lines of a row: its labels, its cells as texts, and as points."""
    kind = f" ({row.kind})" if row and row.kind else ""
    there = [row.values.get(column.key, math.nan) if row else math.nan for column in shown]
    elsewhere = row.values.get(published.MAIN, math.nan) if row else math.nan
    more = [] if papers else [elsewhere]
    if row and (papers or not system):
        values = [*there, *more]
        yield [f"{label}{kind}", "paper", row.source], [_points(each) for each in values], values
    if system:
        means = [frames.mean(system, column) for column in shown]
        texts = [*map(shown_mean, means), *map(_points, more)]
        values = [*(100 * mean.value for mean in means), *more]
        yield [f"{label}{kind}", "ours", system], texts, values


def _points(value: float) -> str:
    return formats.points(value / 100)


def _turned(frame: pd.DataFrame) -> pd.DataFrame:
    """Transpose a table: a row per collection, and a column per line."""
    names = frame["row"] + ", " + frame["line"]
    turned = frame.drop(columns=HEADS).T
    turned.columns = names.tolist()
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
    for form, (label, complexity, measure) in FORMS.items():
        paper = papers.get((label, measure), math.nan)
        ours = float(batch[form])
        row = {"form": form, "complexity": complexity, "paper, ms": paper, "ours, ms": ours}
        row |= {"paper, of MAE": paper / papers["MAE", _CPU], "ours, of MAE": ours / batch["MAE"]}
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


def figure(name: str, facts: Facts) -> Drawn:
    """Return the figure of an exhibit."""
    if name in OF_MASKS:
        masked = facts.masked_terms[shown_masks(facts)]
        draw = masked_figure if name == "figure_masked_terms" else sampling_figure
        return draw(masked)
    row = EXHIBITS.loc[name]
    source = row["source"]
    named = systems(facts, source)
    rows = published.rows(source)
    frames = only_means(facts)
    column = _columns(facts, source, row["measures"])[0]
    labels = [label for label in {**rows, **named} if label in named or column.key]
    ours = {}
    papers = {}
    for at, label in enumerate(labels):
        if label in named:
            ours[at] = 100 * frames.mean(named[label], column).value
        if label in rows and column.key in rows[label].values:
            papers[at] = rows[label].values[column.key]
    series = [
        Series(title, [*points], [*points.values()], hue)
        for title, points, hue in (("ours", ours, SERIES[0]), ("the paper", papers, GREY))
    ]
    title = f"The paper’s {source}: {row['title']}, {column.name}"
    return figures.lines(title, series, "passages per query", column.unit, names=labels)


def on_the_papers_data(facts: Facts, frames: Frames) -> list[Table]:
    """List the tables of which this run measures rows and columns of the paper."""
    found = []
    for row in EXHIBITS.itertuples():
        shown = _columns(facts, row.source, row.measures)
        if systems(facts, row.source) and any(column.key for column in shown):
            found.append(grid(facts, frames, row.source, row.title, row.measures))
    return found
