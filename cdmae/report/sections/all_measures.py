"""Show every measure on every collection."""

from __future__ import annotations

from typing import Any

import pandas as pd

from cdmae.report import columns, tables
from cdmae.report.facts import Facts
from cdmae.report.frames import Frames
from cdmae.report.sections import shown_mean

WIDE = 8  # columns; further sets of queries become rows


def measures(facts: Facts, frames: Frames) -> dict[str, Any] | None:
    """Make a table per measure: systems by sets of queries; many sets become the rows."""
    others = columns.zero_shot(facts)
    sets = [*columns.inside(facts), *others]
    if len(others) > 1:
        sets.append(columns.together(others, "zero-shot average"))
    shown = []
    measured = [name for target in facts.targets for name in facts.measures_of(target)]
    for measure in dict.fromkeys(measured):
        own = [column._replace(measure=measure) for column in sets]
        frame = pd.DataFrame({"system": facts.systems})
        for column in own:
            means = [frames.mean(name, column) for name in facts.systems]
            if any(mean.seeds for mean in means):
                frame[column.name] = [shown_mean(mean) for mean in means]
        if frame.shape[1] > WIDE:
            turned = frame.set_index("system").T.reset_index(names="queries")
            shown.append(tables.html(turned, f"{own[0].unit}, by collection"))
        else:
            shown.append(tables.html(frame, own[0].unit, best=list(frame)[1:]))
    return {"tables": shown} if shown else None
