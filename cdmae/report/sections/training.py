"""Show the records of trainings: loss curves, and the use of a passage's vector."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from cdmae import formats
from cdmae.report.charts import Figure, Series, lines, nice
from cdmae.report.facts import Facts, Training
from cdmae.report.sections import Section, colour, encoder_colour
from cdmae.report.tables import Table

POINTS = 120  # of a curve: more steps are averaged
MOST, MOST_PROBED = 5, 6  # curves in a figure: losses, probes
# of a curve: where it is more than twice as high as the rest, it would flatten it and is not shown
START = 0.1
SHOWN = 6  # figures of fine-tuning that are not folded
VECTORS = {"true": "its own vector", "shuffled": "another passage's", "zero": "none"}
CHANCE = sum(
    1 / rank for rank in range(1, 11)
)  # MRR@10 times the number of passages, of a search that guesses


def section(facts: Facts) -> Section | None:
    """Show the losses of pre-training by side, and of fine-tuning by stage.

    Curves of one stage are comparable.
    """
    pretraining, finetuning, by_stage = [], [], {}
    for side in ("encoder", "decoder"):
        series = [
            Series(encoder, *points, encoder_colour(facts, encoder))
            for encoder, training in facts.encoders.items()
            if (points := curve(training, f"{side}_loss"))
        ]
        pretraining += loss_figures(
            f"loss-{side}", f"{side.capitalize()} loss in pre-training", series
        )
    for name, training in facts.trained.items():
        if points := curve(training, "loss"):
            stage = facts.entries("systems").get(name, {}).get("stage", "")
            by_stage.setdefault(stage, []).append(Series(name, *points, colour(facts, name)))
    for stage, series in by_stage.items():
        finetuning += loss_figures(
            f"loss-{stage or 'fine-tuning'}", f"Fine-tuning loss, {stage}", series
        )
    figures = [*pretraining, *finetuning]
    shown = {"pretraining": pretraining, "shown": finetuning[:SHOWN], "more": finetuning[SHOWN:]}
    return (
        Section("training", {"facts": facts, "points": POINTS, **shown}, figures=figures)
        if figures
        else None
    )


def curve(training: Training, column: str) -> tuple[list[float], list[float]] | None:
    """Average the values since the previous point, at most `POINTS`; None without records."""
    if training.curve is None or column not in training.curve:
        return None
    frame = training.curve[["step", column]].apply(pd.to_numeric, errors="coerce").dropna()
    if len(frame) < 2:
        return None
    parts = np.array_split(frame.to_numpy(float), min(POINTS, len(frame)))
    return [float(part[-1, 0]) for part in parts], [float(part[:, 1].mean()) for part in parts]


def loss_figures(name: str, title: str, series: list[Series]) -> list[Figure]:
    """Draw one figure, or several on one scale where the curves are too many to be told apart."""
    if not series:
        return []
    low, top = min(min(line.y) for line in series), max(max(line.y) for line in series)
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
    """Draw lines over the steps in as many figures as it takes to tell them apart."""
    figures = []
    for start in range(0, len(series), most):
        number = f"-{start // most + 1}" if start else ""
        figures.append(
            lines(name + number, title, series[start : start + most], x_axis="steps", **style)
        )
    return figures


# --- the probes of pre-training: `cdmae.pretraining.probes` ---------------------------------------


def bottleneck(facts: Facts) -> Section | None:
    """Show the vector's worth to the decoder and to a search; the numbers are folded."""
    losses, searches = (
        _probed(facts, "bottleneck", list(VECTORS)),
        _probed(facts, "retrieval", ["passages", "rr"]),
    )
    if losses.empty and searches.empty:
        return None
    losses["saved"], searches["MRR@10"] = losses["shuffled"] - losses["true"], 100 * searches["rr"]
    title, axis = (
        "What the passage's own vector saves the decoder",
        "nats, against another passage's",
    )
    shown = _several(
        "bottleneck-worth",
        title,
        _series(facts, losses, "saved"),
        MOST_PROBED,
        y_axis=axis,
        markers=True,
    )
    three = []
    for name, frame in losses.groupby("encoder", sort=False):
        series = [
            Series(label, frame["step"].tolist(), frame[vector].tolist(), number)
            for number, (vector, label) in enumerate(VECTORS.items())
        ]
        title = f"{name}: the decoder's loss with three vectors"
        three.append(
            lines(f"bottleneck-{name}", title, series, x_axis="steps", y_axis="nats", markers=True)
        )
    caption = "The decoder's loss in nats with a passage's own vector, another passage's, and none"
    forms = {"step": formats.count, **dict.fromkeys([*VECTORS.values(), "saved"], _nats)}
    loss_table = Table.of("bottleneck", caption, losses.rename(columns=VECTORS), forms)
    title, most = "How well half of a passage finds the other half", searches["MRR@10"].max()
    series, style = _series(facts, searches, "MRR@10"), {"low": 0, "high": most, "markers": True}
    shown += _several("halves", title, series, MOST_PROBED, y_axis="MRR@10", **style)
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


def _probed(facts: Facts, probe: str, columns: list[str]) -> pd.DataFrame:
    """Put together what a probe saw of every encoder at more than one step."""
    frames = {name: getattr(training, probe) for name, training in facts.encoders.items()}
    frames = [
        frame.assign(encoder=name)
        for name, frame in frames.items()
        if frame is not None and len(frame) > 1
    ]
    probed = pd.concat(
        [pd.DataFrame(columns=["encoder", "step", *columns], dtype=float), *frames],
        ignore_index=True,
    )
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
    return formats.minus(f"{round(value, 3) + 0.0:.3f}")  # no minus before zero
