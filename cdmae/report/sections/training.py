"""The loss curves: of encoder and decoder in each pre-training, of each fine-tuning."""

from __future__ import annotations

import numpy as np
import pandas as pd

from cdmae.report.charts import Series, lines
from cdmae.report.facts import Facts, Training
from cdmae.report.figures import Figure
from cdmae.report.markup import Markup, tag
from cdmae.report.palette import assign
from cdmae.report.sections import Section, colour, panels, paragraphs

POINTS = 120  # of a curve: more steps are averaged
SIDES = (("encoder_loss", "Encoder"), ("decoder_loss", "Decoder"))


def section(facts: Facts) -> Section | None:
    """Pre-training by side, fine-tuning by kind of system."""
    first, second = pretraining(facts), finetuning(facts)
    if not first and not second:
        return None
    body: list[Markup | None] = []
    if first:
        text = (
            "Cross-entropy over the masked words, in nats. A higher loss of the decoder is not a worse one: words "
            "chosen by importance are harder to restore, which is the method's point. Curves of different maskings "
            "compare in shape, not in height."
        )
        body += [tag("h3", "Pre-training"), paragraphs(text), panels(first)]
    if second:
        text = "Contrastive loss over a step's passages; with a teacher, its KL divergence is added, so heights differ."
        body += [tag("h3", "Fine-tuning"), paragraphs(text), panels(second)]
    body.append(
        tag(
            "p",
            f"Each point is the mean over its share of the steps, at most {POINTS} points to a curve.",
            class_="note",
        )
    )
    return Section(
        "training", "Loss curves", "Loss curves", Markup("".join(filter(None, body))), figures=[*first, *second]
    )


def pretraining(facts: Facts) -> list[Figure]:
    """One figure for each side."""
    colours = assign(facts.entries("encoders"))
    figures = []
    for column, name in SIDES:
        curves = {encoder: curve(training, column) for encoder, training in facts.encoders.items()}
        series = [Series(key, *found, colours.get(key, 2)) for key, found in curves.items() if found]
        if series:
            figures.append(_figure(f"loss-{name.lower()}", f"{name} loss in pre-training", series))
    return figures


def finetuning(facts: Facts) -> list[Figure]:
    """One figure for each stage: its systems are trained alike, so their curves compare."""
    systems, by_stage = facts.entries("systems"), {}
    for name, training in facts.trained.items():
        found = curve(training, "loss")
        if found:
            by_stage.setdefault(systems.get(name, {}).get("stage", ""), []).append(
                Series(name, *found, colour(facts, name))
            )
    return [
        _figure(f"loss-{stage or 'fine-tuning'}", f"Fine-tuning loss, {stage}", series)
        for stage, series in by_stage.items()
    ]


def curve(training: Training, column: str) -> tuple[list[float], list[float]] | None:
    """The steps and values of a curve, averaged to at most `POINTS`; None where it was not recorded."""
    if training.curve is None or column not in training.curve:
        return None
    frame = training.curve[["step", column]].apply(pd.to_numeric, errors="coerce").dropna()
    if len(frame) < 2:
        return None
    parts = np.array_split(frame.to_numpy(float), min(POINTS, len(frame)))
    means = np.array([part.mean(axis=0) for part in parts])
    return means[:, 0].tolist(), means[:, 1].tolist()


def _figure(name: str, title: str, series: list[Series]) -> Figure:
    return lines(name, title, series, x_axis="steps", y_axis="nats")
