"""Passages laid end to end without padding: the form in which every model of this project reads text.

    S  rows: all word-pieces of B passages one after another, then filler
    B  passages         n  word-pieces of the longest one         R  selected rows

A third to a half of a padded batch is padding; here only attention sees any. On the CPU row counts are rounded up,
because its matrix library keeps a compiled kernel for every count it meets and memory would grow with each new one;
the filler rows are computed and never read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from cdmae.tokens.corpus import Tokens

BLOCK, WIDTH = 64, 8  # row counts and grid widths on the CPU are multiples of these
CPU = torch.device("cpu")


@dataclass(frozen=True)
class Layout:
    """Where each passage's rows lie: passage b has ``starts[b]:starts[b + 1]``; rows beyond ``starts[B]`` are filler.

    starts: int32 [B + 1] on the device. rows: the number of rows with filler. longest: the most rows of a passage, on
    the CPU rounded up. cells: int64, for every row but filler its cell ``b * longest + (row - starts[b])`` in the
    padded grid [B, longest].
    """

    starts: Tensor
    rows: int
    longest: int
    cells: Tensor

    def __len__(self) -> int:
        """Return the number of passages B."""
        return len(self.starts) - 1


@dataclass(frozen=True)
class Packed:
    """A packed batch. ids, positions (0.. within its passage), types (of a pair; or None): int64 [S]."""

    ids: Tensor
    positions: Tensor
    layout: Layout
    types: Tensor | None = None

    def __len__(self) -> int:
        """Return the number of passages B."""
        return len(self.layout)

    @property
    def starts(self) -> Tensor:
        """int32 [B + 1]; the rows ``starts[:-1]`` are the [CLS] rows."""
        return self.layout.starts


@dataclass(frozen=True)
class Rows:
    """Some rows of a packed batch, in its order: index int64 [R] into its rows, and each passage's place in it."""

    index: Tensor
    layout: Layout


@dataclass(frozen=True)
class Ragged:
    """Sequences on the host: sequence b is ``values[starts[b]:starts[b + 1]]``."""

    values: np.ndarray
    starts: np.ndarray

    def __len__(self) -> int:
        """Return the number of sequences B."""
        return len(self.starts) - 1

    def __getitem__(self, cut: slice) -> Ragged:
        """Return a range of sequences, a view of their values."""
        starts = self.starts[cut.start : cut.stop + 1]
        return Ragged(self.values[starts[0] : starts[-1]], starts - starts[0])

    @classmethod
    def of(cls, sequences: Sequence[Sequence[int] | np.ndarray]) -> Ragged:
        """Join sequences of ids."""
        starts = np.zeros(len(sequences) + 1, np.int64)
        np.cumsum([len(ids) for ids in sequences], out=starts[1:])
        values = [np.asarray(ids, dtype=np.int64) for ids in sequences]
        return cls(np.concatenate([np.empty(0, np.int64), *values]), starts)


def take(tokens: Tokens, passages: np.ndarray, longest: int) -> Ragged:
    """Take the word-pieces of some passages (rows of the collection), each cut to `longest`; no special tokens."""
    passages = np.asarray(passages, dtype=np.int64)
    begin = tokens.starts[passages]
    lengths = np.minimum(tokens.starts[passages + 1] - begin, longest)
    starts = np.zeros(len(passages) + 1, np.int64)
    np.cumsum(lengths, out=starts[1:])
    index = np.arange(starts[-1]) + np.repeat(begin - starts[:-1], lengths)
    return Ragged(tokens.ids[index], starts)


def frame(inner: Ragged, cls: int, sep: int) -> Ragged:
    """Put [CLS] before and [SEP] behind every sequence; ids become int64."""
    starts = inner.starts + 2 * np.arange(len(inner.starts))
    values = np.empty(starts[-1], np.int64)
    values[starts[:-1]] = cls
    values[starts[1:] - 1] = sep
    values[content(starts)] = inner.values
    return Ragged(values, starts)


def content(starts: np.ndarray) -> np.ndarray:
    """Tell which rows of framed sequences are neither [CLS] nor [SEP]: bool [S]."""
    inside = np.ones(starts[-1], bool)
    inside[starts[:-1]] = False
    inside[starts[1:] - 1] = False
    return inside


def pack(
    sequences: Ragged | Sequence[Sequence[int] | np.ndarray], on: torch.device = CPU, types: Ragged | None = None
) -> Packed:
    """Put sequences, their special tokens included and none of them empty, on the device as one packed batch."""
    if not isinstance(sequences, Ragged):
        sequences = Ragged.of(sequences)
    layout, within = _layout(sequences.starts, on)
    ids = _filled(sequences.values, layout.rows)
    return Packed(
        ids=put(ids, on),
        positions=put(_filled(within, layout.rows), on),
        layout=layout,
        types=None if types is None else put(_filled(types.values, layout.rows), on),
    )


def select(index: np.ndarray, starts: np.ndarray, on: torch.device = CPU) -> Rows:
    """Select the rows `index` (ascending) of a packed batch whose passages lie at `starts` [B + 1] (on the host)."""
    layout, _ = _layout(np.searchsorted(index, starts), on)
    return Rows(put(_filled(index, layout.rows), on), layout)


def cls_rows(packed: Packed) -> Rows:
    """Select the first row of every passage."""
    layout, on = packed.layout, packed.ids.device
    count = len(layout)
    rows = row_count(count, on)
    index = torch.zeros(rows, dtype=torch.int64, device=on)
    index[:count] = layout.starts[:-1]
    every = torch.arange(count + 1, device=on)
    return Rows(index, Layout(every.int(), rows, 1, every[:-1]))


def row_count(count: int, on: torch.device) -> int:
    """`count` rows with filler: at least one, and on the CPU a multiple of `BLOCK`."""
    return max(1, count) if on.type == "cuda" else -(-max(1, count) // BLOCK) * BLOCK


def _layout(starts: np.ndarray, on: torch.device) -> tuple[Layout, np.ndarray]:
    """Lay out passages at `starts`; return the layout and every row's position within its passage."""
    lengths = np.diff(starts)
    longest = int(lengths.max(initial=1))
    if on.type != "cuda":
        longest = -(-longest // WIDTH) * WIDTH
    within = np.arange(starts[-1]) - np.repeat(starts[:-1], lengths)
    cells = within + np.repeat(np.arange(len(lengths)) * longest, lengths)
    rows = row_count(int(starts[-1]), on)
    return Layout(put(starts.astype(np.int32), on), rows, longest, put(cells, on)), within


def _filled(values: np.ndarray, rows: int) -> np.ndarray:
    """`values` as int64, with zeros up to `rows`."""
    filled = np.zeros(rows, np.int64)
    filled[: len(values)] = values
    return filled


def put(array: np.ndarray, on: torch.device) -> Tensor:
    """Put an array on the device without waiting; on the CPU it keeps its own memory."""
    tensor = torch.from_numpy(array)
    return tensor if on.type == "cpu" else tensor.pin_memory().to(on, non_blocking=True)
