"""Measurements at a few steps of pre-training, without gradients or random numbers.

A probe is a module with ``look(network, reader, rows, device)``. It prepares its input and returns
a measuring function without arguments, or None if there is nothing to measure. Training is
bit-identical with and without probes. The results of a probe are a table in the training's state,
and finally a file next to the encoder.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from torch import nn

from cdmae.log import say
from cdmae.pretraining.probes import bottleneck, halves

if TYPE_CHECKING:
    from cdmae.pretraining.reader import Reader
    from cdmae.training.state import State

# share of the initial MRR between halves: encoders that ended below it did not train in fine-tuning
FORGOTTEN = 0.8
LOOKS = 5  # the first, the last and some in between: 1 % of the time of a small training
PROBES = {"bottleneck.tsv": bottleneck.look, "retrieval.tsv": halves.look}


def looks(
    network: nn.Module, reader: Reader, last: int, saved: State, *, rows: int
) -> Callable[[int], None]:
    """Return a function to be called after every update; it runs the probes at some steps.

    last: the last step that is computed. rows: the rows of a micro-batch. Only the process that
    writes the state runs probes.
    """
    if not saved.writes:
        return lambda step: None
    steps = set(np.linspace(0, last, LOOKS).astype(int).tolist())
    measures = {
        file: look(network, reader, rows, saved.group.device) for file, look in PROBES.items()
    }

    def look(step: int) -> None:
        if step not in steps:
            return
        for file, measure in measures.items():
            if measure:
                numbers = {"step": step, **measure()}
                saved.begin(file, list(numbers))
                saved.add(file, **numbers)

    return look


def doubts(saved: State) -> list[str]:
    """Return and log a note if vectors distinguish passages less well than before pre-training."""
    values = [float(row[1]) for row in saved.tables.get("retrieval.tsv", [])[1:]]
    if not values or values[-1] >= FORGOTTEN * values[0]:
        return []
    note = (
        "searching with one half of a passage finds the other half with an MRR@10 of "
        f"{100 * values[-1]:.1f}, but {100 * values[0]:.1f} before the "
        "pre-training: the encoder is worse than its initial weights (lower learning_rate, "
        "or train for longer)"
    )
    say(f"{saved.name}: {note}")
    return [note]
