"""Make the first section: which system to use, with its quality and its cost."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from cdmae import formats
from cdmae.evaluation.significance import Difference
from cdmae.report import costs
from cdmae.report.charts import Figure
from cdmae.report.columns import Column, main_column
from cdmae.report.comparisons import retrievers
from cdmae.report.costs import Cost
from cdmae.report.facts import Facts
from cdmae.report.plots import Point, scatter
from cdmae.report.sections import Section, colour
from cdmae.report.sections.answer import is_small
from cdmae.report.tables import Table, number_cell

# the columns of the cost table: the header, the field of `Cost`, and its form
COLUMNS: tuple[tuple[str, str, Callable[[float], str]], ...] = (
    ("parameters", "parameters", costs.shown_parameters),
    ("index", "megabytes", costs.shown_size),
    ("per query", "milliseconds", costs.shown_milliseconds),
    ("training", "minutes", costs.shown_minutes),
)
AXES = (
    ("milliseconds", "milliseconds per query, with the start of the job"),
    ("megabytes", "size of the index, MB"),
    ("minutes", "minutes of training"),
)


class Candidate(NamedTuple):
    """A system on the first screen: its roles, its mean, and its difference from BM25."""

    name: str
    roles: list[str]
    value: float
    cost: Cost
    over: Difference | None
    mix: str  # the weights of a fusion


class Setback(NamedTuple):
    """A retriever that is worse than the checkpoint that initialised its training."""

    system: str
    checkpoint: str  # the system that is the checkpoint as it was published
    gap: Difference


def section(facts: Facts) -> Section | None:
    """Recommend the simplest system that no other system significantly outperforms."""
    column = main_column(facts)
    values: dict[str, Any] = {"facts": facts, "column": column, "pick": ""}
    if not column:
        return None
    means = {name: column.value(name) for name in facts.systems}
    means = {name: mean for name, mean in means.items() if not math.isnan(mean)}
    if not means:
        return None
    best = max(means, key=means.__getitem__)
    single = max((name for name in means if _single(facts, name)), key=means.get, default="")
    roles: dict[str, list[str]] = {best: ["best of all"]}
    for name, role in ((single, "best single retriever"), (facts.bm25, "BM25")):
        if name in means:
            roles.setdefault(name, []).append(role)
    pick = _simplest(column, [facts.bm25, single, best])
    gap = column.difference(best, pick) if best != pick else None
    table = cost_table(column, means)
    values |= {
        "pick": pick,
        "best": best,
        "bm25": facts.bm25,
        "means": means,
        "value": means[pick],
        "gap": gap,
        "over": column.difference(pick, facts.bm25) if facts.bm25 in means else None,
        "candidates": [_candidate(column, name, named) for name, named in roles.items()],
        "systems": len(means),
        "queries": facts.queries(column.target),
        "small": is_small(facts),
        "setbacks": setbacks(column),
        "columns": COLUMNS,
        "shown": facts.paths.get("shown") or [column.target.collection],
        "missing": any(math.isnan(number) for name in means for number in costs.cost(facts, name)),
    }
    figures = [_figure(column, means, roles, field, axis) for field, axis in AXES]
    return Section("choice", values, [table], figures)


def _single(facts: Facts, name: str) -> bool:
    """Return whether a system is a single retriever with a network, not a combination."""
    kind = facts.kind(name)
    return kind.searches and kind.neural and not costs.parts(facts, name)


def _simplest(column: Column, names: list[str]) -> str:
    """Return the first system that the last one does not significantly outperform."""
    best = names[-1]
    for name in names[:-1]:
        gap = column.difference(best, name) if name and name != best else None
        if name == best or (gap and gap.verdict != "better"):
            return name
    return best


def _candidate(column: Column, name: str, roles: list[str]) -> Candidate:
    facts = column.facts
    about = facts.fusions.get(name)
    mix = ""
    if about:
        weighted = zip(about["weights"], about["systems"], strict=True)
        mix = " + ".join(f"{weight:g} × {part}" for weight, part in weighted)
    over = column.difference(name, facts.bm25) if facts.bm25 else None
    return Candidate(name, roles, column.value(name), costs.cost(facts, name), over, mix)


def cost_table(column: Column, means: dict[str, float]) -> Table:
    """Make a row per system, best first: the system's mean and its cost."""
    body = []
    for name in sorted(means, key=means.__getitem__, reverse=True):
        spent = costs.cost(column.facts, name)
        numbers = [number_cell(getattr(spent, field), form) for _, field, form in COLUMNS]
        body.append([name, column.cell(name), *numbers])
    heads = [head for head, *_ in COLUMNS]
    caption = f"Quality on {column.target} and cost of every system"
    return Table("costs", caption, ["system", column.unit, *heads], body)


def _figure(
    column: Column, means: dict[str, float], roles: dict[str, list[str]], field: str, axis: str
) -> Figure | None:
    """Plot each system's mean against one kind of cost; omit systems without a recorded cost."""
    form = next(form for _, name, form in COLUMNS if name == field)
    points = []
    for name, mean in means.items():
        spent = getattr(costs.cost(column.facts, name), field)
        note = f"{name}: {column.unit} {formats.points(mean)}, {form(spent)}"
        hue = colour(column.facts, name)
        points.append(Point(name, spent, 100 * mean, note, hue, strong=name in roles))
    title = f"{column.unit} on {column.target} and {axis.partition(',')[0]}"
    return scatter(f"cost-{field}", title, points, x_axis=axis, y_axis=column.unit)


def setbacks(column: Column) -> list[Setback]:
    """List the retrievers that are worse than their initial checkpoint without any training.

    The checkpoint must be measured as a system of kind external.
    """
    facts = column.facts
    published = {
        facts.system(name)["model"]: name
        for name in facts.systems
        if facts.system(name).get("model")
    }
    found = []
    for name in retrievers(facts):
        encoder = facts.entries("encoders").get(facts.encoder_of(name), {})
        start = facts.entries("starts").get(encoder.get("start", ""), {})
        checkpoint = published.get(start.get("checkpoint") or None, "")
        gap = column.difference(name, checkpoint) if checkpoint else None
        if gap and gap.verdict == "worse":
            found.append(Setback(name, checkpoint, gap))
    return found
