"""Measurements at a few steps of pre-training, without gradients or random numbers.

A probe is a module with two functions: ``prepare(network, reader, rows, device)`` returns its
input, or None if there is nothing to measure, and ``measure(network, prepared)`` returns numbers by
name. Training is bit-identical with and without probes. The results of a probe are a table in the
training's state, and finally a file next to the encoder.
"""

from __future__ import annotations

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
PROBES = {"bottleneck.tsv": bottleneck, "retrieval.tsv": halves}


class Probes:
    """The probes of a training, with their inputs."""

    def __init__(
        self, network: nn.Module, reader: Reader, last: int, saved: State, *, rows: int
    ) -> None:
        """Choose steps up to the `last` one; rows: of a micro-batch.

        Only the process that writes the state runs probes.
        """
        self.network = network
        self.saved = saved
        self.steps = {*np.linspace(0, last, LOOKS).astype(int).tolist()} if saved.writes else set()
        self.prepared = {
            file: probe.prepare(network, reader, rows, saved.group.device)
            for file, probe in PROBES.items()
            if saved.writes
        }

    def look(self, step: int) -> None:
        """Measure after `step` updates, if it is one of the chosen steps."""
        if step not in self.steps:
            return
        for file, prepared in self.prepared.items():
            if prepared is not None:
                numbers = {"step": step, **PROBES[file].measure(self.network, prepared)}
                self.saved.begin(file, list(numbers))
                self.saved.add(file, **numbers)


def doubts(saved: State) -> list[str]:
    """Return and log a note if vectors distinguish passages less well than before pre-training."""
    values = [float(row[1]) for row in saved.tables.get("retrieval.tsv", [])[1:]]
    if not values or values[-1] >= FORGOTTEN * values[0]:
        return []
    note = (
        "by its vector, half of a passage finds the other half with an MRR@10 of "
        f"{100 * values[-1]:.1f}, but {100 * values[0]:.1f} before the pre-training: the encoder "
        "has become worse (lower learning_rate, or train for longer)"
    )
    say(f"{saved.name}: {note}")
    return [note]
