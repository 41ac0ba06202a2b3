"""What a pre-training step reads: passages in a seeded order, masked on both sides, packed into micro-batches.

Step s takes the passages s x batch .. (s + 1) x batch of an endless sequence: one permutation of the collection per
epoch, end to end. Order and masks are functions of (seed, epoch, passage) alone, so nothing of them needs saving, and
neither accumulation nor the number of processes changes what a step learns from.

Many steps are read and masked at a time, in numpy: nothing here runs per step in Python but cutting views.

    B passages of a micro-batch, S rows, M masked rows (filler included, see `cdmae.packed`)
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from cdmae import masking, packed
from cdmae.errors import InputError
from cdmae.packed import Packed, Ragged, Rows
from cdmae.training import seed_of

if TYPE_CHECKING:
    from cdmae.files import Tokens
    from cdmae.masking import Side
    from cdmae.tokens import Vocabulary

PASSAGES_AT_ONCE = 4096  # read and masked together: some MB


@dataclass(frozen=True)
class View:
    """What one side of the model sees of a micro-batch, and what it must predict.

    inputs: the masked passages, [CLS] and [SEP] included. rows: where its last layer is needed, the masked rows and
    perhaps [CLS]. masked: int64 [M], the masked rows among `rows`. labels: int64 [M], their original ids. weights:
    float32 [M], 1 / (masked tokens of the side in the global batch), 0 for filler.
    """

    inputs: Packed
    rows: Rows
    masked: Tensor
    labels: Tensor
    weights: Tensor


@dataclass(frozen=True)
class Batch:
    """A micro-batch: its views by side (`encoder`, `decoder`), and its share of the global batch's passages."""

    views: dict[str, View]
    share: float

    def __getitem__(self, side: str) -> View:
        """The view of a side."""
        return self.views[side]


@dataclass(frozen=True)
class Masked:
    """A side of many passages on the host: inputs framed by [CLS] and [SEP]; chosen bool [S]; labels int64 [S]."""

    inputs: Ragged
    chosen: np.ndarray
    labels: np.ndarray

    def __getitem__(self, cut: slice) -> Masked:
        """A range of passages, views."""
        rows = slice(self.inputs.starts[cut.start], self.inputs.starts[cut.stop])
        return Masked(self.inputs[cut], self.chosen[rows], self.labels[rows])

    def view(self, total: int, *, with_cls: bool, on: torch.device) -> View:
        """These passages on the device; `total` masked tokens share the global batch's loss."""
        needed = self.chosen
        if with_cls:
            needed = needed.copy()
            needed[self.inputs.starts[:-1]] = True
        index = np.flatnonzero(needed)
        chosen = np.flatnonzero(self.chosen)
        masked, labels, weights = (np.zeros(packed.row_count(len(chosen), on), kind) for kind in (int, int, np.float32))
        masked[: len(chosen)] = np.searchsorted(index, chosen) if with_cls else np.arange(len(chosen))
        labels[: len(chosen)] = self.labels[chosen]
        weights[: len(chosen)] = 1 / max(1, total)
        return View(
            packed.pack(self.inputs, on),
            packed.select(index, self.inputs.starts, on),
            *(packed.put(each, on) for each in (masked, labels, weights)),
        )


@dataclass(frozen=True)
class Step:
    """A global batch on the host, its passages sorted by length. sides: the masked passages by side."""

    sides: dict[str, Masked]

    def batches(self, rows: int, on: torch.device, rank: int = 0, ranks: int = 1) -> Iterator[Batch]:
        """The micro-batches of about `rows` rows each; process `rank` of `ranks` gets every `ranks`-th of them.

        Weights refer to the global batch: adding up the gradients of all micro-batches, wherever they were computed,
        is all there is to accumulation and to data parallelism.
        """
        totals = {side: int(masked.chosen.sum()) for side, masked in self.sides.items()}
        starts = next(iter(self.sides.values())).inputs.starts
        cuts = _cuts(starts, rows, ranks).tolist()
        for a, b in list(zip(cuts[:-1], cuts[1:], strict=True))[rank::ranks]:
            views = {
                side: masked[a:b].view(totals[side], with_cls=side == "encoder", on=on)
                for side, masked in self.sides.items()
            }
            yield Batch(views, (b - a) / (len(starts) - 1))


