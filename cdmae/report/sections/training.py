"""Show the records of trainings: loss curves, and facts by training."""

from __future__ import annotations

from typing import Any

import pandas as pd

from cdmae import formats
from cdmae.report import figures, tables
from cdmae.report.facts import Facts
from cdmae.report.figures import Drawn, Series
from cdmae.report.frames import Frames
from cdmae.report.sections import colour, encoder_colour

MOST = 6  # figures that are not folded
# columns of the table: the heading, the quantity, and its form
FACTS = (
    ("parameters", "parameters", formats.short_count),
    ("queries", "queries", formats.count),
    ("steps", "steps", formats.count),
    ("time", "seconds", formats.duration),
    ("mined negatives above", "mined negatives above", formats.percent),
    ("random negatives above", "random negatives above", formats.percent),
)


def training(facts: Facts, frames: Frames) -> dict[str, Any] | None:
    """Show pre-training losses for encoder and decoder, fine-tuning losses by stage, and facts.

    Only losses of the same stage can be compared.
    """
    drawn: list[Drawn | None] = []
    for side in ("encoder", "decoder"):
        series = [
            _series(frames, name, f"{side}_loss", encoder_colour(facts, name))
            for name in facts.encoders
        ]
        title = f"{side.capitalize()} loss in pre-training"
        drawn.append(figures.lines(title, series, "steps", "nats"))
    stages: dict[str, list[str]] = {}
    for name in facts.trained:
        stages.setdefault(facts.system(name).get("stage", ""), []).append(name)
    for stage, names in stages.items():
        series = [_series(frames, name, "loss", colour(facts, name)) for name in names]
        drawn.append(figures.lines(f"Fine-tuning loss, {stage}", series, "steps", "nats"))
    shown = [figure for figure in drawn if figure]
    table = _facts(frames)
    if not shown and table.empty:
        return None
    return {
        "facts": facts,
        "shown": shown[:MOST],
        "more": shown[MOST:],
        "table": tables.html(table, "Trainings") if len(table) else "",
    }


def _series(frames: Frames, training: str, quantity: str, hue: str) -> Series:
    curve = frames.curves(training).get(quantity, pd.Series(dtype=float))
    return Series(training, curve.index.tolist(), curve.tolist(), hue)


def _facts(frames: Frames) -> pd.DataFrame:
    """Make a row per training: its size, its steps, its time, and the audit of its negatives."""
    rows = frames.trainings[frames.trainings["step"].isna()]
    wide = rows.pivot(index="training", columns="quantity", values="value")
    wide = wide.reindex(list(dict.fromkeys(rows["training"])))
    table = pd.DataFrame({"training": wide.index})
    for head, quantity, form in FACTS:
        if quantity in wide:
            values = wide[quantity].tolist()
            table[head] = [form(value) if value == value else formats.NONE for value in values]
    return table
