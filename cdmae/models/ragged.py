"""Store sequences of different lengths, such as texts, in one array."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

HIDDEN = 1  # a word-piece that no other attends to
BARE = 2  # a word-piece without a vector, or a weight, of its own


@dataclass(frozen=True)
class Ragged:
    """Concatenated sequences: sequence i is ``values[starts[i]:starts[i + 1]]``.

    starts: int64 [n + 1]. types: int64, the segment of each value in a pair, as the tokenizer
    assigns it; for BERT, 1 after the first [SEP], else 0. flags: uint8, the properties of each
    value for a multi-vector head, or for DeepCT's (`HIDDEN`, `BARE`).
    """

    values: np.ndarray
    starts: np.ndarray
    types: np.ndarray | None = None
    flags: np.ndarray | None = None

    @classmethod
    def of(cls, sequences: Sequence[Sequence[int] | np.ndarray], dtype: type = np.int64) -> Ragged:
        """Concatenate sequences into one array with offsets."""
        values = [np.asarray(sequence, dtype) for sequence in sequences]
        starts = starts_of([len(own) for own in values])
        return cls(np.concatenate([np.empty(0, dtype), *values]), starts)

    def __len__(self) -> int:
        """Return the number of sequences n."""
        return len(self.starts) - 1

    def __getitem__(self, row: int) -> np.ndarray:
        """Return the values of one sequence, a view."""
        return self.values[self.starts[row] : self.starts[row + 1]]

    @property
    def lengths(self) -> np.ndarray:
        """Return the number of values per sequence, int64 [n]."""
        return np.diff(self.starts)

    def cut(self, rows: slice) -> Ragged:
        """Return a range of sequences, a view of their values."""
        starts = self.starts[rows.start : rows.stop + 1]
        return Ragged(self.values[starts[0] : starts[-1]], starts - starts[0])

    def take(self, rows: np.ndarray, longest: int | np.ndarray | None = None) -> Ragged:
        """Return the sequences `rows` in this order, each cut to its first `longest` values."""
        begins = self.starts[rows]
        lengths = self.starts[rows + 1] - begins
        if longest is not None:
            lengths = np.minimum(lengths, longest)
        index = indices(begins, lengths)
        types = None if self.types is None else self.types[index]
        flags = None if self.flags is None else self.flags[index]
        return Ragged(self.values[index], starts_of(lengths), types, flags)

    def keep(self, which: np.ndarray) -> Ragged:
        """Return all sequences, reduced to the values at which the mask `which` is true."""
        return Ragged(self.values[which], starts_of(which)[self.starts])


def starts_of(lengths: Sequence[int] | np.ndarray) -> np.ndarray:
    """Return the offsets of sequences of these lengths, and the end of the last: int64 [n + 1]."""
    starts = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=starts[1:])
    return starts


def indices(begins: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Return the indices ``begins[i], begins[i] + 1, ...`` of all sequences, concatenated."""
    starts = starts_of(lengths)
    return np.arange(starts[-1]) + np.repeat(begins - starts[:-1], lengths)


def joined(*parts: Ragged) -> Ragged:
    """Concatenate the sequences of all parts."""
    lengths = np.concatenate([part.lengths for part in parts])
    values = np.concatenate([part.values for part in parts])
    flags = [part.flags for part in parts if part.flags is not None]
    return Ragged(values, starts_of(lengths), flags=np.concatenate(flags) if flags else None)


def interleaved(*parts: Ragged) -> Ragged:
    """Concatenate sequence i of all parts into one sequence, for each i: int64."""
    edges = starts_of(np.stack([part.lengths for part in parts], axis=1).ravel())
    values = np.empty(edges[-1], np.int64)
    for number, part in enumerate(parts):
        values[indices(edges[number : -1 : len(parts)], part.lengths)] = part.values
    return Ragged(values, edges[:: len(parts)])


def same(count: int, *values: int) -> Ragged:
    """Return the same sequence `count` times."""
    return Ragged(np.tile(values, count), np.arange(count + 1) * len(values))


def content(starts: np.ndarray) -> np.ndarray:
    """Return a mask, bool [S], of the rows of framed sequences that are not [CLS] or [SEP]."""
    inside = np.ones(starts[-1], bool)
    inside[starts[:-1]] = False
    inside[starts[1:] - 1] = False
    return inside
