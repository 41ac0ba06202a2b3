"""What a passage's vector tells: the decoder, whose loss it lowers, and a search, which finds by it what belongs to it.

Two probes of every pre-training, by `cdmae.pretraining.probes.bottleneck` and `cdmae.pretraining.probes.halves`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

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
CHANCE = sum(1 / rank for rank in range(1, 11))  # MRR@10 times the number of passages, of a search that guesses


def section(facts: Facts) -> Section | None:
    """What the vector is worth in every pre-training, to the decoder and to a search; numbers folded."""
    carried, found = _seen(facts, "bottleneck"), _seen(facts, "retrieval")
    if not carried and not found:
        return None
    worth, losses = _parts(facts, carried, _worth), [_losses(name, frame) for name, frame in carried.items()]
    best = 100 * max((frame["rr"].max() for frame in found.values()), default=0.0)
    ranks = _parts(facts, found, partial(_ranks, high=best))
    told, tables, folded = [], [], []
    if carried:
        told.append(CARRIED)
        tables.append(_table(carried))
        folded.append(tag("details", tag("summary", "The losses themselves"), panels(losses), tables[-1].html()))
    if found:
        told.append(_of_halves(found))
        tables.append(_rank_table(found))
        folded.append(tag("details", tag("summary", "How often half of a passage is found"), tables[-1].html()))
    body = Markup("".join([paragraphs(*told), panels([*worth, *ranks]), *folded]))
    title, figures = "What the vector carries", [*worth, *losses, *ranks]
    return Section("bottleneck", title, "Bottleneck", body, tables=tables, figures=figures)


CARRIED = (
    "At a few steps of a pre-training the decoder restored the same masked passages with their own vectors, with "
    "each other's, and with zeros. What the own vector saves is what the encoder puts into it: the pressure that a "
    "harder task for the decoder is meant to raise. Masks differ between encoders, so compare the savings, not the "
    "losses."
)


def _seen(facts: Facts, probe: str) -> dict[str, pd.DataFrame]:
    """What a probe saw of every encoder at more than one step."""
    frames = {name: getattr(each, probe) for name, each in facts.encoders.items()}
    return {name: frame for name, frame in frames.items() if frame is not None and len(frame) > 1}


def _parts(facts: Facts, seen: dict[str, pd.DataFrame], draw: Callable[..., Figure]) -> list[Figure]:
    """Figures of some encoders each, as many as can be told apart."""
    colours = assign(facts.entries("encoders"))
    parts = [dict(list(seen.items())[at : at + MOST]) for at in range(0, len(seen), MOST)]
    return [draw(part, colours, f"-{number}" if number > 1 else "") for number, part in enumerate(parts, 1)]


# --- to the decoder --------------------------------------------------------------------------------------------------


def _worth(seen: dict[str, pd.DataFrame], colours: dict[str, int], number: str) -> Figure:
    series = [
        Series(name, frame["step"].tolist(), (frame["shuffled"] - frame["true"]).tolist(), colours.get(name, GREY))
        for name, frame in seen.items()
    ]
    title, axis = "What the passage's own vector saves the decoder", "nats, against another passage's"
    return lines(f"bottleneck-worth{number}", title, series, x_axis="steps", y_axis=axis, markers=True)


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


# --- to a search -----------------------------------------------------------------------------------------------------


def _of_halves(found: dict[str, pd.DataFrame]) -> str:
    passages = int(max(frame["passages"].iloc[-1] for frame in found.values()))
    return (
        "A search without labels, at the same steps: the first half of a passage looks for its second half among those "
        f"of {formats.count(passages)} passages, by the dot product of their [CLS] vectors, before any fine-tuning. "
        f"Chance would reach an MRR@10 of {100 * CHANCE / passages:.2f}. It tells what a vector knows of its text, for "
        "every objective and any collection; two halves of a passage share more words than a query and its answer, so "
        "it is no measure of a finished retriever."
    )


def _ranks(seen: dict[str, pd.DataFrame], colours: dict[str, int], number: str, *, high: float) -> Figure:
    series = [
        Series(name, frame["step"].tolist(), (100 * frame["rr"]).tolist(), colours.get(name, GREY))
        for name, frame in seen.items()
    ]
    title = "How well half of a passage finds the other half"
    return lines(f"halves{number}", title, series, x_axis="steps", y_axis="MRR@10", low=0, high=high, markers=True)


def _rank_table(found: dict[str, pd.DataFrame]) -> Table:
    body = [
        [name, *(Cell(formats.count(row[key]), int(row[key])) for key in ("step", "passages")),
         Cell(formats.points(row["rr"]), 100 * row["rr"])]
        for name, frame in found.items()
        for row in frame.to_dict("records")
    ]  # fmt: skip
    caption = "MRR@10 of the second half of a passage for its first half, by [CLS] before fine-tuning"
    return Table("halves", caption, ["encoder", "step", "passages", "MRR@10"], body)
