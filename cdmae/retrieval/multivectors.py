"""The vectors of texts with one vector per word-piece, in memory and on disk.

A shard is two arrays. ``00000.npy`` has the vectors of all its word-pieces, float16 [t, D], passage
by passage. ``tokens-00000.npy`` has each vector's passage, counted from 0 in the shard, and its
word-piece, int32 [t, 2].

    D dimensions, t vectors of a shard
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from cdmae.arrays import read_array, write_array
from cdmae.errors import InputError
from cdmae.files import complete, remedy
from cdmae.models.ragged import starts_of

TOKENS = "tokens-"  # begins the names of the files with passages and word-pieces


@dataclass(frozen=True)
class MultiVectors:
    """The vectors of texts: text i has ``values[starts[i]:starts[i + 1]]``.

    values: [t, D], float32 for queries, float16 for passages; starts: int64 [n + 1]; pieces: the
    word-piece of each vector, int32 [t], or a negative number for a row of a [CLS] vector
    (`cdmae.models.heads.multi`). paired: whether a vector of these queries is compared only with
    vectors of the same word-piece.
    """

    values: np.ndarray
    starts: np.ndarray
    pieces: np.ndarray
    paired: bool = False

    def __len__(self) -> int:
        """Return the number of texts n."""
        return len(self.starts) - 1

    @property
    def shape(self) -> tuple[int, int]:
        """Return the number of texts and of dimensions."""
        return len(self), self.values.shape[1]

    def __getitem__(self, texts: slice) -> MultiVectors:
        """Return a range of texts."""
        first, last, _ = texts.indices(len(self))
        starts = self.starts[first : max(first, last) + 1]
        cut = slice(starts[0], starts[-1])
        return replace(
            self, values=self.values[cut], starts=starts - starts[0], pieces=self.pieces[cut]
        )

    def rounded(self) -> MultiVectors:
        """Round to float16, as passages are stored; raise `InputError` above its largest number."""
        with np.errstate(over="ignore"):
            values = self.values.astype(np.float16)
        if not np.isfinite(values).all():
            raise InputError(
                "some numbers of the passages' vectors exceed 65,504, the largest of float16: the "
                "training diverged; lower its learning_rate and train again"
            )
        return replace(self, values=values)


def joined(parts: Sequence[MultiVectors]) -> MultiVectors:
    """Concatenate the vectors of several lists of texts."""
    lengths = np.concatenate([np.diff(part.starts) for part in parts])
    return replace(
        parts[0],
        values=np.concatenate([part.values for part in parts]),
        starts=starts_of(lengths),
        pieces=np.concatenate([part.pieces for part in parts]),
    )


# --- on disk --------------------------------------------------------------------------------------


def write(folder: Path, name: str, vectors: MultiVectors) -> None:
    """Write a shard's two files; the vectors come last, because their file marks completion."""
    passages = np.repeat(np.arange(len(vectors)), np.diff(vectors.starts))
    tokens = np.stack([passages, vectors.pieces], axis=1).astype(np.int32)
    for path, values in (
        (folder / f"{TOKENS}{name}", tokens),
        (folder / name, vectors.values),
    ):
        with complete(path) as aside:
            write_array(aside, values)


def read(path: Path) -> MultiVectors:
    """Check a shard against its checksums, and memory-map its vectors."""
    tokens = read_array(path.with_name(TOKENS + path.name))
    values = read_array(path)
    passages = tokens[:, 0]
    count = int(passages[-1]) + 1 if len(passages) else 0
    starts = np.searchsorted(passages, np.arange(count + 1)).astype(np.int64)
    return MultiVectors(values, starts, np.ascontiguousarray(tokens[:, 1]))


def shape(path: Path) -> tuple[int, int]:
    """Return the passages and dimensions of a stored shard without reading its vectors."""
    values = read_array(path)
    tokens = read_array(path.with_name(TOKENS + path.name))
    fits = values.ndim == tokens.ndim == 2 and len(values) == len(tokens)
    if not fits or values.dtype != np.float16 or tokens.dtype != np.int32:
        what = f"an array of {values.dtype} with shape {list(values.shape)}"
        raise InputError(
            f"{path} contains {what}; allowed: float16 in two dimensions, with a row for each row "
            f"of {TOKENS}{path.name}; {remedy(path)}"
        )
    return int(tokens[-1, 0]) + 1 if len(tokens) else 0, values.shape[1]
