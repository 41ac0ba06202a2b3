"""Show what made a difference: every named pair with its question, its interval and its p."""

from __future__ import annotations

from typing import Any

import pandas as pd
from markupsafe import Markup

from cdmae import formats
from cdmae.report import columns, figures, tables
from cdmae.report.comparisons import NAMED, ONE_THING, PLANNED, masking_pairs
from cdmae.report.facts import Facts
from cdmae.report.figures import Series
from cdmae.report.frames import Frames
from cdmae.report.sections import colour, shown_interval, shown_p
from cdmae.report.sections.use import SMALL_QUERIES

TEXTS = ("question", "reference")


def differences(facts: Facts, frames: Frames) -> dict[str, Any] | None:
    """Answer whether masks by importance helped, and show all named pairs."""
    column = columns.whole(facts)
    rows = frames.compared([PLANNED, ONE_THING, NAMED], column) if column else pd.DataFrame()
    if rows.empty:
        return None
    single = _ranked(rows[rows["kind"] != NAMED])
    others = rows[rows["kind"] == NAMED]
    intervals = single[single["low"].notna()].copy()
    intervals["label"] = intervals["system"] + " − " + intervals["reference"]
    intervals[["difference", "low", "high"]] *= 100
    intervals["colour"] = [
        colour(facts, facts.kind(system).encoder) for system in intervals["system"]
    ]
    title = f"Differences in {column.unit}, {column.name}"
    return {
        "facts": facts,
        "column": column,
        "masks": _masks(facts, rows[rows["kind"] == PLANNED]),
        "table": tables.html(shown(single), "Pairs that differ in one thing", texts=TEXTS),
        "others": tables.html(shown(others), "Other named pairs", texts=TEXTS),
        "forest": figures.forest(title, intervals, "points, with the interval"),
        "curves": _curves(facts, frames),
    }


def _ranked(rows: pd.DataFrame) -> pd.DataFrame:
    """Put the comparisons of masks first, ranked by their gain over uniform ones."""
    of_masks = rows["question"].str.startswith("masks: ")
    ranked = rows[of_masks].sort_values("difference", ascending=False, kind="stable")
    return pd.concat([ranked, rows[~of_masks]])


def shown(rows: pd.DataFrame) -> pd.DataFrame:
    """Format comparisons for a table: system first, then the question, numbers in points."""
    return pd.DataFrame(
        {
            "system": rows["system"],
            "reference": rows["reference"],
            "question": rows["question"],
            "difference": rows["difference"].map(formats.signed),
            "95 % interval": list(map(shown_interval, rows["low"], rows["high"])),
            "p": rows["p"].map(shown_p),
            "seeds": [str(seeds) if seeds else formats.NONE for seeds in rows["seeds"]],
        }
    )


def _masks(facts: Facts, planned: pd.DataFrame) -> dict[str, Any] | None:
    """Return the planned comparison of the masks, and what it cost; None without such a pair."""
    if planned.empty:
        return None
    gap = planned.iloc[0]
    masking = next(iter(masking_pairs(facts).values())).masking
    seconds = [
        facts.pretraining_seconds(facts.kind(gap[key]).encoder) for key in ("system", "reference")
    ]
    return {
        "gap": gap,
        "masking": masking.replace("_", " "),
        "small": gap["queries"] < SMALL_QUERIES and gap["verdict"] == "open",
        "seconds": seconds,
    }


def _curves(facts: Facts, frames: Frames) -> Markup:
    """Draw the measure over the number of training queries: the stages of `report.curve`."""
    column = columns.reported(facts)
    counts = frames.trainings[frames.trainings["quantity"] == "queries"]
    queries = counts.set_index("training")["value"]
    points: dict[str, dict[float, float]] = {}
    for name in facts.systems:
        kind = facts.kind(name)
        if kind.stage in facts.report.curve and name in queries:
            mean = 100 * frames.mean(name, column).value
            points.setdefault(kind.encoder, {})[queries[name]] = mean
    positions = sorted({count for of_encoder in points.values() for count in of_encoder})
    series = []
    for encoder, of_encoder in points.items():
        means = pd.Series(of_encoder).sort_index().rename(positions.index)
        series.append(Series(encoder, means, colour(facts, encoder)))
    names = [formats.count(count) for count in positions]
    title = f"{column.unit} by training queries, {column.name}"
    return figures.lines(title, series, "training queries", column.unit, names=names)
