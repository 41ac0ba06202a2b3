"""Which pre-training serves best: encoders that went through the same stage, ordered, and what the order is worth."""

from __future__ import annotations

import math
from typing import NamedTuple

from cdmae import formats
from cdmae.report.charts import Figure, Row, rows
from cdmae.report.comparisons import compared, differences, noise
from cdmae.report.facts import Facts, Target
from cdmae.report.sections import (
    Section,
    colour,
    difference_cells,
    difference_figure,
    main_target,
    number_cell,
    system_cell,
)
from cdmae.report.sections.answer import pretraining_seconds, verdict
from cdmae.report.tables import Table

LEAST = 4  # encoders that make a ranking
READINGS = {"better": "better", "worse": "worse", "open": "within the noise"}


class Ranking(NamedTuple):
    """The retrievers of a stage, best first by a measure on a target; their encoders alone differ."""

    stage: str
    target: Target
    measure: str
    systems: list[str]


def section(facts: Facts) -> Section | None:
    """Show a table, its reading and its figures for every stage that enough encoders went through."""
    parts = []
    for ranking in rankings(facts):
        first, *others = ranking.systems
        figures = [levels(facts, ranking), over_baseline(facts, ranking)]
        parts.append({
            "ranking": ranking,
            "table": ranking_table(facts, ranking),
            "figures": [figure for figure in figures if figure],
            "band": noise(facts, ranking.target, ranking.measure),
            "against_baseline": by_verdict(facts, ranking, facts.baseline),
            "first": _encoder(facts, first),
            "against_first": by_verdict(facts, ranking._replace(systems=others), first),
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
            ranked.append(Ranking(stage, target, measure, sorted(heights, key=heights.get, reverse=True)))
    return ranked


def ranking_table(facts: Facts, ranking: Ranking) -> Table:
    """Tabulate the measure, its distance from the baseline, and what the pre-training took; best first."""
    measure = formats.measure_name(ranking.measure)
    gaps = compared(facts, ranking.systems, facts.baseline, ranking.target, ranking.measure)
    band = noise(facts, ranking.target, ranking.measure)
    body = []
    for name in ranking.systems:
        row = [_encoder(facts, name), system_cell(facts, name, [[ranking.target]], ranking.measure)]
        if facts.baseline:
            gap = gaps.get(name)
            row += [*difference_cells(gap), READINGS[verdict(gap, band)] if gap else "the baseline"]
        encoder = _encoder(facts, name)
        trained = facts.entries("encoders").get(encoder, {}).get("objective") != "none"
        seconds = pretraining_seconds(facts, encoder) if trained else None  # of the first seed
        body.append([*row, number_cell(seconds, formats.duration)])
    beside = [f"over {facts.baseline}", "95 % interval", "p, Holm", "reading"] if facts.baseline else []
    caption = f"Encoders after {ranking.stage}, best first: {measure} on {ranking.target}"
    head = ["encoder", measure, *beside, "pre-training"]
    return Table(f"ranking-{ranking.stage}", caption, head, body, texts=["reading"])


def by_verdict(facts: Facts, ranking: Ranking, reference: str) -> dict[str, list[str]]:
    """Group the encoders by what the comparison with `reference` says of them."""
    band = noise(facts, ranking.target, ranking.measure)
    groups: dict[str, list[str]] = {reading: [] for reading in READINGS}
    for name, gap in compared(facts, ranking.systems, reference, ranking.target, ranking.measure).items():
        groups[verdict(gap, band)].append(_encoder(facts, name))
    return groups


def levels(facts: Facts, ranking: Ranking) -> Figure:
    """Draw the mean of each as a dot, with its standard deviation over seeds to either side."""
    entries = []
    for name in ranking.systems:
        cell = system_cell(facts, name, [[ranking.target]], ranking.measure)
        value, deviation = float(cell.value), cell.spread.deviation if cell.spread else 0.0
        interval = (value - deviation, value, value + deviation)
        shown = f"{cell.text} {cell.beside}".strip()
        entries.append(Row(_encoder(facts, name), shown, interval=interval, colour=colour(facts, name)))
    measure = formats.measure_name(ranking.measure)
    axis = f"{measure}, times 100" + (f"; line: standard deviation of {len(facts.seeds)} seeds" * bool(facts.repeated))
    low = min(entry.interval[0] for entry in entries)
    title = f"{measure} after {ranking.stage}, {ranking.target}"
    return rows(f"ranking-{ranking.stage}", title, entries, low=low, axis=axis, beside=True)


def over_baseline(facts: Facts, ranking: Ranking) -> Figure | None:
    """Draw the differences from the baseline with the interval over the queries and the noise of a seed."""
    pairs = [(_encoder(facts, name), name, facts.baseline, [[ranking.target]]) for name in ranking.systems]
    title = f"{formats.measure_name(ranking.measure)} over {facts.baseline}, {ranking.target}"
    return difference_figure(facts, f"ranking-differences-{ranking.stage}", title, pairs, beside=True)


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


def _encoder(facts: Facts, system: str) -> str:
    return str(facts.entries("systems")[system]["encoder"])
