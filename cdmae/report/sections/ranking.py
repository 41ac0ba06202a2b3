"""Which pre-training serves best: encoders that went through the same stage, ordered, and what the order is worth."""

from __future__ import annotations

import math
from typing import NamedTuple

from cdmae import formats
from cdmae.evaluation import significance
from cdmae.report.charts import Row, rows
from cdmae.report.comparisons import differences, noise
from cdmae.report.facts import Difference, Facts, Target
from cdmae.report.figures import Figure
from cdmae.report.markup import Markup, fill, tag
from cdmae.report.sections import (
    NOISE_AXIS,
    Section,
    colour,
    difference_cells,
    difference_row,
    main_target,
    panels,
    system_cell,
)
from cdmae.report.sections.answer import pretraining_seconds, verdict
from cdmae.report.tables import Cell, Table

LEAST = 4  # encoders that make a ranking
READINGS = {"better": "better", "worse": "worse", "open": "within the noise"}


class Ranking(NamedTuple):
    """The retrievers of a stage, best first by a measure on a target; their encoders alone differ."""

    stage: str
    target: Target
    measure: str
    systems: list[str]


def section(facts: Facts) -> Section | None:
    """A table, its reading and its pictures for every stage that enough encoders went through."""
    found = rankings(facts)
    if not found:
        return None
    tables = [ranking_table(facts, ranking) for ranking in found]
    pictures = [
        [figure for figure in (levels(facts, ranking), over_baseline(facts, ranking)) if figure] for ranking in found
    ]
    body = [
        part
        for ranking, table, figures in zip(found, tables, pictures, strict=True)
        for part in (tag("p", _lead(facts, ranking)), _reading(facts, ranking), table.html(), panels(figures))
    ]
    figures = [figure for some in pictures for figure in some]
    title = "Which pre-training serves best"
    return Section("ranking", title, "Ranking", Markup("".join(body)), tables=tables, figures=figures)


def rankings(facts: Facts) -> list[Ranking]:
    """One for each stage with more than three encoders, by the main measure of the main target.

    Of equal ones the first is that with the higher mean over all targets.
    """
    target, found = main_target(facts), []
    for stage in facts.entries("stages") if target else []:
        measure = facts.main_measure(target)
        systems = [name for name in _alike(facts, stage) if facts.by_seed(name, target, measure)]

        def height(name: str, measure: str = measure) -> tuple[float, float]:
            everywhere = math.fsum(facts.value(name, each, facts.main_measure(each)) for each in facts.targets)
            return facts.value(name, target, measure), everywhere

        if len(systems) >= LEAST:
            found.append(Ranking(stage, target, measure, sorted(systems, key=height, reverse=True)))
    return found


def ranking_table(facts: Facts, ranking: Ranking) -> Table:
    """The measure, its distance from the baseline, and what the pre-training took; best first."""
    against = compared(facts, ranking, facts.baseline)
    band = noise(facts, ranking.target, ranking.measure)
    body = []
    for name in ranking.systems:
        row = [_encoder(facts, name), system_cell(facts, name, ranking.target, ranking.measure)]
        if facts.baseline:
            found = against.get(name)
            reading = READINGS[verdict(found, band)] if found else "the baseline"
            row += [*difference_cells(found), reading]
        body.append([*row, _cost(facts, name)])
    head = ["encoder", formats.measure_name(ranking.measure)]
    if facts.baseline:
        head += [f"over {facts.baseline}", "95 % interval", "p, Holm", "reading"]
    caption = f"Encoders after {ranking.stage}, best first: {formats.measure_name(ranking.measure)} on {ranking.target}"
    return Table(f"ranking-{ranking.stage}", caption, [*head, "pre-training"], body, texts=["reading"])


def compared(facts: Facts, ranking: Ranking, reference: str) -> dict[str, Difference]:
    """Each system's difference from `reference`, p corrected after Holm for all of them; without the reference."""
    found = {name: facts.difference(name, reference, ranking.target, ranking.measure) for name in ranking.systems}
    given = {name: each for name, each in found.items() if each}
    corrected = significance.holm([each.p for each in given.values()])
    return {name: each._replace(p=p) for (name, each), p in zip(given.items(), corrected, strict=True)}


