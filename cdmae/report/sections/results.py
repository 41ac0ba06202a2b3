"""Compare every system on every collection: overview, distance from the baseline, all measures.

Collections that no query was trained on have a section of their own: the table of the field,
nDCG@10 and the average. So have encoders that went through the same stage, ordered: which
pre-training serves best, and what the order is worth.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

import pandas as pd

from cdmae import formats
from cdmae.report.charts import Figure, Row, rows
from cdmae.report.columns import (
    MOST_SETS,
    SIGNIFICANT,
    Column,
    everywhere,
    in_domain,
    main_column,
    together,
    zero_shot_measures,
)
from cdmae.report.comparisons import masking_pairs, retrievers
from cdmae.report.facts import Difference, Facts
from cdmae.report.recipes import differences
from cdmae.report.sections import READINGS, Section, colour, difference_cells, difference_figure
from cdmae.report.tables import Table, highlight

# by whether the difference is positive: beyond the noise of one seed, and within it
SURE, DOUBTFUL = {True: "▲", False: "▼"}, {True: "△", False: "▽"}
LEAST = 4  # encoders that make a ranking
WIDE = 8  # more zero-shot columns than this are turned into rows, or cut into several tables


def section(facts: Facts) -> Section | None:
    """Show the overview with the distance from the baseline, then the in-domain collections."""
    columns = everywhere(facts)
    tables = [measures_table(column) for column in in_domain(facts)]
    if not tables:
        return None
    if len(columns) > 1:
        overview = _across({column.head: column for column in columns})
        tables.insert(0, Table.of("overview", "Every system on every collection", overview))
    return Section(
        "results", {"facts": facts}, tables, [against_baseline(column) for column in columns]
    )


def measures_table(column: Column) -> Table:
    """Set systems down, all measures of the column's target across."""
    facts, target = column.facts, column.target
    columns = [Column.of(facts, target, measure) for measure in facts.measures_of(target)]
    frame = _across({column.unit: column for column in columns})
    known = frame.iloc[:, 1:].map(lambda cell: cell.value is not None).any(axis=1)
    caption = f"{target}, {formats.plural(facts.queries(target), 'query')}"
    return Table.of(f"results-{target.collection}-{target.split}", caption, frame[known])


def _across(columns: Mapping[str, Column]) -> pd.DataFrame:
    """Set systems down and columns across under their names, the best of each marked."""
    cells = pd.DataFrame({name: system_cells(column) for name, column in columns.items()})
    return cells.apply(highlight).reset_index(names="system")


def system_cells(column: Column) -> pd.Series:
    """Make a cell per system: its mean in points.

    On a single target a mark shows a difference from the baseline.
    """
    facts, cells = column.facts, {}
    single = sum(map(len, column.sets)) == 1
    gaps = column.compared(facts.systems, facts.baseline) if single else {}
    for name in facts.systems:
        mark, note, gap = "", "", gaps.get(name)
        if gap:
            p = formats.probability(gap.p)
            note = f"against {facts.baseline}: {formats.signed(gap.difference)}, {p}"
        if gap and gap.p < SIGNIFICANT:
            mark = (DOUBTFUL if column.verdict(gap) == "noise" else SURE)[gap.difference > 0]
        cells[name] = column.cell(name, mark=mark, note=note)
    return pd.Series(cells)


def against_baseline(column: Column) -> Figure | None:
    """Draw the differences from the baseline with their intervals.

    Without BM25 and fusions, where there are others: far off, they would flatten the scale.
    """
    facts = column.facts
    others = (
        [system for system in facts.systems if system != facts.baseline] if facts.baseline else []
    )
    neural = [
        system for system in others if facts.system(system).get("kind") not in ("bm25", "fusion")
    ]
    pairs = [(system, system, facts.baseline, column) for system in neural or others]
    file = re.sub(r"[^\w.]+", "-", f"baseline {column.head}".lower())
    return difference_figure(
        file, f"{column.name}: {column.unit} minus {facts.baseline}’s", pairs, beside=True
    )


def zero_shot(facts: Facts) -> Section | None:
    """Show a table a measure, and how far the systems are from the baseline on average."""
    measured, pairs = zero_shot_measures(facts), masking_pairs(facts)
    if not measured:
        return None
    tables = [table for columns in measured for table in _zero_shot_tables(columns)]
    figures, columns = [], measured[-1]
    if len(columns) > 1:
        figures.append(against_baseline(together(columns, "Zero-shot average")))
    if pairs and len(columns) > MOST_SETS:  # the first screen has not said it
        every = [(column.name, *pairs[0], column) for column in columns]
        title = "{} minus {}, zero-shot".format(*pairs[0])
        figures.append(difference_figure("zero-shot", title, every))
    corpora = {entry.get("collection") for entry in facts.entries("encoders").values()}
    collections = {
        target.collection for column in columns for some in column.sets for target in some
    }
    seen = sorted(collections & corpora)
    values = {
        "facts": facts,
        "seen": seen,
        "legend_is_above": bool(in_domain(facts)),
        "wide": len(tables) > 2,
    }
    return Section("zero-shot", values, tables, figures)


