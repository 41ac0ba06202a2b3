"""Show the records of trainings: loss curves, and how a passage's vector is used."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from cdmae import formats
from cdmae.report.charts import Figure, Series, lines, nice
from cdmae.report.facts import Facts
from cdmae.report.records import Training
from cdmae.report.sections import Section, colour, encoder_colour
from cdmae.report.tables import Table

POINTS = 120  # points per curve; further steps are averaged
MOST = 5  # loss curves in a figure
MOST_PROBED = 6  # curves of a probe in a figure
# This first share of a curve is cut if it is more than twice as high as the rest, because it would
# flatten the rest.
START = 0.1
SHOWN = 6  # figures of fine-tuning that are not collapsed
VECTORS = {"true": "its own vector", "shuffled": "another passage's", "zero": "none"}
# MRR@10 of a random ranking, times the number of passages
CHANCE = sum(1 / rank for rank in range(1, 11))


def section(facts: Facts) -> Section | None:
    """Show pre-training losses for encoder and decoder, and fine-tuning losses by stage.

    Only losses of the same stage can be compared.
    """
    pretraining = []
    for side in ("encoder", "decoder"):
        series = []
        for encoder, training in facts.encoders.items():
            points = curve(training, f"{side}_loss")
            if points:
                series.append(Series(encoder, *points, encoder_colour(facts, encoder)))
        title = f"{side.capitalize()} loss in pre-training"
        pretraining += loss_figures(f"loss-{side}", title, series)
    by_stage: dict[str, list[Series]] = {}
    for name, training in facts.trained.items():
        points = curve(training, "loss")
        if points:
            stage = facts.entries("systems").get(name, {}).get("stage", "")
            by_stage.setdefault(stage, []).append(Series(name, *points, colour(facts, name)))
    finetuning = []
    for stage, series in by_stage.items():
        file = f"loss-{stage or 'fine-tuning'}"
        finetuning += loss_figures(file, f"Fine-tuning loss, {stage}", series)
    figures = [*pretraining, *finetuning]
    if not figures:
        return None
    values = {
        "facts": facts,
        "points": POINTS,
        "pretraining": pretraining,
        "shown": finetuning[:SHOWN],
        "more": finetuning[SHOWN:],
    }
    return Section("training", values, figures=figures)


def curve(training: Training, column: str) -> tuple[list[float], list[float]] | None:
    """Return at most `POINTS` points of a curve, each a mean over steps; None without data."""
    if training.curve is None or column not in training.curve:
        return None
    frame = training.curve[["step", column]].apply(pd.to_numeric, errors="coerce").dropna()
    if len(frame) < 2:
        return None
    parts = np.array_split(frame.to_numpy(float), min(POINTS, len(frame)))
    return [float(part[-1, 0]) for part in parts], [float(part[:, 1].mean()) for part in parts]


def loss_figures(name: str, title: str, series: list[Series]) -> list[Figure]:
    """Draw one figure, or several on the same scale if there are too many curves for one."""
    if not series:
        return []
    low = min(min(line.y) for line in series)
    top = max(max(line.y) for line in series)
    rest = max(max(line.y[round(START * len(line.y)) :]) for line in series)
    low, high = nice(low, rest if top > 2 * rest else top)
    series = [
        replace(line, y=[value if value <= high else math.nan for value in line.y])
        for line in series
    ]
    return _several(name, title, series, MOST, y_axis="nats", low=low, high=high)


def _several(
    name: str, title: str, series: Sequence[Series], most: int, **style: Any
) -> list[Figure]:
    """Draw lines over the steps, at most `most` per figure."""
    figures = []
    for start in range(0, len(series), most):
        number = f"-{start // most + 1}" if start else ""
        figures.append(
            lines(name + number, title, series[start : start + most], x_axis="steps", **style)
        )
    return figures


# --- the probes of pre-training: `cdmae.pretraining.probes` ---------------------------------------


def bottleneck(facts: Facts) -> Section | None:
    """Show how much information the vector holds, for the decoder and for a search."""
    losses = _probed(facts, "bottleneck", list(VECTORS))
    searches = _probed(facts, "retrieval", ["passages", "rr"])
    if losses.empty and searches.empty:
        return None
    losses["saved"] = losses["shuffled"] - losses["true"]
    searches["MRR@10"] = 100 * searches["rr"]
    shown = _several(
        "bottleneck-worth",
        "Loss that the passage's own vector saves",
        _series(facts, losses, "saved"),
        MOST_PROBED,
        y_axis="nats, against another passage's",
        markers=True,
    )
    shown += _several(
        "halves",
        "How well half of a passage finds the other half",
        _series(facts, searches, "MRR@10"),
        MOST_PROBED,
        y_axis="MRR@10",
        low=0,
        high=searches["MRR@10"].max(),
        markers=True,
    )
    three = _vector_figures(losses)
    caption = "The decoder's loss in nats with a passage's own vector, another passage's, and none"
    forms = {"step": formats.count, **dict.fromkeys([*VECTORS.values(), "saved"], _nats)}
    loss_table = Table.of("bottleneck", caption, losses.rename(columns=VECTORS), forms)
    caption = (
        "MRR@10 of the second half of a passage for its first half, "
        "by their vectors before fine-tuning"
    )
    forms = {"step": formats.count, "passages": formats.count, "MRR@10": "{:.1f}".format}
    rank_table = Table.of("halves", caption, searches.drop(columns="rr"), forms)
    passages = searches.groupby("encoder")["passages"].last().max()
    values = {
        "shown": shown,
        "losses": three,
        "loss_table": loss_table,
        "rank_table": rank_table,
        "passages": passages,
        "chance": 100 * CHANCE / passages,
    }
    return Section("bottleneck", values, [loss_table, rank_table], [*shown, *three])


def _vector_figures(losses: pd.DataFrame) -> list[Figure | None]:
    """Draw a figure per encoder: the decoder's loss for each kind of vector."""
    figures = []
    for name, frame in losses.groupby("encoder", sort=False):
        series = [
            Series(label, frame["step"].tolist(), frame[vector].tolist(), number)
            for number, (vector, label) in enumerate(VECTORS.items())
        ]
        title = f"{name}: the decoder's loss with three vectors"
        file = f"bottleneck-{name}"
        figures.append(lines(file, title, series, x_axis="steps", y_axis="nats", markers=True))
    return figures


def _probed(facts: Facts, probe: str, columns: list[str]) -> pd.DataFrame:
    """Join the records of a probe for all encoders with more than one recorded step."""
    frames = [pd.DataFrame(columns=["encoder", "step", *columns], dtype=float)]
    for name, training in facts.encoders.items():
        frame = getattr(training, probe)
        if frame is not None and len(frame) > 1:
            frames.append(frame.assign(encoder=name))
    probed = pd.concat(frames, ignore_index=True)
    return probed.astype({name: int for name in ("step", "passages") if name in probed})


def _series(facts: Facts, probed: pd.DataFrame, column: str) -> list[Series]:
    return [
        Series(
            str(name),
            frame["step"].tolist(),
            frame[column].tolist(),
            encoder_colour(facts, str(name)),
        )
        for name, frame in probed.groupby("encoder", sort=False)
    ]


def _nats(value: float) -> str:
    return formats.minus(f"{round(value, 3) + 0.0:.3f}")  # no minus sign before zero
