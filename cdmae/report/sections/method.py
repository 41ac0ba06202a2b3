"""Show what the paper's method does: its masks, and the information in the vector."""

from __future__ import annotations

from typing import Any

from markupsafe import Markup

from cdmae.report import figures
from cdmae.report.comparisons import planned
from cdmae.report.facts import Facts
from cdmae.report.figures import Series
from cdmae.report.frames import Frames
from cdmae.report.sections import colour


def method(facts: Facts, frames: Frames) -> dict[str, Any] | None:
    """Show the masks, and the loss that a passage's own vector saves."""
    figure = _saved(facts, frames)
    masks = _masked(facts)
    return {"figure": figure, "masks": masks} if figure or masks else None


def _masked(facts: Facts) -> dict[str, Any] | None:
    """Return the words that the masks of the first encoder compared with uniform ones cover."""
    pair = planned(facts)
    encoders = [facts.entry(pair.system).encoder] if pair else []
    known = [facts.masked_terms.get(name) for name in [*encoders, *facts.masked_terms]]
    return next(filter(None, known), None)


def _saved(facts: Facts, frames: Frames) -> Markup:
    """Draw the loss that a passage's own vector saves, by the steps of each pre-training."""
    series = []
    for name in facts.encoders:
        curves = frames.curves(name)
        if "true" in curves:
            gain = curves["shuffled"] - curves["true"]
            series.append(Series(name, gain, colour(facts, name)))
    title = "Decoder loss that the passage’s own vector saves"
    return figures.lines(title, series, "steps", "nats")
