"""What the bottleneck carries: the decoder's loss with the passage's own vector, another passage's, and none.

Where the three are equal the decoder does without the encoder, and pre-training teaches it nothing; how far apart they
are is how much of a passage its vector tells. Looked at a few times in a pre-training, on the same passages and masks
each time, without a gradient and without a random number: the training ends in the same bits with and without.

Objectives with `encode`, `bottleneck` and `decode` (mae, cotmae) are looked at, others have no vector to exchange.

    B passages, D dimensions
"""

from __future__ import annotations

import shutil
from copy import copy as shallow
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor, nn

from cdmae import files
from cdmae.objectives._prediction import predict

if TYPE_CHECKING:
    from cdmae.batches import Batch, Reader, View
    from cdmae.states import State

COLUMNS = ["step", "true", "shuffled", "zero"]
LOOKS = 5  # at the start, in between, at the end: hardly a thousandth of the time
FILE = "bottleneck.tsv"


def losses(network: nn.Module, batch: Batch) -> dict[str, float]:
    """The decoder's mean loss, in nats, with each vector h_b [B, D]: the true one, its neighbour's, and zeros."""
    encoder, view = batch["encoder"], batch["decoder"]
    with torch.no_grad():
        h_b = network.bottleneck(network.encode(encoder)[0])
        vectors = {"true": h_b, "shuffled": h_b.roll(1, 0), "zero": torch.zeros_like(h_b)}
        return {name: _loss(network, each, view) for name, each in vectors.items()}


def _loss(network: nn.Module, h_b: Tensor, view: View) -> float:
    total = predict(network.model.cls.predictions, network.decode(h_b, view), view.labels, view.weights)[0]
    return float(total / view.weights.sum())


class Probe:
    """Looks at a network at some steps of its training, and keeps what it saw beside the training's state."""

    def __init__(self, network: nn.Module, reader: Reader, last: int, held: State) -> None:
        """`last`: the last step that is computed; the first step's passages are looked at."""
        self._network, self._reader, self._held = network, reader, held
        able = all(hasattr(network, each) for each in ("encode", "bottleneck", "decode"))
        self._places = set(np.linspace(0, last, LOOKS).astype(int).tolist()) if able and held.writes else set()
        self._rows: dict[int, str] | None = None
        self._batch: Batch | None = None

    def due(self, step: int) -> bool:
        """Whether to look after `step` updates."""
        return step in self._places

    def look(self, step: int, rows: int, device: torch.device) -> None:
        """Look at the network after `step` updates; `rows`: of a micro-batch."""
        if self._batch is None:
            (first,) = shallow(self._reader).read(0, 1)  # a copy: another thread may be reading
            self._batch = next(iter(first.batches(rows, device)))
        found = losses(self._network, self._batch)
        self._seen()[step] = "\t".join([str(step), *(f"{found[name]:.6g}" for name in COLUMNS[1:])])
        files.write_text(self._path, "".join(f"{row}\n" for row in ["\t".join(COLUMNS), *self._seen().values()]))

    @property
    def _path(self) -> Path:
        return self._held.folder / FILE

    def _seen(self) -> dict[int, str]:
        """The rows so far, by step: those up to the step that the training was resumed from."""
        if self._rows is None:
            there = self._path.exists() and self._held.step > 0
            found = self._path.read_text(encoding="utf-8").splitlines()[1:] if there else []
            self._rows = {int(row.split("\t")[0]): row for row in found}
            self._rows = {step: row for step, row in self._rows.items() if step <= self._held.step}
        return self._rows


def copy(state: Path, folder: Path) -> None:
    """Put what was seen, if anything was, beside the encoder that is written to `folder`."""
    if (state / FILE).exists():
        shutil.copyfile(state / FILE, folder / FILE)


def discard(state: Path) -> None:
    """Delete what lies beside the state: the training is finished and its output written."""
    (state / FILE).unlink(missing_ok=True)
