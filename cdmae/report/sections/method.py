"""Show what the paper's method does: its masks, the information in the vector, and its claims."""

from __future__ import annotations

from typing import Any

import pandas as pd
from markupsafe import Markup

from cdmae.report import figures, tables
from cdmae.report.comparisons import planned
from cdmae.report.facts import Facts
from cdmae.report.figures import Series
from cdmae.report.frames import Frames
from cdmae.report.paper import claims
from cdmae.report.sections import colour

TEXTS = ("claim", "outcome", "compared")  # columns of the table of claims


def method(facts: Facts, frames: Frames) -> dict[str, Any] | None:
    """Show the masks, the loss that a passage's own vector saves, and the claims that are tested.

    Claims are tested if the config names systems for rows of the paper's tables.
    """
    figure = _saved(facts, frames)
    masks = _masked(facts)
    named = facts.config.report.methods
    encoders = facts.config.encoders
    papers = [masks[name] for name in masks if "importance" in encoders[name].maskings]
    first = next(iter(papers), None)
    tested = claims.scored(facts, first) if named else pd.DataFrame()
    scores = tables.html(tested, "Claims of the paper, scored here", texts=TEXTS)
    found = {"figure": figure, "masks": masks, "claims": scores}
    return found if any(found.values()) else None


def _masked(facts: Facts) -> dict[str, Any]:
    """Map encoders to the words that their masks cover; the one compared with uniform is first."""
    pair = planned(facts)
    first = [facts.entry(pair.system).encoder] if pair else []
    known = facts.masked_terms
    return {name: known[name] for name in dict.fromkeys([*first, *known]) if known.get(name)}


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