def levels(facts: Facts, ranking: Ranking) -> Figure:
    """The mean of each as a dot, with its standard deviation over seeds to either side."""
    entries = []
    for name in ranking.systems:
        cell = system_cell(facts, name, ranking.target, ranking.measure)
        value, deviation = float(cell.value), cell.spread.deviation if cell.spread else 0.0
        entries.append(
            Row(
                _encoder(facts, name), f"{cell.text} {cell.beside}".strip(), colour=colour(facts, name),
                interval=(value - deviation, value, value + deviation),
            )
        )  # fmt: skip
    measure = formats.measure_name(ranking.measure)
    axis = f"{measure}, times 100" + (f"; line: standard deviation of {len(facts.seeds)} seeds" * bool(facts.repeated))
    low = min(entry.interval[0] for entry in entries)
    title = f"{measure} after {ranking.stage}, {ranking.target}"
    return rows(f"ranking-{ranking.stage}", title, entries, low=low, axis=axis, beside=True)


def over_baseline(facts: Facts, ranking: Ranking) -> Figure | None:
    """The differences from the baseline with the interval over the queries and the noise of a seed."""
    band = noise(facts, ranking.target, ranking.measure)
    entries = [
        difference_row(_encoder(facts, name), found, colour(facts, name), band)
        for name, found in compared(facts, ranking, facts.baseline).items()
    ]
    title = f"{formats.measure_name(ranking.measure)} over {facts.baseline}, {ranking.target}"
    name = f"ranking-differences-{ranking.stage}"
    return rows(name, title, entries, axis=NOISE_AXIS, beside=True) if entries else None


def _alike(facts: Facts, stage: str) -> list[str]:
    """The retrievers of a stage that differ from the baseline, if it is one, or from the first in the encoder alone."""
    systems = facts.entries("systems")
    names = [
        name for name in facts.systems
        if systems.get(name, {}).get("kind") == "retriever" and systems[name].get("stage") == stage
        and not facts.entries("encoders").get(systems[name]["encoder"], {}).get("snapshot_of")
    ]  # fmt: skip
    if not names:
        return []
    reference = facts.baseline if facts.baseline in names else names[0]
    return [
        name for name in names
        if name == reference or {key.partition(".")[0] for key in differences(facts, reference, name)} == {"encoder"}
    ]  # fmt: skip


def _encoder(facts: Facts, system: str) -> str:
    return str(facts.entries("systems")[system]["encoder"])


def _cost(facts: Facts, system: str) -> Cell:
    """How long its pre-training took, of the first seed."""
    encoder = _encoder(facts, system)
    seconds = math.nan
    if facts.entries("encoders").get(encoder, {}).get("objective") != "none":
        seconds = float(pretraining_seconds(facts, encoder))
    return Cell(formats.duration(seconds), None if math.isnan(seconds) else seconds)


def _lead(facts: Facts, ranking: Ranking) -> Markup:
    text = (
        "{count} encoders went through {stage} alike; what differs is their pre-training, of which the table gives the "
        "time that seed {seed} took."
    )
    return fill(text, count=str(len(ranking.systems)), stage=tag("strong", ranking.stage), seed=str(facts.seed))


def _reading(facts: Facts, ranking: Ranking) -> Markup:
    """Who is better and worse than the baseline beyond doubt, and whom the first is ahead of."""
    band = noise(facts, ranking.target, ranking.measure)
    parts = []
    if facts.baseline:
        groups = _by_verdict(facts, compared(facts, ranking, facts.baseline), band)
        parts.append(fill("<b>Better than {baseline}:</b> {names}.", baseline=facts.baseline, names=groups["better"]))
        parts.append(fill("<b>Worse:</b> {names}.", names=groups["worse"]))
        parts.append(fill("<b>Within the noise:</b> {names}.", names=groups["open"]))
    first, *others = ranking.systems
    behind = _by_verdict(facts, compared(facts, ranking._replace(systems=others), first), band)
    parts.append(
        fill(
            "<b>Not measurably behind the first, {first}:</b> {names}.",
            first=_encoder(facts, first),
            names=behind["open"],
        )
    )
    how = (
        "Better and worse: p < .05 after Holm\N{RIGHT SINGLE QUOTATION MARK}s correction for the table, and by more "
        f"than {100 * band:.1f} points, the noise of one seed."
    )
    return Markup(tag("p", [Markup(f"{part} ") for part in parts]) + tag("p", how, class_="note"))


def _by_verdict(facts: Facts, found: dict[str, Difference], band: float) -> dict[str, str]:
    """The encoders in a sentence for each verdict; ``none`` where there are none."""
    groups: dict[str, list[str]] = {reading: [] for reading in READINGS}
    for name, each in found.items():
        groups[verdict(each, band)].append(_encoder(facts, name))
    return {reading: formats.listed(names) or formats.NONE for reading, names in groups.items()}
