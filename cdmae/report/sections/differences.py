"""Show what made a difference: every named pair with its question, its interval and its p."""

from __future__ import annotations

from typing import Any

import pandas as pd

from cdmae import formats
from cdmae.report import columns, figures, notation, tables
from cdmae.report.comparisons import BASELINE, PLANNED, QUESTION, Pair, masking
from cdmae.report.facts import Facts
from cdmae.report.frames import Frames
from cdmae.report.sections import colour, shown_interval
from cdmae.report.sections.labels import by_labels

TEXTS = ("question", "reference")


def differences(facts: Facts, frames: Frames) -> dict[str, Any] | None:
    """Answer whether masks by importance helped, and show all named pairs."""
    column = columns.whole(facts)
    rows = frames.compared([PLANNED, QUESTION, BASELINE], column) if column else pd.DataFrame()
    if rows.empty:
        return None
    questions = rows[rows["kind"] != BASELINE]
    others = rows[rows["kind"] == BASELINE]
    intervals = questions[questions["low"].notna()].copy()
    intervals["label"] = intervals["system"] + " − " + intervals["reference"]
    intervals[["difference", "low", "high"]] *= 100
    encoders = intervals["system"].map(lambda name: facts.entry(name).encoder)
    intervals["colour"] = [colour(facts, encoder) for encoder in encoders]
    title = f"Differences in {column.unit}, {column.name}"
    return {
        "column": column,
        "masks": _masks(facts, rows[rows["kind"] == PLANNED]),
        "table": tables.html(shown(questions), "Questions of this run", texts=TEXTS),
        "others": tables.html(shown(others), "Other named pairs", texts=TEXTS),
        "forest": figures.forest(title, intervals, "points, with the interval"),
        "by_labels": by_labels(facts, frames, column),
    }


def shown(rows: pd.DataFrame) -> pd.DataFrame:
    """Format comparisons for a table: system first, then the question, numbers in points."""
    intervals = list(map(shown_interval, rows["low"], rows["high"]))
    p = [formats.plain_spaces(notation.probability(value)) for value in rows["p"]]
    return pd.DataFrame(
        {
            "system": rows["system"],
            "reference": rows["reference"],
            "question": rows["question"],
            "difference": rows["difference"].map(notation.signed),
            "interval, corrected": intervals,
            "p": [text.removeprefix("p ").removeprefix("= ") for text in p],
            "seeds": [str(seeds) if seeds else notation.NONE for seeds in rows["seeds"]],
        }
    )


def _masks(facts: Facts, planned: pd.DataFrame) -> dict[str, Any] | None:
    """Return the planned comparison of the masks; None without such a pair."""
    if planned.empty:
        return None
    gap = planned.iloc[0]
    words = masking(facts, Pair(gap["system"], gap["reference"])).replace("_", " ")
    return {"gap": gap, "masking": words}
