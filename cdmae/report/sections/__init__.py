"""Make the page's sections: functions that return the values of a template, or None without data.

The template of a section has the function's name. Numbers come from `cdmae.report.frames`.
"""

from __future__ import annotations

import math

from cdmae.report import notation
from cdmae.report.facts import Facts
from cdmae.report.figures import GREY, SERIES
from cdmae.report.frames import Mean
from cdmae.report.tables import PLUS_MINUS

NAMED_COLOURS = [name for name in SERIES if name != GREY]


def colour(facts: Facts, encoder: str) -> str:
    """Choose the colour of an encoder; grey without pre-training, or without an encoder."""
    trained = [name for name, entry in facts.config.encoders.items() if entry.pretrained]
    if encoder not in trained:
        return GREY
    return NAMED_COLOURS[trained.index(encoder) % len(NAMED_COLOURS)]


def shown_mean(mean: Mean) -> str:
    """Format a mean in points, with its standard deviation over the seeds if there are several."""
    if mean.seeds < 2:
        return notation.points(mean.value)
    return f"{notation.points(mean.value)} {PLUS_MINUS}{100 * mean.deviation:.1f}"


def shown_interval(low: float, high: float) -> str:
    """Format an interval; a dash for a single query, which allows no inference."""
    return notation.NONE if math.isnan(low) else notation.interval(low, high)
