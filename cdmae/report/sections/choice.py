"""Make the first section: which system to use, with its quality and its cost."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pandas as pd

from cdmae import formats
from cdmae.config.kinds import AnySystem
from cdmae.evaluation.best import choose, untuned
from cdmae.fields import parse
from cdmae.report import costs
from cdmae.report.columns import Column
from cdmae.report.facts import Facts, Target
from cdmae.report.sections import INTERVAL, Section, difference_cells
from cdmae.report.sections.answer import SMALL_QUERIES
from cdmae.report.tables import Cell, Table, highlight, number_cell

# the columns of costs: the header, the field of `Cost`, and its form
COSTS: tuple[tuple[str, str, Callable[[float], str]], ...] = (
    ("parameters", "parameters", costs.shown_parameters),
    ("index", "megabytes", costs.shown_size),
    ("per query", "milliseconds", costs.shown_milliseconds),
    ("training", "minutes", costs.shown_minutes),
)


def section(facts: Facts) -> Section | None:
    """Recommend the simplest system that no other system significantly exceeds.

    The queries of one split decide, over the models on disk (`cdmae.evaluation.best`, as in
    `./run search`). The numbers of another split are shown, if there is one.
    """
    if not facts.deciding:
        return None
    disk = on_disk(facts)
    deciding, reported = (
        Column.of(disk, target, facts.first_measure(target))
        for target in (facts.deciding, facts.reported)
    )
    measured = [name for name in facts.systems if not math.isnan(deciding.value(name))]
    if not measured:
        return None
    values = {name: disk.per_query(name, deciding.target, deciding.measure) for name in measured}
    entries = {name: formats.without_folders(facts.system(name)) for name in measured}
    complexity = {name: parse(AnySystem, entry).complexity for name, entry in entries.items()}
    found = choose(pd.DataFrame(values), complexity)
    queries = facts.queries(deciding.target)
    gaps = [deciding.alone(found.best, name) for name in measured if name != found.best]
    bm25 = facts.bm25 if facts.bm25 in measured and facts.bm25 != found.pick else ""
    shown: dict[str, Any] = {
        "facts": facts,
        "deciding": deciding,
        "reported": reported,
        "same": deciding.target == reported.target,
        "pick": found.pick,
        "best": found.best,
        "lead": found.lead,
        "simpler": any(level < complexity[found.pick] for level in complexity.values()),
        "bm25": bm25,
        "over": reported.alone(found.pick, bm25) if bm25 else None,
        "systems": len(measured),
        "queries": queries,
        "reported_queries": facts.queries(reported.target),
        "small": queries < SMALL_QUERIES and not any(gap.significant for gap in gaps),
        "tuned": [Target(*about["on"]) for about in facts.fusions.values() if about.get("on")],
        "mixes": {name: mix for name in measured if (mix := _mix(facts, name))},
        "inside": [name for name in measured if _tuned_inside(facts, name)],
        "once": bool(facts.repeated),
        "missing": any(math.isnan(cost) for name in measured for cost in costs.cost(facts, name)),
    }
    return Section("choice", shown, [system_table(deciding, reported)])


def on_disk(facts: Facts) -> Facts:
    """Return the facts of the models on disk, which have the first seed.

    The values of a fusion on the queries that its weights were tuned on are held out.
    """
    values = {}
    for (name, target, measure), frame in facts.values.items():
        own = untuned(frame.iloc[:, 0], facts.fusions.get(name, {}), target, measure)
        values[name, target, measure] = own.to_frame()
    return replace(facts, values=values)


def _mix(facts: Facts, name: str) -> str:
    """Return the weights of a fusion in words; "" for other systems."""
    about = facts.fusions.get(name)
    if not about:
        return ""
    weighted = zip(about["weights"], about["systems"], strict=True)
    return " + ".join(f"{weight:g} × {part}" for weight, part in weighted)


def _tuned_inside(facts: Facts, name: str) -> bool:
    """Return whether a part of a system has weights that the deciding queries chose."""
    inside = [part for part in costs.members(facts, name) if part != name]
    on = list(facts.deciding)
    return any(facts.fusions.get(part, {}).get("on") == on for part in inside)


def system_table(deciding: Column, reported: Column) -> Table:
    """Make a row per system, best first: its means, its difference from BM25, and its cost."""
    facts = reported.facts
    names = [name for name in facts.systems if not math.isnan(reported.value(name))]
    names.sort(key=reported.value, reverse=True)
    frame = pd.DataFrame({"system": names})
    frame[reported.head] = highlight(pd.Series([reported.cell(name) for name in names]))
    if facts.bm25 in names and len(names) > 1:
        gaps = reported.compared([name for name in names if name != facts.bm25], facts.bm25)
        cells = [
            difference_cells(gaps[name]) if name in gaps else [Cell(formats.NONE)] * 3
            for name in names
        ]
        frame[[f"over {facts.bm25}", INTERVAL, "p, Holm"]] = pd.DataFrame(cells)
    if deciding.target != reported.target:
        frame[f"{deciding.head}: decides"] = [deciding.cell(name) for name in names]
    for head, field, form in COSTS:
        spent = [getattr(costs.cost(facts, name), field) for name in names]
        frame[head] = [number_cell(value, form) for value in spent]
    return Table.of("systems-to-use", f"Every system on {reported.target}, best first", frame)
