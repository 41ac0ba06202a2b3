"""Show what the paper's method does: its masks, and the information in the vector."""

from __future__ import annotations

import math
from typing import Any

from markupsafe import Markup

from cdmae.report import figures
from cdmae.report.comparisons import planned
from cdmae.report.facts import Facts
from cdmae.report.figures import Series
from cdmae.report.frames import Frames
from cdmae.report.sections import colour

# MRR@10 of a random ranking, times the number of passages
CHANCE = sum(1 / rank for rank in range(1, 11))


def method(facts: Facts, frames: Frames) -> dict[str, Any] | None:
    """Show the masks, and the probes of the bottleneck."""
    drawn = _probes(facts, frames)
    masks = _masked(facts)
    if not masks and not any(drawn):
        return None
    searched = frames.trainings[frames.trainings["quantity"] == "passages"]["value"]
    passages = float(searched.max()) if len(searched) else math.nan
    return {
        "figures": drawn,
        "masks": masks,
        "passages": passages,
        "chance": 100 * CHANCE / passages,
    }


def _masked(facts: Facts) -> dict[str, Any] | None:
    """Return the words that the masks of the first encoder compared with uniform ones cover."""
    pair = planned(facts)
    encoders = [facts.entry(pair.system).encoder] if pair else []
    known = [facts.masked_terms.get(name) for name in [*encoders, *facts.masked_terms]]
    return next(filter(None, known), None)


def _probes(facts: Facts, frames: Frames) -> list[Markup]:
    """Draw the loss that a passage's own vector saves, and how often half a passage is found."""
    saved = []
    found = []
    for name in facts.encoders:
        hue = colour(facts, name)
        curves = frames.curves(name)
        if "true" in curves:
            gain = curves["shuffled"] - curves["true"]
            saved.append(Series(name, gain, hue))
        if "rr" in curves:
            found.append(Series(name, 100 * curves["rr"], hue))
    return [
        figures.lines("Decoder loss that the passage’s own vector saves", saved, "steps", "nats"),
        figures.lines("Half of a passage finds the other half", found, "steps", "MRR@10"),
    ]
