"""What a passage's vector tells the decoder: its loss with the true vector, another passage's, and none."""

from __future__ import annotations

import pandas as pd

from cdmae import formats
from cdmae.report.charts import Series, lines
from cdmae.report.facts import Facts
from cdmae.report.figures import Figure
from cdmae.report.markup import Markup, tag
from cdmae.report.palette import assign
from cdmae.report.sections import GREY, Section, panels, paragraphs
from cdmae.report.tables import Cell, Table

VECTORS = {"true": ("its own vector", 0), "shuffled": ("another passage's", 1), "zero": ("none", 2)}
MOST = 6  # encoders in one figure


def section(facts: Facts) -> Section | None:
    """What the vector is worth in every pre-training; the losses themselves folded."""
    seen = {name: each.bottleneck for name, each in facts.encoders.items() if each.bottleneck is not None}
    seen = {name: frame for name, frame in seen.items() if len(frame) > 1}
    if not seen:
        return None
    colours = assign(facts.entries("encoders"))
    worth = [_worth(dict(list(seen.items())[at : at + MOST]), colours, at) for at in range(0, len(seen), MOST)]
    each = [_losses(name, frame) for name, frame in seen.items()]
    text = (
        "At a few steps of a pre-training the decoder restored the same masked passages with their own vectors, with "
        "each other's, and with zeros. What the own vector saves is what the encoder puts into it: the pressure that a "
        "harder task for the decoder is meant to raise. Masks differ between encoders, so compare the savings, not the "
        "losses."
    )
    table = _table(seen)
    folded = tag("details", tag("summary", "The losses themselves"), panels(each), table.html())
    body = Markup("".join([paragraphs(text), panels(worth), folded]))
    figures = [*worth, *each]
    return Section("bottleneck", "What the vector carries", "Bottleneck", body, tables=[table], figures=figures)


def _worth(seen: dict[str, pd.DataFrame], colours: dict[str, int], at: int) -> Figure:
    series = [
        Series(name, frame["step"].tolist(), (frame["shuffled"] - frame["true"]).tolist(), colours.get(name, GREY))
        for name, frame in seen.items()
    ]
    title = "What the passage's own vector saves the decoder"
    name = "bottleneck-worth" + (f"-{at // MOST + 1}" if at else "")
    return lines(name, title, series, x_axis="steps", y_axis="nats, against another passage's", markers=True)


def _losses(name: str, frame: pd.DataFrame) -> Figure:
    series = [
        Series(label, frame["step"].tolist(), frame[vector].tolist(), colour)
        for vector, (label, colour) in VECTORS.items()
    ]
    title = f"{name}: the decoder's loss with three vectors"
    return lines(f"bottleneck-{name}", title, series, x_axis="steps", y_axis="nats", markers=True)


def _table(seen: dict[str, pd.DataFrame]) -> Table:
    body = [
        [name, Cell(formats.count(row["step"]), int(row["step"])), *(_nats(row[vector]) for vector in VECTORS),
         _nats(row["shuffled"] - row["true"])]
        for name, frame in seen.items()
        for row in frame.to_dict("records")
    ]  # fmt: skip
    head = ["encoder", "step", *(label for label, _ in VECTORS.values()), "saved"]
    caption = "The decoder's loss in nats with a passage's own vector, another passage's, and none"
    return Table("bottleneck", caption, head, body)


def _nats(value: float) -> Cell:
    return Cell(formats.minus(f"{round(value, 3) + 0.0:.3f}"), float(value))
