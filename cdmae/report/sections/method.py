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


def method(facts: Facts, frames: Frames) -> dict[str, Any] | None:
    """Show masks ranked by their gain, the probes of the bottleneck, and the tested claims."""
    masked = facts.masked_terms[shown_masks(facts)] if facts.masked_terms else None
    drawn = [masked_figure(masked) if masked else None, *_probes(facts, frames)]
    gains = _gains(facts, frames)
    tested = claims.scored(facts) if facts.report.methods else pd.DataFrame()
    beside = exhibits.on_the_papers_data(facts, frames)
    if not any(drawn) and gains.empty and tested.empty:
        return None
    example = masked["example"] if masked else {"words": [], "importance": [], "seen": []}
    words = map(Word, example["words"], example["importance"], example["seen"])
    halves = frames.trainings[frames.trainings["quantity"] == "passages"]["value"]
    prose = [name for name in tested if name in ("claim", "outcome", "compared")]
    return {
        "facts": facts,
        "figures": [figure for figure in drawn if figure],
        "gains": tables.html(gains, "Masks, by their gain over uniform ones") if len(gains) else "",
        "words": list(words),
        "highest": max([1e-9, *example["importance"]]),
        "passages": halves.max() if len(halves) else math.nan,
        "chance": 100 * CHANCE / halves.max() if len(halves) else math.nan,
        "claims": tables.html(tested, "Claims of the paper, scored here", texts=prose)
        if len(tested)
        else "",
        "tables": [(each.caption, tables.html(each.texts, each.caption)) for each in beside],
    }


def _gains(facts: Facts, frames: Frames) -> pd.DataFrame:
    """Make a row per masking of the config, ranked by its gain over uniform masks.

    The gain is the difference of two retrievers that differ in the masking alone.
    """
    column = columns.whole(facts)
    rows: dict[str, tuple[float, list[str]]] = {}
    for pair, masking in masking_pairs(facts).items() if column else ():
        gap = frames.pair([PLANNED, ONE_THING, NAMED], column, *pair)
        encoder = facts.encoder_of(pair.system)
        uniform = facts.encoder_of(pair.reference)
        if gap is None or encoder in rows:
            continue
        mean = shown_mean(frames.mean(pair.system, column))
        numbers = [formats.signed(gap["difference"]), shown_interval(gap["low"], gap["high"])]
        row = [masking.replace("_", " "), encoder, _share(facts, encoder, masking), mean]
        rows[encoder] = (gap["difference"], [*row, *numbers, shown_p(gap["p"])])
        mean = shown_mean(frames.mean(pair.reference, column))
        row = ["uniform", uniform, _share(facts, encoder, "uniform"), mean]
        rows.setdefault(uniform, (0.0, [*row, *[formats.NONE] * 3]))
    ranked = sorted(rows.values(), key=lambda pair: -pair[0])
    heads = ["masks", "encoder", "stop-words", column.unit if column else "", "gain"]
    return pd.DataFrame([row for _, row in ranked], columns=[*heads, "95 % interval", "p"])


def _share(facts: Facts, encoder: str, masking: str) -> str:
    """Return the share of stop-words among masked word-pieces; a dash if it is unknown."""
    kind = "uniform" if masking in UNIFORM else "importance"
    share = facts.masked_terms.get(encoder, {}).get(kind, {}).get("stop_word_share")
    return formats.NONE if share is None else formats.percent(share)


def _probes(facts: Facts, frames: Frames) -> list[Drawn | None]:
    """Draw the loss that a passage's own vector saves, and how often half a passage is found."""
    rows = frames.trainings
    saved = []
    found = []
    for name in facts.encoders:
        own = rows[(rows["training"] == name) & rows["step"].notna()]
        wide = own.pivot(index="step", columns="quantity", values="value")
        if {"shuffled", "true"} <= {*wide} and wide["true"].count() > 1:
            gain = (wide["shuffled"] - wide["true"]).dropna()
            hue = encoder_colour(facts, name)
            saved.append(Series(name, gain.index.tolist(), gain.tolist(), hue))
        if "rr" in wide and wide["rr"].count() > 1:
            ranks = 100 * wide["rr"].dropna()
            hue = encoder_colour(facts, name)
            found.append(Series(name, ranks.index.tolist(), ranks.tolist(), hue))
    return [
        figures.lines("Decoder loss that the passage’s own vector saves", saved, "steps", "nats"),
        figures.lines("Half of a passage finds the other half", found, "steps", "MRR@10"),
    ]
