"""Looks at a pre-training at a few of its steps, without a gradient and without a random number.

A probe is a module with ``look(network, reader, rows, device)``, which prepares what it looks at and returns a function
without arguments that measures, or None where there is nothing to measure. The training ends in the same bits with and
without probes. What they saw lies beside the training's state, a file for each, and then beside the encoder.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import nn

from cdmae.errors import InputError
from cdmae.files import write_text
from cdmae.log import say
from cdmae.pretraining.probes import bottleneck, halves

if TYPE_CHECKING:
    from cdmae.pretraining.batches import Reader
    from cdmae.training.state import State

FORGOTTEN = 0.8  # of the start's MRR between halves: encoders that ended below it could not be fine-tuned
LOOKS = 5  # at the start, in between, at the end: a hundredth of the time of a small training
PROBES = {"bottleneck.tsv": bottleneck.look, "retrieval.tsv": halves.look}


class Probes:
    """All probes of a training that is under way."""

    def __init__(
        self, network: nn.Module, reader: Reader, last: int, state: State, *, rows: int, device: torch.device
    ) -> None:
        """`last`: the last step that is computed; `rows`: of a micro-batch. Only who writes the state looks."""
        self._state = state
        self._places = set(np.linspace(0, last, LOOKS).astype(int).tolist()) if state.writes else set()
        looks = {file: look(network, reader, rows, device) for file, look in PROBES.items()} if state.writes else {}
        self._measures: dict[str, Callable[[], dict[str, float]]] = {
            file: measure for file, measure in looks.items() if measure
        }

    def look(self, step: int) -> None:
        """Look at the network after `step` updates, if it is time."""
        for file, measure in self._measures.items() if step in self._places else ():
            self._add(self._state.folder / file, step, measure())

    def _add(self, path: Path, step: int, numbers: dict[str, float]) -> None:
        """Add a row to what lies beside the state; those of steps that are still to come are of a run before a kill."""
        header = "\t".join(["step", *numbers])
        try:
            rows = path.read_text(encoding="utf-8").splitlines()[1:] if path.exists() else []
            kept = [row for row in rows if int(row.split("\t")[0]) < step]
        except ValueError as error:  # of the numbers, and of text that is not UTF-8
            raise InputError(f"{path} is damaged ({error}); delete it and run again") from None
        row = "\t".join([str(step), *(f"{value:.6g}" for value in numbers.values())])
        write_text(path, "".join(f"{line}\n" for line in [header, *kept, row]))


def copy(state: Path, folder: Path) -> None:
    """Put what was seen, if anything was, beside the encoder that is written to `folder`."""
    for file in PROBES:
        if (state / file).exists():
            shutil.copyfile(state / file, folder / file)


def doubts(state: Path, name: str) -> list[str]:
    """Return, and say, what is to be known of an encoder that tells passages apart less well than its start did."""
    path = state / "retrieval.tsv"
    if not path.exists():
        return []
    rows = path.read_text(encoding="utf-8").splitlines()[1:]
    first, last = (float(row.split("\t")[1]) for row in (rows[0], rows[-1]))
    if last >= FORGOTTEN * first:
        return []
    note = (
        f"by its vector half a passage finds the other with an MRR@10 of {100 * last:.1f}, before the pre-training "
        f"{100 * first:.1f}: it is worth less than its start (lower learning_rate, or train for longer)"
    )
    say(f"{name}: {note}")
    return [note]


def discard(state: Path) -> None:
    """Delete what lies beside the state: the training is finished and its output written."""
    for file in PROBES:
        (state / file).unlink(missing_ok=True)
