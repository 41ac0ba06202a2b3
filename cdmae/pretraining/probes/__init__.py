"""Looks at a pre-training at a few of its steps, without a gradient and without a random number.

A probe is a module with ``look(network, reader, rows, device)``, which prepares what it looks at
and returns a function without arguments that measures, or None where there is nothing to measure.
The training ends in the same bits with and without probes. What they saw is a table of the
training's state each, and then a file beside the encoder.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from torch import nn

from cdmae.log import say
from cdmae.pretraining.probes import bottleneck, halves

if TYPE_CHECKING:
    from cdmae.pretraining.batches import Reader
    from cdmae.training.state import State

FORGOTTEN = (
    0.8  # of the start's MRR between halves: encoders that ended below it could not be fine-tuned
)
LOOKS = 5  # at the start, in between, at the end: a hundredth of the time of a small training
PROBES = {"bottleneck.tsv": bottleneck.look, "retrieval.tsv": halves.look}


def looks(
    network: nn.Module, reader: Reader, last: int, saved: State, *, rows: int
) -> Callable[[int], None]:
    """Return what looks at the network after a number of updates, if it is time.

    last: the last step that is computed; rows: of a micro-batch. Only the process that writes the
    state looks.
    """
    if not saved.writes:
        return lambda step: None
    steps = set(np.linspace(0, last, LOOKS).astype(int).tolist())
    measures = {
        file: look(network, reader, rows, saved.group.device) for file, look in PROBES.items()
    }

    def look(step: int) -> None:
        for file, measure in measures.items() if step in steps else ():
            if measure:
                numbers = {"step": step, **measure()}
                saved.begin(file, list(numbers))
                saved.add(file, **numbers)

    return look


def doubts(saved: State) -> list[str]:
    """Return, and say, what is to be known of an encoder that tells passages apart less well than
    its start did.
    """
    _, *rows = saved.tables.get("retrieval.tsv", [[]])
    first, last = (float(row[1]) for row in (rows[0], rows[-1])) if rows else (0.0, 0.0)
    if last >= FORGOTTEN * first:
        return []
    note = (
        f"by its vector half a passage finds the other with an MRR@10 of {100 * last:.1f}, before the pre-training "
        f"{100 * first:.1f}: it is worth less than its start (lower learning_rate, or train for longer)"
    )
    say(f"{saved.name}: {note}")
    return [note]
