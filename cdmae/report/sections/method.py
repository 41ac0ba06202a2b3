"""Show what the paper's method does: its masks, the information in the vector, and its claims."""

from __future__ import annotations

from typing import Any

import pandas as pd
from markupsafe import Markup

from cdmae.importance.shading import Word
from cdmae.report import figures, tables
from cdmae.report.comparisons import masked
from cdmae.report.facts import Facts
from cdmae.report.figures import Series
from cdmae.report.frames import Frames
from cdmae.report.paper import claims, exhibits
from cdmae.report.sections import colour

TEXTS = ("claim", "outcome", "compared")  # columns of the table of claims


def method(facts: Facts, frames: Frames) -> dict[str, Any] | None:
    """Show masks, the probes of the bottleneck, and the tested claims."""
    drawn = _probes(facts, frames)
    words = []
    masks = masked(facts)
    if masks:
        example = masks["example"]
        words = list(map(Word, example["words"], example["importance"]))
    tested = claims.scored(facts) if facts.report.methods else pd.DataFrame()
    if not masks and not any(drawn) and tested.empty:
        return None
    papers = exhibits.on_the_papers_data(facts, frames)
    return {
        "figures": drawn,
        "masks": masks,
        "words": words,
        "highest": max([1e-9, *(word.importance for word in words)]),
        "claims": tables.html(tested, "Claims of the paper, scored here", texts=TEXTS),
        "tables": {table.caption: tables.html(table.texts, table.caption) for table in papers},
    }


def _probes(facts: Facts, frames: Frames) -> list[Markup]:
    """Draw the loss that a passage's own vector saves."""
    saved = []
    for name in facts.encoders:
        hue = colour(facts, name)
        curves = frames.curves(name)
        if "true" in curves:
            gain = curves["shuffled"] - curves["true"]
            saved.append(Series(name, gain, hue))
    return [
        figures.lines("Decoder loss that the passage’s own vector saves", saved, "steps", "nats")
    ]