def _cuts(starts: np.ndarray, rows: int, ranks: int) -> np.ndarray:
    """Where to cut passages at `starts` into pieces of about `rows` rows, none of them empty.

    As many pieces for every one of `ranks` processes, if there are passages enough.
    """
    passages = len(starts) - 1
    count = -(-max(1, int(starts[-1])) // rows)
    count = min(-(-count // ranks) * ranks, passages)
    places = np.arange(count + 1)
    cuts = np.searchsorted(starts, np.linspace(0, starts[-1], count + 1))
    cuts = np.maximum.accumulate(cuts - places) + places  # each at least one passage after the one before
    return np.minimum(cuts, passages - count + places)


class Reader:
    """Reads the steps of a pre-training."""

    def __init__(
        self,
        tokens: Tokens,
        importance: np.ndarray | None,
        vocabulary: Vocabulary,
        sides: dict[str, Side],
        *,
        batch: int,
        max_length: int,
        seed: int,
    ) -> None:
        """`importance` float16 [T] is aligned with the ids of `tokens`; `max_length` counts [CLS] and [SEP]."""
        if not len(tokens):
            raise InputError("the collection has no passages; there is nothing to pre-train on")
        self.tokens, self.importance, self.vocabulary, self.sides = tokens, importance, vocabulary, sides
        self.batch, self.length, self.seed = batch, max_length - 2, seed
        self._order: tuple[int, np.ndarray] = (-1, np.empty(0, np.int64))

    @cached_property
    def lengths(self) -> np.ndarray:
        """Word-pieces of every passage after cutting, int64 [P]."""
        return np.minimum(np.diff(self.tokens.starts), self.length)

    def steps(self, begin: int, end: int, *, ahead: bool = False) -> Iterator[Step]:
        """The steps begin .. end - 1; `ahead`: a thread reads on while the caller computes on another device."""
        at_once = max(1, PASSAGES_AT_ONCE // self.batch)
        spans = [(first, min(end, first + at_once)) for first in range(begin, end, at_once)]
        if not ahead:
            for span in spans:
                yield from self.read(*span)
            return
        with ThreadPoolExecutor(1) as reader:
            following = [reader.submit(self.read, *span) for span in spans[:1]]
            for span in [*spans[1:], None]:
                steps = following.pop().result()
                if span:
                    following.append(reader.submit(self.read, *span))
                yield from steps

    def read(self, begin: int, end: int) -> list[Step]:
        """Some steps at once."""
        places = np.arange(begin * self.batch, end * self.batch)
        epochs, rows = self.passages(places)
        order = np.lexsort((self.lengths[rows], places // self.batch))  # within each step by length
        epochs, rows = epochs[order], rows[order]
        sides = {side: self.mask(side, rows, epochs) for side in self.sides}
        cuts = [slice(at, at + self.batch) for at in range(0, len(rows), self.batch)]
        return [Step({side: masked[cut] for side, masked in sides.items()}) for cut in cuts]

    def passages(self, places: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Epoch and passage at some places of the endless sequence, ascending."""
        epochs, within = np.divmod(places, len(self.tokens))
        rows = np.empty_like(places)
        for epoch in np.unique(epochs).tolist():
            if self._order[0] != epoch:
                draw = np.random.default_rng(seed_of(self.seed, "order", epoch))
                self._order = epoch, draw.permutation(len(self.tokens))
            here = epochs == epoch
            rows[here] = self._order[1][within[here]]
        return epochs, rows

    def mask(self, side: str, rows: np.ndarray, epochs: np.ndarray) -> Masked:
        """Equation 1 for one side of some passages in their epochs."""
        starts = np.zeros(len(rows) + 1, np.int64)
        np.cumsum(self.lengths[rows] + 2, out=starts[1:])
        inputs, labels = np.empty(starts[-1], np.int64), np.zeros(starts[-1], np.int64)
        inputs[starts[:-1]], inputs[starts[1:] - 1] = self.vocabulary.cls_id, self.vocabulary.sep_id
        chosen, content = np.zeros(starts[-1], bool), packed.content(starts)
        passage = np.repeat(epochs, np.diff(starts))
        for epoch in np.unique(epochs).tolist():
            batch = masking.read(self.tokens, rows[epochs == epoch], self.length, self.vocabulary, self.importance)
            key = masking.key(self.seed, side, epoch)
            seen, predicted = masking.mask(batch, self.sides[side], self.vocabulary, key)
            real = np.arange(seen.shape[1]) < batch.lengths[:, None]
            here = content & (passage == epoch)
            inputs[here], chosen[here], labels[here] = seen[real], predicted[real], batch.ids[real]
        return Masked(Ragged(inputs, starts), chosen, labels)
