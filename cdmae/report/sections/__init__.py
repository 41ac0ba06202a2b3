"""Make the page's sections: functions that return the values of a template, or None without data.

The template of a section has the function's name. Numbers come from `cdmae.report.frames`.
"""

from __future__ import annotations

from cdmae import formats
from cdmae.report.facts import Facts
from cdmae.report.figures import GREY, SERIES
from cdmae.report.frames import Mean
from cdmae.report.tables import PLUS_MINUS


def colour(facts: Facts, system: str) -> str:
    """Choose the colour of a system: its encoder's colour, or grey if it was not trained here."""
    return encoder_colour(facts, facts.encoder_of(system))


def encoder_colour(facts: Facts, encoder: str) -> str:
    """Choose the colour of an encoder.

    The first encoder with importance-aware masks has the first colour, and the first encoder with
    other masks the second. Encoders without pre-training are grey.
    """
    aware, other, more = [], [], []
    for name, entry in facts.entries("encoders").items():
        if entry.get("objective") == "none":
            continue
        kind = aware if entry.get("decoder_masking") == "importance" else other
        (more if kind else kind).append(name)
    free = [name for name in SERIES if name != GREY]
    if encoder in aware + other:
        return free[0] if encoder in aware else free[1]
    return free[2 + more.index(encoder) % (len(free) - 2)] if encoder in more else GREY


def shown_mean(mean: Mean) -> str:
    """Format a mean in points, with its standard deviation over the seeds if there are several."""
    if mean.seeds < 2:
        return formats.points(mean.value)
    return f"{formats.points(mean.value)} {PLUS_MINUS}{100 * mean.deviation:.1f}"


def shown_p(p: float) -> str:
    """Format a p-value for the column p."""
    return formats.probability(p).removeprefix("p ").removeprefix("= ")


def shown_interval(low: float, high: float) -> str:
    """Format an interval; a dash where the queries allow no inference."""
    return formats.interval(low, high) if low == low else formats.NONE