def _zero_shot_tables(columns: list[Column]) -> list[Table]:
    """Set collections across, and their average; many of them down, a few systems to a table."""
    first = columns[0]
    shown = [*columns, together(columns, "average")] if len(columns) > 1 else columns
    frame = _across({column.name: replace(column, measure=first.measure) for column in shown})
    caption = f"{first.unit} on collections whose queries were not trained on"
    file = re.sub(r"[^\w.]+", "-", f"zero-shot {first.unit}".lower())
    if len(shown) <= WIDE:
        return [Table.of(file, caption, frame)]
    turned, tables = frame.set_index("system").T, []
    for start in range(0, turned.shape[1], WIDE):
        name, more = (file, "") if start == 0 else (f"{file}-{start // WIDE + 1}", ", continued")
        some = turned.iloc[:, start : start + WIDE].reset_index(names="collection")
        tables.append(Table.of(name, caption + more, some))
    return tables


# --- which pre-training serves best ---------------------------------------------------------------


class Ranking(NamedTuple):
    """The retrievers of a stage, best first in a column, and their encoders: these alone differ."""

    stage: str
    column: Column
    systems: dict[str, str]

    def judged(self, reference: str) -> dict[str, tuple[Difference, str]]:
        """Subtract `reference` from every other system and judge each difference.

        p is corrected after Holm for all of them.
        """
        gaps = self.column.compared(self.systems, reference)
        return {name: (gap, self.column.verdict(gap)) for name, gap in gaps.items()}


def ranking(facts: Facts) -> Section | None:
    """Show a table, its reading and its figures for every stage with enough encoders."""
    parts = []
    for one in rankings(facts):
        stage, column, systems = one
        pairs = [(encoder, system, facts.baseline, column) for system, encoder in systems.items()]
        title = f"{column.unit} over {facts.baseline}, {column.target}"
        over_baseline = difference_figure(f"ranking-differences-{stage}", title, pairs, beside=True)
        parts.append({
            "ranking": one,
            "table": ranking_table(one),
            "figures": [levels(one), *([over_baseline] if over_baseline else [])],
            "against_baseline": one.judged(facts.baseline),
            "against_first": one.judged(next(iter(systems))),
        })  # fmt: skip
    if not parts:
        return None
    figures = [figure for part in parts for figure in part["figures"]]
    return Section(
        "ranking", {"facts": facts, "parts": parts}, [part["table"] for part in parts], figures
    )


def rankings(facts: Facts) -> list[Ranking]:
    """Order the encoders of each stage with more than three, by the main target's main measure.

    Their systems differ from the baseline, or else the first, in the encoder alone. Of equal ones
    the first is that with the higher mean over all targets.
    """
    column, systems, ranked = main_column(facts), retrievers(facts), []
    every = [Column.of(facts, target) for target in facts.targets]
    snapshots = {
        name for name, entry in facts.entries("encoders").items() if entry.get("snapshot_of")
    }
    for stage in facts.entries("stages"):
        names = [
            name
            for name, of in systems.items()
            if of["stage"] == stage and of["encoder"] not in snapshots
        ]
        reference = facts.baseline if facts.baseline in names else next(iter(names), "")
        others = {
            name: {key.partition(".")[0] for key in differences(facts, reference, name)}
            for name in names
        }
        alike = [
            name for name, parts in others.items() if name == reference or parts == {"encoder"}
        ]
        heights = {
            name: (column.value(name), math.fsum(one.value(name) for one in every))
            for name in alike
        }
        names = sorted(
            (name for name, height in heights.items() if height[0] >= 0),
            key=heights.get,
            reverse=True,
        )
        if len(names) >= LEAST:
            ranked.append(Ranking(stage, column, {name: facts.encoder_of(name) for name in names}))
    return ranked


def ranking_table(ranked: Ranking) -> Table:
    """Tabulate the measure, its distance from the baseline, and pre-training cost; best first."""
    stage, column, systems = ranked
    facts, entries = column.facts, column.facts.entries("encoders")
    frame = pd.DataFrame({"encoder": systems.values(), column.unit: map(column.cell, systems)})
    if facts.baseline:
        judged = ranked.judged(facts.baseline)
        judged = [judged.get(system, (None, "")) for system in systems]
        cells = [difference_cells(gap) for gap, _ in judged]
        frame[[f"over {facts.baseline}", "95 % interval", "p, Holm"]] = pd.DataFrame(cells)
        frame["reading"] = [READINGS.get(reading, "the baseline") for _, reading in judged]
    frame["pre-training"] = [  # of the first seed
        math.nan
        if entries.get(encoder, {}).get("objective") == "none"
        else facts.pretraining_seconds(encoder)
        for encoder in systems.values()
    ]
    caption = f"Encoders after {stage}, best first: {column.unit} on {column.target}"
    return Table.of(
        f"ranking-{stage}", caption, frame, {"pre-training": formats.duration}, texts=["reading"]
    )


def levels(ranked: Ranking) -> Figure | None:
    """Draw the mean of each as a dot, with its standard deviation over seeds to either side."""
    stage, column, systems = ranked
    entries = []
    for system, encoder in systems.items():
        cell = column.cell(system)
        value, deviation = float(cell.value), cell.spread.deviation if cell.spread else 0.0
        interval, shown = (
            (value - deviation, value, value + deviation),
            f"{cell.text} {cell.beside}".strip(),
        )
        entries.append(Row(encoder, shown, interval=interval, colour=colour(column.facts, system)))
    axis = f"{column.unit}, times 100"
    if column.facts.repeated:
        axis += f"; line: standard deviation of {len(column.facts.seeds)} seeds"
    low, title = (
        min(entry.interval[0] for entry in entries),
        f"{column.unit} after {stage}, {column.target}",
    )
    return rows(f"ranking-{stage}", title, entries, low=low, axis=axis, beside=True)
