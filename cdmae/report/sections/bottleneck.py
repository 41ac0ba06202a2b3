"""What a passage's vector tells: the decoder, whose loss it lowers, and a search, which finds by it what belongs to it.

Two probes of every pre-training, by `cdmae.pretraining.probes.bottleneck` and `cdmae.pretraining.probes.halves`.
"""

from __future__ import annotations

from typing import Any

import pandas as pd

from cdmae import formats
from cdmae.report.charts import Figure, Series, lines
from cdmae.report.facts import Facts
from cdmae.report.sections import Section, encoder_colour, number_cell, several_lines, value_cell
from cdmae.report.tables import Table

VECTORS = {"true": ("its own vector", 0), "shuffled": ("another passage's", 1), "zero": ("none", 2)}
MOST = 6  # encoders in one figure
CHANCE = sum(1 / rank for rank in range(1, 11))  # MRR@10 times the number of passages, of a search that guesses


def section(facts: Facts) -> Section | None:
    """Show what the vector is worth in every pre-training, to the decoder and to a search; numbers folded."""
    losses, searches = _probed(facts, "bottleneck"), _probed(facts, "retrieval")
    if not losses and not searches:
        return None
    losses = {name: frame.assign(saved=frame["shuffled"] - frame["true"]) for name, frame in losses.items()}
    searches = {name: frame.assign(points=100 * frame["rr"]) for name, frame in searches.items()}
    title, axis = "What the passage's own vector saves the decoder", "nats, against another passage's"
    worth = _curves(facts, losses, "saved", "bottleneck-worth", title, y_axis=axis)
    title = "How well half of a passage finds the other half"
    high = max((frame["points"].max() for frame in searches.values()), default=0.0)
    halves = _curves(facts, searches, "points", "halves", title, y_axis="MRR@10", low=0, high=high)
    passages = int(max((frame["passages"].iloc[-1] for frame in searches.values()), default=0))
    values = {
        "shown": [*worth, *halves],
        "losses": [_losses(name, frame) for name, frame in losses.items()],
        "loss_table": _loss_table(losses) if losses else None,
        "rank_table": _rank_table(searches) if searches else None,
        "passages": passages,
        "chance": 100 * CHANCE / passages if passages else 0.0,
    }
    tables = [table for table in (values["loss_table"], values["rank_table"]) if table]
    return Section("bottleneck", values, tables, [*worth, *values["losses"], *halves])


def _probed(facts: Facts, probe: str) -> dict[str, pd.DataFrame]:
    """Take what a probe saw of every encoder at more than one step."""
    frames = {name: getattr(training, probe) for name, training in facts.encoders.items()}
    return {name: frame for name, frame in frames.items() if frame is not None and len(frame) > 1}


def _curves(
    facts: Facts, frames: dict[str, pd.DataFrame], column: str, file: str, title: str, **style: Any
) -> list[Figure]:
    """Draw a column of every encoder over the steps."""
    series = [
        Series(name, frame["step"].tolist(), frame[column].tolist(), encoder_colour(facts, name))
        for name, frame in frames.items()
    ]
    return several_lines(file, title, series, MOST, x_axis="steps", markers=True, **style)


def _losses(name: str, frame: pd.DataFrame) -> Figure:
    series = [
        Series(label, frame["step"].tolist(), frame[vector].tolist(), colour)
        for vector, (label, colour) in VECTORS.items()
    ]
    title = f"{name}: the decoder's loss with three vectors"
    return lines(f"bottleneck-{name}", title, series, x_axis="steps", y_axis="nats", markers=True)


def _loss_table(losses: dict[str, pd.DataFrame]) -> Table:
    body = []
    for name, frame in losses.items():
        for row in frame.to_dict("records"):
            nats = [number_cell(row[column], _nats) for column in (*VECTORS, "saved")]
            body.append([name, number_cell(int(row["step"]), formats.count), *nats])
    head = ["encoder", "step", *(label for label, _ in VECTORS.values()), "saved"]
    caption = "The decoder's loss in nats with a passage's own vector, another passage's, and none"
    return Table("bottleneck", caption, head, body)


def _nats(value: float) -> str:
    return formats.minus(f"{round(value, 3) + 0.0:.3f}")  # no minus before zero


def _rank_table(searches: dict[str, pd.DataFrame]) -> Table:
    body = [
        [name, *(number_cell(int(row[key]), formats.count) for key in ("step", "passages")),
         value_cell(row["rr"])]
        for name, frame in searches.items()
        for row in frame.to_dict("records")
    ]  # fmt: skip
    caption = "MRR@10 of the second half of a passage for its first half, by [CLS] before fine-tuning"
    return Table("halves", caption, ["encoder", "step", "passages", "MRR@10"], body)
