"""The loss curves: of encoder and decoder in each pre-training, of each fine-tuning."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pandas as pd

from cdmae.report.charts import Figure, Series, nice
from cdmae.report.facts import Facts, Training
from cdmae.report.sections import Section, colour, encoder_colour, several_lines

POINTS = 120  # of a curve: more steps are averaged
MOST = 5  # curves in a figure
START = 0.1  # of a curve: where it is more than twice as high as the rest, it would flatten it and is not shown
SHOWN = 6  # figures of fine-tuning that are not folded


def section(facts: Facts) -> Section | None:
    """Show pre-training by side, fine-tuning by stage."""
    first, second = pretraining(facts), finetuning(facts)
    if not first and not second:
        return None
    values = {"facts": facts, "pretraining": first, "shown": second[:SHOWN], "more": second[SHOWN:], "points": POINTS}
    return Section("training", values, figures=[*first, *second])


def pretraining(facts: Facts) -> list[Figure]:
    """Draw the loss of each side."""
    figures = []
    for side in ("encoder", "decoder"):
        series = [
            Series(encoder, *points, encoder_colour(facts, encoder))
            for encoder, training in facts.encoders.items()
            if (points := curve(training, f"{side}_loss"))
        ]
        figures += _figures(f"loss-{side}", f"{side.capitalize()} loss in pre-training", series)
    return figures


def finetuning(facts: Facts) -> list[Figure]:
    """Draw the losses of each stage: its systems are trained alike, so their curves compare."""
    by_stage: dict[str, list[Series]] = {}
    for name, training in facts.trained.items():
        points = curve(training, "loss")
        if points:
            stage = facts.entries("systems").get(name, {}).get("stage", "")
            by_stage.setdefault(stage, []).append(Series(name, *points, colour(facts, name)))
    return [
        figure
        for stage, series in by_stage.items()
        for figure in _figures(f"loss-{stage or 'fine-tuning'}", f"Fine-tuning loss, {stage}", series)
    ]


def curve(training: Training, column: str) -> tuple[list[float], list[float]] | None:
    """Average the values since the point before, at most `POINTS`; None where nothing was recorded."""
    if training.curve is None or column not in training.curve:
        return None
    frame = training.curve[["step", column]].apply(pd.to_numeric, errors="coerce").dropna()
    if len(frame) < 2:
        return None
    parts = np.array_split(frame.to_numpy(float), min(POINTS, len(frame)))
    return [float(part[-1, 0]) for part in parts], [float(part[:, 1].mean()) for part in parts]


def _figures(name: str, title: str, series: list[Series]) -> list[Figure]:
    """Draw one figure, or several on one scale where the curves are too many to be told apart."""
    if not series:
        return []
    low, top = min(min(line.y) for line in series), max(max(line.y) for line in series)
    rest = max(max(line.y[round(START * len(line.y)) :]) for line in series)
    low, high = nice(low, rest if top > 2 * rest else top)
    series = [replace(line, y=[value if value <= high else math.nan for value in line.y]) for line in series]
    return several_lines(name, title, series, MOST, x_axis="steps", y_axis="nats", low=low, high=high)
