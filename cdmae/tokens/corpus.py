"""Store a collection's tokens: each collection is tokenised once for all jobs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from cdmae.arrays import appending, write_array
from cdmae.files import complete

TOKENS = ("ids", "starts", "text_starts", "word_starts")


@dataclass(frozen=True)
class Tokens:
    """Hold a collection's word-pieces without special tokens; each title precedes its text.

    ids: uint16 or uint32 [T], memory-mapped; passage p is ``ids[starts[p]:starts[p + 1]]``. Its
    text, after the title, begins at ``text_starts[p]``. ``word_starts[id]`` is true for word-pieces
    that begin a word.
    """

    ids: np.ndarray
    starts: np.ndarray
    text_starts: np.ndarray
    word_starts: np.ndarray

    def __len__(self) -> int:
        """Return the number of passages P."""
        return len(self.starts) - 1

    @property
    def edges(self) -> np.ndarray:
        """Return the offsets of every title and text, in word-pieces: int64 [2 P + 1]."""
        pairs = np.stack([self.starts[:-1], self.text_starts], axis=1)
        return np.append(pairs.ravel(), self.starts[-1])

    def part(self, first: int, last: int) -> Tokens:
        """Return the tokens of the passages from `first` up to `last`, without copying the ids."""
        begin = self.starts[first]
        return Tokens(
            ids=self.ids[begin : self.starts[last]],
            starts=self.starts[first : last + 1] - begin,
            text_starts=self.text_starts[first:last] - begin,
            word_starts=self.word_starts,
        )

    @classmethod
    def of(cls, ids: np.ndarray, lengths: np.ndarray, word_starts: np.ndarray) -> Tokens:
        """Make tokens from their segments' lengths (title, text, title, text, ...), int64 [2 P]."""
        edges = np.concatenate([[0], np.cumsum(lengths)])
        return cls(ids, edges[::2].copy(), edges[1::2].copy(), word_starts)


def stream_tokens(
    folder: Path | str,
    parts: Iterable[tuple[np.ndarray, np.ndarray]],
    dtype: type,
    word_starts: np.ndarray,
) -> None:
    """Write the four arrays of `Tokens` as a folder, from (ids, lengths) as in `Tokens.of`."""
    lengths = [np.empty(0, np.int64)]
    with complete(folder) as aside:
        aside.mkdir()
        with appending(aside / "ids.npy", dtype) as append:
            for ids, counts in parts:
                append(ids)
                lengths.append(counts)
        tokens = Tokens.of(np.empty(0, dtype), np.concatenate(lengths), word_starts)
        for name in TOKENS[1:]:
            write_array(aside / f"{name}.npy", getattr(tokens, name))


def read_tokens(folder: Path | str) -> Tokens:
    """Read tokens; the ids stay on disk."""
    arrays = {name: np.load(Path(folder) / f"{name}.npy", mmap_mode="r") for name in TOKENS}
    in_memory = {name: np.array(arrays[name]) for name in TOKENS if name != "ids"}
    return Tokens(ids=arrays["ids"], **in_memory)
