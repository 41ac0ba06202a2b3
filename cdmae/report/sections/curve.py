"""Show how many training queries replace pre-training: the measure over their number."""

from __future__ import annotations

from typing import Any, NamedTuple

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


class Place(NamedTuple):
    """A number of training queries; queries made from the passages come before labelled ones."""

    labelled: bool
    queries: int

    def __str__(self) -> str:
        """Return the number of labelled queries, with made ones in brackets."""
        number = formats.count(self.queries)
        return number if self.labelled else f"0 ({number} made)"


def points(facts: Facts) -> dict[str, dict[Place, str]]:
    """Map encoders to the retrievers of the curve: at each place, the measured system."""
    stages = facts.entries("stages")
    found: dict[str, dict[Place, str]] = {}
    for stage in facts.report.curve:
        labelled = stages[stage]["collection"] == stages[facts.report.curve[-1]]["collection"]
        for name, entry in comparisons.retrievers(facts).items():
            if entry["stage"] == stage and not any(map(entry.get, TEACHERS)):
                place = Place(labelled, facts.trained[name].about["queries"])
                found.setdefault(entry["encoder"], {}).setdefault(place, name)
    return found


def places(found: dict[str, dict[Place, str]]) -> list[Place]:
    """List the places of all encoders in ascending order."""
    return sorted({place for own in found.values() for place in own})


def table(column: Column, found: dict[str, dict[Place, str]]) -> Table:
    """Tabulate the means, and each difference from the encoder that the report compares with."""
    facts = column.facts
    labels: dict[str, list[Any]] = {"training queries": [], "encoder": []}
    pairs = []
    for place in places(found):
        systems = {encoder: own[place] for encoder, own in found.items() if place in own}
        for encoder, system in systems.items():
            compared = [
                each for each in systems.values() if system in comparisons.family(facts, each)
            ]
            labels["training queries"].append(str(place))
            labels["encoder"].append(encoder)
            pairs.append((system, compared[0] if compared else system))
    target = column.target
    frame = distances(column, labels, pairs, "over the reference")
    caption = f"{column.unit} on {target} by the number of training queries"
    return Table.of(f"curve-{target.collection}-{target.split}", caption, frame, texts=list(labels))


def figure(column: Column, found: dict[str, dict[Place, str]]) -> Figure | None:
    """Draw the measure over the number of training queries, one line per encoder."""
    facts = column.facts
    axis = places(found)
    series = [
        Series(
            encoder,
            [axis.index(place) for place in own],
            [100 * column.value(system) for system in own.values()],
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
        x_names=[str(place) for place in axis],
        markers=True,
        reference=(facts.bm25, 100 * column.value(facts.bm25)) if facts.bm25 else None,
    )
