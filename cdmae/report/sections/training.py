"""Show the loss curves of trainings, and their queries without negatives."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pandas as pd
from markupsafe import Markup

from cdmae import formats
from cdmae.report import figures
from cdmae.report.facts import Facts
from cdmae.report.figures import Series
from cdmae.report.frames import Frames
from cdmae.report.sections import colour

MOST = 3  # figures that are not folded


def training(facts: Facts, frames: Frames) -> dict[str, Any] | None:
    """Show pre-training losses for encoder and decoder, and fine-tuning losses by stage.

    Only losses of the same stage can be compared.
    """

    def drawn(title: str, quantity: str, names: Iterable[str]) -> Markup:
        series = []
        for name in names:
            curve = frames.curves(name).get(quantity, pd.Series(dtype=float))
            encoder = name if name in facts.encoders else facts.entry(name).encoder
            series.append(Series(name, curve, colour(facts, encoder)))
        return figures.lines(title, series, "steps", "nats")

    stages: dict[str, list[str]] = {}
    for name in facts.trained:
        stages.setdefault(facts.entry(name).stage, []).append(name)
    every = [
        drawn("Encoder loss in pre-training", "encoder_loss", facts.encoders),
        drawn("Decoder loss in pre-training", "decoder_loss", facts.encoders),
        *(drawn(f"Fine-tuning loss, {stage}", "loss", names) for stage, names in stages.items()),
    ]
    shown = [figure for figure in every if figure]
    if not shown:
        return None
    counts: dict[str, list[str]] = {}  # systems by the training queries that were left out, ...
    for name, trained in facts.trained.items():
        reasons = trained.about.get("counts") or {}
        words = [f"{formats.count(number)} {reason}" for reason, number in reasons.items()]
        counts.setdefault("; ".join(words), []).append(name)
    return {"facts": facts, "shown": shown[:MOST], "more": shown[MOST:], "counts": counts}
