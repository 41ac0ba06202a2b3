"""Show every measure on every collection."""

from __future__ import annotations

from typing import Any

import pandas as pd

from cdmae.report import columns, tables
from cdmae.report.columns import Column
from cdmae.report.facts import Facts
from cdmae.report.frames import Frames
from cdmae.report.sections import shown_mean

WIDE = 8  # columns; further sets of queries become rows


def measures(facts: Facts, frames: Frames) -> dict[str, Any] | None:
    """Make a table per measure: systems by sets of queries; many sets become the rows."""
    named = dict.fromkeys(name for target in facts.targets for name in facts.measures_of(target))
    shown = []
    for measure in named:
        sets = [column for column in _sets(facts) if _has(facts, column, measure)]
        sets = [Column(column.name, column.sets, measure) for column in sets]
        frame = pd.DataFrame({"system": facts.systems})
        for column in sets:
            means = [frames.mean(name, column) for name in facts.systems]
            frame[column.name] = list(map(shown_mean, means))
        best = list(frame)[1:]
        if len(sets) > WIDE:
            turned = frame.set_index("system").T.reset_index(names="queries")
            shown.append(tables.html(turned, f"{sets[0].unit}, by collection"))
        else:
            shown.append(tables.html(frame, sets[0].unit, best=best))
    return {"tables": shown} if shown else None


def _sets(facts: Facts) -> list[Column]:
    """List all sets of queries, and the average of several zero-shot ones."""
    inside = [columns.of(each, "") for each in facts.targets if not facts.zero_shot(each)]
    others = columns.zero_shot(facts)
    average = [columns.together(others, "zero-shot average")] if len(others) > 1 else []
    return [*inside, *others, *average]


def _has(facts: Facts, column: Column, measure: str) -> bool:
    return all(measure in facts.measures_of(target) for target in column.targets)
