"""The loss curves: of encoder and decoder in each pre-training, of each fine-tuning."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pandas as pd

from cdmae.report.charts import Series, lines
from cdmae.report.facts import Facts, Training
from cdmae.report.figures import Figure, nice
from cdmae.report.markup import Markup, tag
from cdmae.report.palette import assign
from cdmae.report.sections import GREY, Section, colour, panels, paragraphs

POINTS = 120  # of a curve: more steps are averaged
MOST = 5  # curves in a figure
START = 0.1  # of a curve: where it is more than twice as high as the rest, it would flatten it and is not shown
SHOWN = 6  # figures of fine-tuning that are not folded
SIDES = (("encoder_loss", "Encoder"), ("decoder_loss", "Decoder"))


def section(facts: Facts) -> Section | None:
    """Pre-training by side, fine-tuning by stage."""
    first, second = pretraining(facts), finetuning(facts)
    if not first and not second:
        return None
    body: list[Markup] = []
    if first:
        text = (
            "Cross-entropy over the masked words, in nats. A higher loss of the decoder is not a worse one: words "
            "chosen by importance are harder to restore, which is the method's point. Curves of different maskings "
            "compare in shape, not in height."
        )
        body += [tag("h3", "Pre-training"), paragraphs(text), panels(first)]
    if second:
        text = "Contrastive loss over a step's passages; with a teacher, its KL divergence is added, so heights differ."
        body += [tag("h3", "Fine-tuning"), paragraphs(text), panels(second[:SHOWN])]
        if second[SHOWN:]:
            body.append(tag("details", tag("summary", "More stages"), panels(second[SHOWN:])))
    note = (
        f"Each point is the mean over its share of the steps, at most {POINTS} points to a curve. A beginning more "
        "than twice as high as the rest is left out."
        + (f" Curves are those of seed {facts.seed}." if facts.repeated else "")
    )
    body.append(tag("p", note, class_="note"))
    figures = [*first, *second]
    return Section("training", "Loss curves", "Loss curves", Markup("".join(body)), figures=figures)


def pretraining(facts: Facts) -> list[Figure]:
    """Figures for each side."""
    colours = assign(facts.entries("encoders"))
    figures = []
    for column, name in SIDES:
        curves = {encoder: curve(training, column) for encoder, training in facts.encoders.items()}
        series = [Series(key, *found, colours.get(key, GREY)) for key, found in curves.items() if found]
        figures += _figures(f"loss-{name.lower()}", f"{name} loss in pre-training", series)
    return figures


def finetuning(facts: Facts) -> list[Figure]:
    """Figures for each stage: its systems are trained alike, so their curves compare."""
    systems = facts.entries("systems")
    by_stage: dict[str, list[Series]] = {}
    for name, training in facts.trained.items():
        found = curve(training, "loss")
        if found:
            stage = systems.get(name, {}).get("stage", "")
            by_stage.setdefault(stage, []).append(Series(name, *found, colour(facts, name)))
    return [
        figure
        for stage, series in by_stage.items()
        for figure in _figures(f"loss-{stage or 'fine-tuning'}", f"Fine-tuning loss, {stage}", series)
    ]


def curve(training: Training, column: str) -> tuple[list[float], list[float]] | None:
    """The steps and the mean values since the point before, at most `POINTS`; None where nothing was recorded."""
    if training.curve is None or column not in training.curve:
        return None
    frame = training.curve[["step", column]].apply(pd.to_numeric, errors="coerce").dropna()
    if len(frame) < 2:
        return None
    parts = np.array_split(frame.to_numpy(float), min(POINTS, len(frame)))
    return [float(part[-1, 0]) for part in parts], [float(part[:, 1].mean()) for part in parts]


def _figures(name: str, title: str, series: list[Series]) -> list[Figure]:
    """One figure, or several on one scale where the curves are too many to be told apart."""
    if not series:
        return []
    low, top = min(min(each.y) for each in series), max(max(each.y) for each in series)
    rest = max(max(each.y[round(START * len(each.y)) :]) for each in series)
    low, high = nice(low, rest if top > 2 * rest else top)
    series = [replace(each, y=[value if value <= high else math.nan for value in each.y]) for each in series]
    figures = []
    for place in range(0, len(series), MOST):
        some = series[place : place + MOST]
        number = f"-{place // MOST + 1}" if place else ""
        figures.append(lines(name + number, title, some, x_axis="steps", y_axis="nats", low=low, high=high))
    return figures
