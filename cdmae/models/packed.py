"""Passages concatenated without padding: the input format of every model in this project.

    S  rows: all word-pieces of B passages one after another, then filler
    B  passages         n  word-pieces of the longest passage     R  selected rows

A third to a half of a padded batch is padding. Here only attention is padded. On the CPU, row
counts are rounded up: the matrix library caches a compiled kernel for every count, and would use
more memory with each new count. The filler rows are computed and never read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from cdmae.models.ragged import BARE, HIDDEN, Ragged, indices

BLOCK = 64  # row counts on the CPU are multiples of it
WIDTH = 8  # grid widths on the CPU are multiples of it
CPU = torch.device("cpu")


@dataclass(frozen=True)
class Layout:
    """The rows of each passage: passage b has ``starts[b]:starts[b + 1]``; later rows are filler.

    starts: int32 [B + 1] on the device. size: the number of rows, filler included. longest: the
    number of rows of the longest passage, rounded up on the CPU. cells: int64, the index of every
    row except filler in the padded grid [B, longest]: ``b * longest + (row - starts[b])``.
    """

    starts: Tensor
    size: int
    longest: int
    cells: Tensor

    def __len__(self) -> int:
        """Return the number of passages B."""
        return len(self.starts) - 1


@dataclass(frozen=True)
class Packed(Layout):
    """A packed batch: ids, positions (from 0 in each passage), types (pairs only); int64 [S].

    The [CLS] rows are ``starts[:-1]``. seen: the rows that others attend to; None: all. scored: for
    a multi-vector head, the rows with a vector of their own; for DeepCT, the rows that begin a
    word.
    """

    ids: Tensor
    positions: Tensor
    types: Tensor | None = None
    seen: Rows | None = None
    scored: Rows | None = None


@dataclass(frozen=True)
class Rows(Layout):
    """Selected rows of a packed batch, in ascending order.

    index: int64 [R], row numbers; the layout has each passage's range within the index.
    """

    index: Tensor


def pack(
    sequences: Ragged | Sequence[Sequence[int] | np.ndarray], on: torch.device = CPU
) -> Packed:
    """Pack sequences, which must not be empty, and copy them to the device `on`."""
    if not isinstance(sequences, Ragged):
        sequences = Ragged.of(sequences)
    layout, within = _layout(sequences.starts, on)
    types = None if sequences.types is None else put(sequences.types, on, layout.size)
    ids = put(sequences.values, on, layout.size)
    positions = put(within, on, layout.size)
    seen = None
    scored = None
    if sequences.flags is not None:
        visible = sequences.flags & HIDDEN == 0
        if not visible.all():
            seen = select(np.flatnonzero(visible), sequences.starts, on)
        scored = select(np.flatnonzero(sequences.flags & BARE == 0), sequences.starts, on)
    return Packed(
        **vars(layout),
        ids=ids,
        positions=positions,
        types=types,
        seen=seen,
        scored=scored,
    )


def select(index: np.ndarray, starts: np.ndarray, on: torch.device = CPU) -> Rows:
    """Select rows of a batch; starts [B + 1]: the offsets of its passages.

    index: the row numbers, in ascending order. Both arrays are on the host.
    """
    layout, _ = _layout(np.searchsorted(index, starts), on)
    return Rows(**vars(layout), index=put(index, on, layout.size))


def cls_rows(packed: Packed) -> Rows:
    """Select the first row of every passage."""
    on = packed.ids.device
    count = len(packed)
    size = row_count(count, on)
    index = torch.zeros(size, dtype=torch.int64, device=on)
    index[:count] = packed.starts[:-1]
    every = torch.arange(count + 1, device=on)
    return Rows(every.int(), size, 1, every[:-1], index)


def row_count(count: int, on: torch.device) -> int:
    """Return the number of rows with filler: at least 1, on the CPU a multiple of `BLOCK`."""
    count = max(1, count)
    return count if on.type == "cuda" else -(-count // BLOCK) * BLOCK


def _layout(starts: np.ndarray, on: torch.device) -> tuple[Layout, np.ndarray]:
    """Return the layout of passages with the offsets `starts`, and each row's position."""
    lengths = np.diff(starts)
    longest = int(lengths.max(initial=1))
    if on.type != "cuda":
        longest = -(-longest // WIDTH) * WIDTH
    within = indices(np.zeros_like(lengths), lengths)
    cells = within + np.repeat(np.arange(len(lengths)) * longest, lengths)
    rows = row_count(int(starts[-1]), on)
    return Layout(put(starts.astype(np.int32), on), rows, longest, put(cells, on)), within


def put(values: np.ndarray, on: torch.device, rows: int | None = None) -> Tensor:
    """Copy an array to the device asynchronously; on the CPU, the tensor may share its memory.

    rows: the number of rows up to which zeros are added.
    """
    if rows is not None:
        filled = np.zeros(rows, values.dtype)
        filled[: len(values)] = values
        values = filled
    tensor = torch.from_numpy(values)
    return tensor if on.type == "cpu" else tensor.pin_memory().to(on, non_blocking=True)
