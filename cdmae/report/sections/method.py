"""Show what the paper's method does: its masks, the information in the vector, and its claims."""

from __future__ import annotations

import math
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

# MRR@10 of a random ranking, times the number of passages
CHANCE = sum(1 / rank for rank in range(1, 11))
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
    searched = frames.trainings[frames.trainings["quantity"] == "passages"]["value"]
    passages = float(searched.max()) if len(searched) else math.nan
    papers = exhibits.on_the_papers_data(facts, frames)
    return {
        "figures": drawn,
        "masks": masks,
        "words": words,
        "highest": max([1e-9, *(word.importance for word in words)]),
        "passages": passages,
        "chance": 100 * CHANCE / passages,
        "claims": tables.html(tested, "Claims of the paper, scored here", texts=TEXTS),
        "tables": {table.caption: tables.html(table.texts, table.caption) for table in papers},
    }


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
