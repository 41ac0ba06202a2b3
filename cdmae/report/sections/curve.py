"""Show how many training queries replace pre-training: the measure over their number."""

from __future__ import annotations

from typing import Any

from cdmae import formats
from cdmae.config.kinds import TEACHERS
from cdmae.report import comparisons
from cdmae.report.charts import Figure, Series, lines
from cdmae.report.columns import Column, in_domain
from cdmae.report.facts import Facts
from cdmae.report.sections import Section, encoder_colour
from cdmae.report.sections.changes import distances
from cdmae.report.tables import Table


def section(facts: Facts) -> Section | None:
    """Draw a figure and a table per target for the stages of `report.curve`."""
    found = points(facts)
    columns = in_domain(facts) or [Column.of(facts, target) for target in facts.targets[:1]]
    if not found or not columns:
        return None
    tables = [table(column, found) for column in columns]
    return Section("curve", tables=tables, figures=[figure(column, found) for column in columns])


def points(facts: Facts) -> dict[str, dict[str, str]]:
    """Map encoders to the retrievers of the curve: for each stage, the measured system."""
    found: dict[str, dict[str, str]] = {}
    for stage in facts.report.curve:
        for name, entry in comparisons.retrievers(facts).items():
            if entry["stage"] == stage and not any(map(entry.get, TEACHERS)):
                found.setdefault(entry["encoder"], {}).setdefault(stage, name)
    return found


def count(facts: Facts, stage: str, system: str) -> str:
    """Return the number of training queries of a system; 0 if they were made from the passages."""
    queries = formats.count(facts.trained[system].about["queries"])
    collections = [facts.entries("stages")[name]["collection"] for name in facts.report.curve]
    made = facts.entries("stages")[stage]["collection"] != collections[-1]
    return f"0 ({queries} made)" if made else queries


def table(column: Column, found: dict[str, dict[str, str]]) -> Table:
    """Tabulate the means, and each difference from the encoder that the report compares with."""
    facts = column.facts
    labels: dict[str, list[Any]] = {"training queries": [], "encoder": []}
    pairs = []
    for stage in next(iter(found.values())):
        systems = [own[stage] for own in found.values() if stage in own]
        for encoder, own in found.items():
            if stage not in own:
                continue
            system = own[stage]
            others = [each for each in systems if system in comparisons.family(facts, each)]
            labels["training queries"].append(count(facts, stage, system))
            labels["encoder"].append(encoder)
            pairs.append((system, others[0] if others else system))
    target = column.target
    frame = distances(column, labels, pairs, "over the reference")
    caption = f"{column.unit} on {target} by the number of training queries"
    return Table.of(f"curve-{target.collection}-{target.split}", caption, frame, texts=list(labels))


def figure(column: Column, found: dict[str, dict[str, str]]) -> Figure | None:
    """Draw the measure over the number of training queries, one line per encoder."""
    facts = column.facts
    longest = max(found.values(), key=len)
    places = list(longest)
    series = [
        Series(
            encoder,
            [places.index(stage) for stage in own if stage in places],
            [100 * column.value(own[stage]) for stage in own if stage in places],
            encoder_colour(facts, encoder),
        )
        for encoder, own in found.items()
    ]
    target = column.target
    return lines(
        f"curve-{target.collection}-{target.split}",
        f"{column.unit} by the number of training queries, {target}",
        series,
        x_axis="training queries",
        y_axis=column.unit,
        x_names=[count(facts, stage, longest[stage]) for stage in places],
        markers=True,
        reference=(facts.bm25, 100 * column.value(facts.bm25)) if facts.bm25 else None,
    )
