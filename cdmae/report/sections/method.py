"""Show what the paper's method does: its masks, the information in the vector, and its claims."""

from __future__ import annotations

import math
from typing import Any

import pandas as pd

from cdmae import formats
from cdmae.importance.shading import Word
from cdmae.report import columns, figures, tables
from cdmae.report.comparisons import NAMED, ONE_THING, PLANNED, UNIFORM, masking_pairs
from cdmae.report.facts import Facts
from cdmae.report.figures import Drawn, Series
from cdmae.report.frames import Frames
from cdmae.report.masks import masked_figure, shown_masks
from cdmae.report.paper import claims, exhibits
from cdmae.report.sections import encoder_colour, shown_interval, shown_mean, shown_p

# MRR@10 of a random ranking, times the number of passages
CHANCE = sum(1 / rank for rank in range(1, 11))
TEXTS = ("claim", "outcome", "compared")  # columns of the table of claims


def method(facts: Facts, frames: Frames) -> dict[str, Any] | None:
    """Show masks ranked by their gain, the probes of the bottleneck, and the tested claims."""
    drawn = _probes(facts, frames)
    words = []
    if facts.masked_terms:
        masked = facts.masked_terms[shown_masks(facts)]
        drawn.insert(0, masked_figure(masked))
        example = masked["example"]
        words = list(map(Word, example["words"], example["importance"], example["seen"]))
    gains = _gains(facts, frames)
    tested = claims.scored(facts) if facts.report.methods else pd.DataFrame()
    if not any(drawn) and gains.empty and tested.empty:
        return None
    values = {
        "figures": [figure for figure in drawn if figure],
        "gains": "",
        "words": words,
        "highest": max([1e-9, *(word.importance for word in words)]),
        "passages": _passages(frames),
        "chance": 100 * CHANCE / _passages(frames),
        "claims": "",
        "tables": [],
    }
    if len(gains):
        values["gains"] = tables.html(
            gains, "Masks, by their gain over uniform ones", texts=["encoder"]
        )
    if len(tested):
        values["claims"] = tables.html(tested, "Claims of the paper, scored here", texts=TEXTS)
    for table in exhibits.on_the_papers_data(facts, frames):
        values["tables"].append((table.caption, tables.html(table.texts, table.caption)))
    return values


# --- masks ----------------------------------------------------------------------------------------


def _gains(facts: Facts, frames: Frames) -> pd.DataFrame:
    """Make a row per masking of the config, ranked by its gain over uniform masks.

    The gain is the difference of two retrievers that differ in the masking alone.
    """
    column = columns.whole(facts)
    if column is None:
        return pd.DataFrame()
    rows: dict[str, dict[str, Any]] = {}
    for pair, masking in masking_pairs(facts).items():
        gap = frames.pair([PLANNED, ONE_THING, NAMED], column, *pair)
        encoder = facts.encoder_of(pair.system)
        if gap is None or encoder in rows:
            continue
        rows[encoder] = {
            "masks": masking.replace("_", " "),
            "encoder": encoder,
            "stop-words": _share(facts, encoder, masking),
            column.unit: shown_mean(frames.mean(pair.system, column)),
            "rank": -gap["difference"],
            "gain": formats.signed(gap["difference"]),
            "95 % interval": shown_interval(gap["low"], gap["high"]),
            "p": shown_p(gap["p"]),
        }
        uniform = {
            "masks": "uniform",
            "encoder": facts.encoder_of(pair.reference),
            "stop-words": _share(facts, encoder, "uniform"),
            column.unit: shown_mean(frames.mean(pair.reference, column)),
            "rank": 0.0,
        }
        rows.setdefault(uniform["encoder"], uniform)
    frame = pd.DataFrame([*rows.values()])
    if frame.empty:
        return frame
    ranked = frame.sort_values("rank", kind="stable").drop(columns="rank")
    return ranked.fillna(formats.NONE)


def _share(facts: Facts, encoder: str, masking: str) -> str:
    """Return the share of stop-words among masked word-pieces; a dash if it is unknown."""
    described = facts.masked_terms.get(encoder)
    if not described:
        return formats.NONE
    kind = "uniform" if masking in UNIFORM else "importance"
    return formats.percent(described[kind]["stop_word_share"])


# --- the probes of pre-training: `cdmae.pretraining.probes` ---------------------------------------


def _passages(frames: Frames) -> float:
    """Return the number of passages among which halves were searched; nan without the probe."""
    rows = frames.trainings
    numbers = rows[rows["quantity"] == "passages"]["value"]
    return float(numbers.max()) if len(numbers) else math.nan


def _probes(facts: Facts, frames: Frames) -> list[Drawn | None]:
    """Draw the loss that a passage's own vector saves, and how often half a passage is found."""
    saved = []
    found = []
    for name in facts.encoders:
        hue = encoder_colour(facts, name)
        curves = frames.curves(name)
        if {"true", "shuffled"} <= curves.keys():
            gain = curves["shuffled"] - curves["true"]
            saved.append(Series(name, gain.index.tolist(), gain.tolist(), hue))
        if "rr" in curves:
            ranks = 100 * curves["rr"]
            found.append(Series(name, ranks.index.tolist(), ranks.tolist(), hue))
    return [
        figures.lines("Decoder loss that the passage’s own vector saves", saved, "steps", "nats"),
        figures.lines("Half of a passage finds the other half", found, "steps", "MRR@10"),
    ]
