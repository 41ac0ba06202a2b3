"""Rank the encoders that were fine-tuned by the same stage, and test their differences."""

from __future__ import annotations

import math
from typing import NamedTuple

import pandas as pd

from cdmae import formats
from cdmae.evaluation.significance import Difference
from cdmae.report.charts import Figure, Row, rows
from cdmae.report.columns import Column, main_column
from cdmae.report.comparisons import retrievers
from cdmae.report.facts import Facts
from cdmae.report.recipes import differences
from cdmae.report.sections import (
    INTERVAL,
    Section,
    colour,
    difference_cells,
    difference_figure,
    reading,
)
from cdmae.report.tables import Table

LEAST = 4  # the number of encoders that a ranking needs


class Ranking(NamedTuple):
    """The retrievers of one stage that differ only in their encoders, with the best mean first.

    systems: maps each system to its encoder.
    """

    stage: str
    column: Column
    systems: dict[str, str]

    def judged(self, reference: str) -> dict[str, tuple[Difference, str]]:
        """Subtract `reference` from every other system; return differences and verdicts.

        The p-values have Holm's correction.
        """
        gaps = self.column.compared(self.systems, reference)
        return {name: (gap, gap.verdict) for name, gap in gaps.items()}


def section(facts: Facts) -> Section | None:
    """Show a table, its interpretation and its figures for every stage with enough encoders."""
    parts = [_part(ranked, facts) for ranked in rankings(facts)]
    if not parts:
        return None
    tables = [part["table"] for part in parts]
    figures = [figure for part in parts for figure in part["figures"]]
    return Section("ranking", {"facts": facts, "parts": parts}, tables, figures)


def _part(ranked: Ranking, facts: Facts) -> dict[str, object]:
    """Gather the table, the figures and the tests for one ranking."""
    stage, column, systems = ranked
    pairs = [(encoder, system, facts.baseline, column) for system, encoder in systems.items()]
    title = f"{column.unit} over {facts.baseline}, {column.target}"
    over_baseline = difference_figure(f"ranking-differences-{stage}", title, pairs, beside=True)
    figures = [levels(ranked), over_baseline]
    return {
        "ranking": ranked,
        "table": ranking_table(ranked),
        "figures": [figure for figure in figures if figure],
        "against_baseline": ranked.judged(facts.baseline),
        "against_first": ranked.judged(next(iter(systems))),
    }


def rankings(facts: Facts) -> list[Ranking]:
    """Rank the encoders of each stage with more than three, by the main target's main measure.

    The systems differ from the baseline only in the encoder; if the stage lacks the baseline, its
    first system replaces it. Encoders with equal means are ordered by the mean over all targets.
    """
    column = main_column(facts)
    if not column:
        return []
    every = [Column.of(facts, target) for target in facts.targets]
    ranked = []
    for stage in facts.entries("stages"):
        heights = {}
        for name in _alike(facts, stage):
            value = column.value(name)
            if value >= 0:  # false for nan
                heights[name] = (value, math.fsum(one.value(name) for one in every))
        names = sorted(heights, key=heights.get, reverse=True)
        if len(names) >= LEAST:
            systems = {name: facts.encoder_of(name) for name in names}
            ranked.append(Ranking(stage, column, systems))
    return ranked


def _alike(facts: Facts, stage: str) -> list[str]:
    """List the retrievers of a stage that differ from its reference only in the encoder."""
    encoders = facts.entries("encoders")
    names = [
        name
        for name, entry in retrievers(facts).items()
        if entry["stage"] == stage and not encoders.get(entry["encoder"], {}).get("snapshot_of")
    ]
    reference = facts.baseline if facts.baseline in names else next(iter(names), "")
    found = []
    for name in names:
        parts = {key.partition(".")[0] for key in differences(facts, reference, name)}
        if name == reference or parts == {"encoder"}:
            found.append(name)
    return found


def ranking_table(ranked: Ranking) -> Table:
    """Tabulate the measure, the difference from the baseline, and the cost of the pre-training."""
    stage, column, systems = ranked
    facts = column.facts
    frame = pd.DataFrame({"encoder": systems.values(), column.unit: map(column.cell, systems)})
    if facts.baseline:
        judged = ranked.judged(facts.baseline)
        gaps = [judged.get(system, (None, "")) for system in systems]
        cells = [difference_cells(gap) for gap, _ in gaps]
        frame[[f"over {facts.baseline}", INTERVAL, "p, Holm"]] = pd.DataFrame(cells)
        frame["reading"] = [reading(gap) if gap else "the baseline" for gap, _ in gaps]
    frame["pre-training"] = [_seconds(facts, encoder) for encoder in systems.values()]
    caption = f"Encoders after {stage}, best first: {column.unit} on {column.target}"
    forms = {"pre-training": formats.duration}
    return Table.of(f"ranking-{stage}", caption, frame, forms, texts=["reading"])


def _seconds(facts: Facts, encoder: str) -> float:
    """Return the duration of an encoder's pre-training in seconds (first seed); nan without any."""
    if facts.entries("encoders").get(encoder, {}).get("objective") == "none":
        return math.nan
    return facts.pretraining_seconds(encoder)


def levels(ranked: Ranking) -> Figure | None:
    """Draw each system's mean as a dot, and its standard deviation over seeds as a line."""
    stage, column, systems = ranked
    entries = []
    for system, encoder in systems.items():
        cell = column.cell(system)
        value = float(cell.value)
        deviation = cell.spread.deviation if cell.spread else 0.0
        interval = (value - deviation, value, value + deviation)
        shown = f"{cell.text} {cell.beside}".strip()
        entries.append(Row(encoder, shown, interval=interval, colour=colour(column.facts, system)))
    axis = f"{column.unit}, times 100"
    if column.facts.repeated:
        axis += f"; line: standard deviation of {len(column.facts.seeds)} seeds"
    low = min(entry.interval[0] for entry in entries)
    title = f"{column.unit} after {stage}, {column.target}"
    return rows(f"ranking-{stage}", title, entries, low=low, axis=axis, beside=True)
