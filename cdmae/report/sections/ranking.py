"""Which pre-training serves best: encoders that went through the same stage, ordered, and what the order is worth."""

from __future__ import annotations

import math
from typing import NamedTuple

import pandas as pd

from cdmae import formats
from cdmae.evaluation.significance import Difference
from cdmae.report.charts import Figure, Row, rows
from cdmae.report.comparisons import compared, differences, noise
from cdmae.report.facts import Facts, Target
from cdmae.report.sections import (
    Section,
    colour,
    difference_cells,
    difference_figure,
    main_target,
    system_cell,
)
from cdmae.report.sections.answer import pretraining_seconds, verdict
from cdmae.report.tables import Table

LEAST = 4  # encoders that make a ranking
READINGS = {"better": "better", "worse": "worse", "open": "within the noise"}


class Ranking(NamedTuple):
    """The retrievers of a stage, best first by a measure on a target, and their encoders: these alone differ."""

    stage: str
    target: Target
    measure: str
    systems: dict[str, str]


def section(facts: Facts) -> Section | None:
    """Show a table, its reading and its figures for every stage that enough encoders went through."""
    parts = []
    for ranking in rankings(facts):
        stage, target, measure, systems = ranking
        name = formats.measure_name(measure)
        pairs = [(encoder, system, facts.baseline, [[target]]) for system, encoder in systems.items()]
        title = f"{name} over {facts.baseline}, {target}"
        over_baseline = difference_figure(facts, f"ranking-differences-{stage}", title, pairs, beside=True)
        parts.append({
            "ranking": ranking,
            "table": ranking_table(facts, ranking),
            "figures": [levels(facts, ranking), *([over_baseline] if over_baseline else [])],
            "band": noise(facts, target, measure),
            "against_baseline": judged(facts, ranking, facts.baseline),
            "against_first": judged(facts, ranking, next(iter(systems))),
        })  # fmt: skip
    if not parts:
        return None
    figures = [figure for part in parts for figure in part["figures"]]
    return Section("ranking", {"facts": facts, "parts": parts}, [part["table"] for part in parts], figures)


def rankings(facts: Facts) -> list[Ranking]:
    """Order the encoders of each stage with more than three, by the main measure of the main target.

    Of equal ones the first is that with the higher mean over all targets.
    """
    target, ranked = main_target(facts), []
    for stage in facts.entries("stages") if target else []:
        measure = facts.main_measure(target)
        heights = {
            name: (
                facts.value(name, target, measure),
                math.fsum(facts.value(name, other, facts.main_measure(other)) for other in facts.targets),
            )
            for name in _alike(facts, stage)
            if facts.by_seed(name, target, measure)
        }
        if len(heights) >= LEAST:
            names, systems = sorted(heights, key=heights.get, reverse=True), facts.entries("systems")
            ranked.append(Ranking(stage, target, measure, {name: systems[name]["encoder"] for name in names}))
    return ranked


def ranking_table(facts: Facts, ranking: Ranking) -> Table:
    """Tabulate the measure, its distance from the baseline, and what the pre-training took; best first."""
    stage, target, measure, systems = ranking
    name, entries = formats.measure_name(measure), facts.entries("encoders")
    frame = pd.DataFrame({"encoder": systems.values()})
    frame[name] = [system_cell(facts, system, [[target]], measure) for system in systems]
    if facts.baseline:
        gaps = judged(facts, ranking, facts.baseline)
        gaps = [gaps.get(system, (None, "")) for system in systems]
        cells = [difference_cells(gap) for gap, _ in gaps]
        frame[[f"over {facts.baseline}", "95 % interval", "p, Holm"]] = pd.DataFrame(cells)
        frame["reading"] = [READINGS.get(reading, "the baseline") for _, reading in gaps]
    frame["pre-training"] = [  # of the first seed
        math.nan if entries.get(encoder, {}).get("objective") == "none" else pretraining_seconds(facts, encoder)
        for encoder in systems.values()
    ]
    caption = f"Encoders after {stage}, best first: {name} on {target}"
    return Table.of(f"ranking-{stage}", caption, frame, {"pre-training": formats.duration}, texts=["reading"])


def judged(facts: Facts, ranking: Ranking, reference: str) -> dict[str, tuple[Difference, str]]:
    """Subtract `reference` from every other system, p corrected after Holm for all; with the verdict on each."""
    _, target, measure, systems = ranking
    gaps, band = compared(facts, systems, reference, target, measure), noise(facts, target, measure)
    return {name: (gap, verdict(gap, band)) for name, gap in gaps.items()}


def levels(facts: Facts, ranking: Ranking) -> Figure:
    """Draw the mean of each as a dot, with its standard deviation over seeds to either side."""
    stage, target, measure, systems = ranking
    entries = []
    for system, encoder in systems.items():
        cell = system_cell(facts, system, [[target]], measure)
        value, deviation = float(cell.value), cell.spread.deviation if cell.spread else 0.0
        interval, shown = (value - deviation, value, value + deviation), f"{cell.text} {cell.beside}".strip()
        entries.append(Row(encoder, shown, interval=interval, colour=colour(facts, system)))
    name = formats.measure_name(measure)
    axis = f"{name}, times 100" + (f"; line: standard deviation of {len(facts.seeds)} seeds" * bool(facts.repeated))
    low = min(entry.interval[0] for entry in entries)
    return rows(f"ranking-{stage}", f"{name} after {stage}, {target}", entries, low=low, axis=axis, beside=True)


def _alike(facts: Facts, stage: str) -> list[str]:
    """List the retrievers of a stage that differ from the baseline, or else the first, in the encoder alone."""
    systems, encoders = facts.entries("systems"), facts.entries("encoders")
    names = [
        name
        for name, entry in systems.items()
        if name in facts.systems and (entry.get("kind"), entry.get("stage")) == ("retriever", stage)
        and not encoders.get(entry["encoder"], {}).get("snapshot_of")
    ]  # fmt: skip
    reference = facts.baseline if facts.baseline in names else next(iter(names), "")
    return [
        name for name in names
        if name == reference or {key.partition(".")[0] for key in differences(facts, reference, name)} == {"encoder"}
    ]  # fmt: skip
