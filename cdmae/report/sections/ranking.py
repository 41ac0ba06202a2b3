"""Which pre-training serves best: encoders that went through the same stage, ordered, and what the order is worth."""

from __future__ import annotations

import math
from typing import NamedTuple

import pandas as pd

from cdmae import formats
from cdmae.report.charts import Figure, Row, rows
from cdmae.report.columns import Column, main_column
from cdmae.report.comparisons import differences, retrievers
from cdmae.report.facts import Difference, Facts
from cdmae.report.sections import Section, colour, difference_cells, difference_figure
from cdmae.report.tables import Table

LEAST = 4  # encoders that make a ranking
READINGS = {"better": "better", "worse": "worse", "open": "within the noise"}


class Ranking(NamedTuple):
    """The retrievers of a stage, best first in a column, and their encoders: these alone differ."""

    stage: str
    column: Column
    systems: dict[str, str]

    def judged(self, reference: str) -> dict[str, tuple[Difference, str]]:
        """Subtract `reference` from every other system, p corrected after Holm for all; with the verdict on each."""
        gaps = self.column.compared(self.systems, reference)
        return {name: (gap, self.column.verdict(gap)) for name, gap in gaps.items()}


def section(facts: Facts) -> Section | None:
    """Show a table, its reading and its figures for every stage that enough encoders went through."""
    parts = []
    for ranking in rankings(facts):
        stage, column, systems = ranking
        pairs = [(encoder, system, facts.baseline, column) for system, encoder in systems.items()]
        title = f"{column.unit} over {facts.baseline}, {column.target}"
        over_baseline = difference_figure(f"ranking-differences-{stage}", title, pairs, beside=True)
        parts.append({
            "ranking": ranking,
            "table": ranking_table(ranking),
            "figures": [levels(ranking), *([over_baseline] if over_baseline else [])],
            "against_baseline": ranking.judged(facts.baseline),
            "against_first": ranking.judged(next(iter(systems))),
        })  # fmt: skip
    if not parts:
        return None
    figures = [figure for part in parts for figure in part["figures"]]
    return Section("ranking", {"facts": facts, "parts": parts}, [part["table"] for part in parts], figures)


def rankings(facts: Facts) -> list[Ranking]:
    """Order the encoders of each stage with more than three, by the main measure of the main target.

    Of equal ones the first is that with the higher mean over all targets.
    """
    column, ranked = main_column(facts), []
    every = [Column.of(facts, target) for target in facts.targets]
    for stage in facts.entries("stages") if column else []:
        heights = {name: (column.value(name), math.fsum(one.value(name) for one in every))
                   for name in _alike(facts, stage)}  # fmt: skip
        names = sorted((name for name, height in heights.items() if height[0] >= 0), key=heights.get, reverse=True)
        if len(names) >= LEAST:
            ranked.append(Ranking(stage, column, {name: facts.encoder_of(name) for name in names}))
    return ranked


def ranking_table(ranking: Ranking) -> Table:
    """Tabulate the measure, its distance from the baseline, and what the pre-training took; best first."""
    stage, column, systems = ranking
    facts, entries = column.facts, column.facts.entries("encoders")
    frame = pd.DataFrame({"encoder": systems.values(), column.unit: map(column.cell, systems)})
    if facts.baseline:
        judged = ranking.judged(facts.baseline)
        judged = [judged.get(system, (None, "")) for system in systems]
        cells = [difference_cells(gap) for gap, _ in judged]
        frame[[f"over {facts.baseline}", "95 % interval", "p, Holm"]] = pd.DataFrame(cells)
        frame["reading"] = [READINGS.get(reading, "the baseline") for _, reading in judged]
    frame["pre-training"] = [  # of the first seed
        math.nan if entries.get(encoder, {}).get("objective") == "none" else facts.pretraining_seconds(encoder)
        for encoder in systems.values()
    ]
    caption = f"Encoders after {stage}, best first: {column.unit} on {column.target}"
    return Table.of(f"ranking-{stage}", caption, frame, {"pre-training": formats.duration}, texts=["reading"])


def levels(ranking: Ranking) -> Figure | None:
    """Draw the mean of each as a dot, with its standard deviation over seeds to either side."""
    stage, column, systems = ranking
    entries = []
    for system, encoder in systems.items():
        cell = column.cell(system)
        value, deviation = float(cell.value), cell.spread.deviation if cell.spread else 0.0
        interval, shown = (value - deviation, value, value + deviation), f"{cell.text} {cell.beside}".strip()
        entries.append(Row(encoder, shown, interval=interval, colour=colour(column.facts, system)))
    axis = f"{column.unit}, times 100"
    if column.facts.repeated:
        axis += f"; line: standard deviation of {len(column.facts.seeds)} seeds"
    low, title = min(entry.interval[0] for entry in entries), f"{column.unit} after {stage}, {column.target}"
    return rows(f"ranking-{stage}", title, entries, low=low, axis=axis, beside=True)


def _alike(facts: Facts, stage: str) -> list[str]:
    """List the retrievers of a stage that differ from the baseline, or else the first, in the encoder alone."""
    names = [
        name
        for name, entry in retrievers(facts).items()
        if entry["stage"] == stage and not facts.entries("encoders").get(entry["encoder"], {}).get("snapshot_of")
    ]
    reference = facts.baseline if facts.baseline in names else next(iter(names), "")
    return [
        name for name in names
        if name == reference or {key.partition(".")[0] for key in differences(facts, reference, name)} == {"encoder"}
    ]  # fmt: skip
