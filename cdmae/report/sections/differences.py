"""Show what made a difference: every named pair with its question, its interval and its p."""

from __future__ import annotations

from typing import Any

import pandas as pd

from cdmae import formats
from cdmae.report import columns, figures, tables
from cdmae.report.comparisons import NAMED, ONE_THING, PLANNED, masking_pairs
from cdmae.report.facts import Facts
from cdmae.report.figures import Interval, Series
from cdmae.report.frames import Frames
from cdmae.report.sections import colour, encoder_colour, shown_interval, shown_p
from cdmae.report.sections.use import SMALL_QUERIES

TEXTS = ("question", "reference")


def differences(facts: Facts, frames: Frames) -> dict[str, Any] | None:
    """Answer whether masks by importance helped, and show all named pairs."""
    column = columns.whole(facts)
    rows = frames.compared([PLANNED, ONE_THING, NAMED], column) if column else pd.DataFrame()
    if rows.empty:
        return None
    single = rows[rows["kind"] != NAMED]
    others = rows[rows["kind"] == NAMED]
    forest = figures.forest(
        f"Differences in {column.unit}, {column.name}",
        [
            Interval(
                f"{row.system} − {row.reference}",
                100 * row.low,
                100 * row.difference,
                100 * row.high,
                colour(facts, row.system),
                row.seeds > 1,
            )
            for row in single.itertuples()
            if row.low == row.low
        ],
        "points, with the interval",
    )
    return {
        "facts": facts,
        "column": column,
        "masks": _masks(facts, frames),
        "table": _html(shown(single), "Pairs that differ in one thing"),
        "others": _html(shown(others), "Other named pairs"),
        "forest": forest,
        "curves": _curves(facts, frames),
    }


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


def _html(frame: pd.DataFrame, caption: str) -> str:
    texts = [name for name in TEXTS if name in frame]
    return tables.html(frame, caption, texts=texts) if len(frame) else ""


def _masks(facts: Facts, frames: Frames) -> dict[str, Any] | None:
    """Return the planned comparison of the masks, and what it cost; None without such a pair."""
    rows = frames.comparisons[frames.comparisons["kind"] == PLANNED]
    if rows.empty:
        return None
    gap = rows.iloc[0]
    masking = next(iter(masking_pairs(facts).values()))
    queries = gap["queries"]
    return {
        "gap": gap,
        "masking": masking.replace("_", " "),
        "small": queries < SMALL_QUERIES and gap["verdict"] == "open",
        "theirs": facts.pretraining_seconds(facts.encoder_of(gap["reference"])),
        "ours": facts.pretraining_seconds(facts.encoder_of(gap["system"])),
    }


def _curves(facts: Facts, frames: Frames) -> figures.Drawn | None:
    """Draw the measure over the number of training queries: the stages of `report.curve`."""
    column = columns.reported(facts)
    if not facts.report.curve or not column:
        return None
    points: dict[str, list[tuple[float, float]]] = {}
    counts = frames.trainings[frames.trainings["quantity"] == "queries"]
    queries = counts.set_index("training")["value"].to_dict()
    for name in facts.systems:
        entry = facts.system(name)
        if entry.get("stage") in facts.report.curve and name in queries:
            mean = 100 * frames.mean(name, column).value
            points.setdefault(entry["encoder"], []).append((queries[name], mean))
    positions = sorted({count for several in points.values() for count, _ in several})
    series = []
    for encoder, several in points.items():
        counts, means = zip(*sorted(several), strict=True)
        hue = encoder_colour(facts, encoder)
        series.append(Series(encoder, list(map(positions.index, counts)), means, hue))
    names = [formats.count(count) for count in positions]
    title = f"{column.unit} by training queries, {column.name}"
    return figures.lines(title, series, "training queries", column.unit, names=names)
