"""Micro-batches of pre-training: passages masked on every side, on the device.

    B passages of a micro-batch, S rows, M predicted rows with filler (see `cdmae.models.packed`)

A side masks the text, or leaves it unmasked (`cdmae.masking.Side`). If an objective reads two texts
of a passage, they are separate sequences, one after the other, and "passages" below means texts.
`cdmae.pretraining.reader` makes the steps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from cdmae.models import packed
from cdmae.models.packed import Packed, Rows
from cdmae.models.ragged import Ragged


@dataclass(frozen=True)
class View:
    """One side of a micro-batch: its input and the tokens to predict.

    inputs: the passages as this side masks them, [CLS] and [SEP] included. rows: the rows at which
    the last layer is computed: the rows to be predicted and perhaps [CLS]. masked: int64 [M], the
    predicted rows among `rows`. labels: int64 [M], their original ids. weights: float32 [M], 1 /
    (predicted tokens of the side in the global batch), 0 for filler. hidden: bool [B, m, n], on
    the padded grids of `rows` and `inputs`: the rows of the same passage that each of `rows` must
    not see; None if every row sees the whole passage. draws: float32 [M], numbers in [0, 1), on a
    side that samples.
    """

    inputs: Packed
    rows: Rows
    masked: Tensor
    labels: Tensor
    weights: Tensor
    hidden: Tensor | None = None
    draws: Tensor | None = None


@dataclass(frozen=True)
class Batch:
    """A micro-batch: its views by name, and its range in the global batch of `whole` passages.

    Two fields serve objectives with a loss over the whole global batch. common: that loss, 0-d.
    pull: its gradient with respect to the passages' vectors, [B, D].
    """

    views: dict[str, View]
    range: slice
    whole: int
    common: Tensor | None = None
    pull: Tensor | None = None

    def __getitem__(self, side: str) -> View:
        """Return the view of a side."""
        return self.views[side]

    @property
    def share(self) -> float:
        """Return the micro-batch's share of the global batch's passages."""
        return (self.range.stop - self.range.start) / self.whole


@dataclass(frozen=True)
class Texts:
    """Ranges of a collection's word-pieces, int64 [B] each: offset, length and epoch.

    rows: numbers that select the random draws; for a whole passage, its row number.
    """

    rows: np.ndarray
    begins: np.ndarray
    lengths: np.ndarray
    epochs: np.ndarray

    def __getitem__(self, which: slice | np.ndarray) -> Texts:
        """Return the selected texts."""
        return Texts(self.rows[which], self.begins[which], self.lengths[which], self.epochs[which])


@dataclass(frozen=True)
class Masked:
    """One side of many passages on the host, framed by [CLS] and [SEP].

    chosen: bool [S], the tokens to predict. labels: int64 [S]. hide: returns the positions that
    each position must not see, bool [B, n, n]. draws: float32 [S], numbers in [0, 1) for sampling.
    """

    inputs: Ragged
    chosen: np.ndarray
    labels: np.ndarray
    texts: Texts
    hide: Callable[[Texts], np.ndarray] | None = None
    draws: np.ndarray | None = None

    def grid(self) -> np.ndarray:
        """Return `chosen`, padded: bool [B, n]."""
        lengths = self.inputs.lengths
        real = np.arange(lengths.max(initial=0)) < lengths[:, None]
        chosen = np.zeros(real.shape, bool)
        chosen[real] = self.chosen
        return chosen

    def __getitem__(self, cut: slice) -> Masked:
        """Return a range of passages, as views."""
        rows = slice(self.inputs.starts[cut.start], self.inputs.starts[cut.stop])
        return replace(
            self,
            inputs=self.inputs.cut(cut),
            chosen=self.chosen[rows],
            labels=self.labels[rows],
            texts=self.texts[cut],
            draws=None if self.draws is None else self.draws[rows],
        )

    def view(self, total: int, *, with_cls: bool, on: torch.device) -> View:
        """Copy the passages to the device; `total`: the global batch's predicted tokens."""
        needed = self.chosen.copy()
        needed[self.inputs.starts[:-1]] |= with_cls
        index = np.flatnonzero(needed)
        chosen = np.flatnonzero(self.chosen)
        count = packed.row_count(len(chosen), on)
        weights = np.full(len(chosen), 1 / max(1, total), np.float32)
        inputs = packed.pack(self.inputs, on)
        rows = packed.select(index, self.inputs.starts, on)
        hidden = None
        if self.hide is not None:
            hidden = packed.put(self.hidden(rows.longest, inputs.longest), on)
        return View(
            inputs,
            rows,
            masked=packed.put(np.searchsorted(index, chosen), on, count),
            labels=packed.put(self.labels[chosen], on, count),
            weights=packed.put(weights, on, count),
            hidden=hidden,
            draws=None if self.draws is None else packed.put(self.draws[chosen], on, count),
        )

    def hidden(self, rows: int, columns: int) -> np.ndarray:
        """Spread the masks of `hide` over the grids of predicted rows and all rows: bool [B, m, n].

        Every row sees [CLS] and [SEP], no row sees padding.
        """
        masks = self.hide(self.texts)
        hidden = np.ones((len(masks), rows, columns), bool)
        predicted = self.grid()
        for passage, size in enumerate(self.inputs.lengths):
            seen_by = np.flatnonzero(predicted[passage])
            hidden[passage, : len(seen_by), :size] = masks[passage, seen_by, :size]
            hidden[passage, :, [0, size - 1]] = False
        return hidden


@dataclass(frozen=True)
class Step:
    """A global batch on the host, sorted by length.

    spans: sequences per passage, 1 or 2. read_at_cls: the sides whose [CLS] state is read.
    """

    sides: dict[str, Masked]
    spans: int = 1
    read_at_cls: Sequence[str] = ("encoder", "passage")

    def batches(
        self, rows: int, on: torch.device, rank: int = 0, ranks: int = 1
    ) -> Iterator[Batch]:
        """Yield the micro-batches of process `rank` of `ranks`, with about `rows` rows each.

        A process gets every `ranks`-th micro-batch. Weights refer to the global batch: accumulation
        and data parallelism only add up the gradients of all micro-batches.
        """
        totals = {side: int(masked.chosen.sum()) for side, masked in self.sides.items()}
        starts = next(iter(self.sides.values())).inputs.starts
        edges = (_cuts(starts[:: self.spans], rows, ranks) * self.spans).tolist()
        ranges = [slice(*pair) for pair in zip(edges[:-1], edges[1:], strict=True)]
        for cut in ranges[rank::ranks]:
            views = {
                side: masked[cut].view(totals[side], with_cls=side in self.read_at_cls, on=on)
                for side, masked in self.sides.items()
            }
            yield Batch(views, cut, len(starts) - 1)


def _cuts(starts: np.ndarray, rows: int, ranks: int) -> np.ndarray:
    """Divide passages at `starts` into non-empty pieces of about `rows` rows; return the cuts.

    Each of `ranks` processes gets the same number of pieces, if there are enough passages.
    """
    passages = len(starts) - 1
    count = -(-max(1, int(starts[-1])) // rows)
    count = min(-(-count // ranks) * ranks, passages)
    numbers = np.arange(count + 1)
    cuts = np.searchsorted(starts, np.linspace(0, starts[-1], count + 1))
    # Each cut is at least one passage after the previous cut.
    cuts = np.maximum.accumulate(cuts - numbers) + numbers
    return np.minimum(cuts, passages - count + numbers)
