"""The passages of a collection as masking sees them: all, for values of words, or a batch.

`B` passages of a batch, `n` word-pieces of the longest one, `T` word-pieces of the collection
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from cdmae.errors import InputError
from cdmae.importance import ami
from cdmae.importance import table as ngram_table
from cdmae.importance.table import Table
from cdmae.tokens.corpus import Tokens
from cdmae.tokens.vocabulary import Vocabulary, read_pieces


@dataclass(frozen=True)
class Corpus:
    """A collection and what is known about its words.

    tokenizer: its folder, for the spelling of words. estimate: the folder of an importance or of
    n-grams, or None. scores: the importance itself, float16 [T], if it is not in a folder.
    collection: the folder with queries and ids, for objectives that read them.
    """

    tokens: Tokens
    vocabulary: Vocabulary
    tokenizer: Path | str | None = None
    estimate: Path | str | None = None
    scores: np.ndarray | None = None
    collection: Path | None = None

    @property
    def pieces(self) -> list[str]:
        """Return the spelling of each word-piece by id; continuations of words begin with ##."""
        return read_pieces(self.tokenizer)

    @property
    def unit(self) -> str:
        """Return the unit of the importance: ``word`` or ``wordpiece``."""
        return "word" if self.estimate is None else ngram_table.unit_of(self.estimate)

    @property
    def importance(self) -> np.ndarray:
        """Return the importance of each word-piece, float16 [T]."""
        if self.scores is not None:
            return self.scores
        if self.estimate is None:
            raise InputError("a masking needs values of importance; name an entry of `importance`")
        values = ami.read_values(self.estimate)
        if len(values) != len(self.tokens.ids):
            raise InputError(
                f"{self.estimate} has {len(values):,} values for {len(self.tokens.ids):,} "
                "word-pieces; delete it and run again"
            )
        return values

    @property
    def ngrams(self) -> Table:
        """Return the n-grams of the collection and their counts."""
        if self.estimate is None:
            raise InputError(
                "a masking needs n-grams and their counts; name an entry of `importance`"
            )
        return ngram_table.read(self.estimate)


@dataclass(frozen=True)
class Batch:
    """Passages to be masked, padded."""

    ids: np.ndarray  # int32 [B, n], 0 where padded
    lengths: np.ndarray  # int64 [B]
    rows: np.ndarray  # int64 [B], row numbers in the collection, which select the random draws
    word_starts: np.ndarray  # bool [B, n]
    candidates: np.ndarray  # bool [B, n], neither padding nor a special token
    values: np.ndarray | None = None  # float32 [B, n], the `values` of the strategy
    k: np.ndarray | None = None  # int64 [B], the number of candidates that are masked

    @property
    def real(self) -> np.ndarray:
        """Mark the word-pieces, as opposed to padding: bool [B, n]."""
        return np.arange(self.ids.shape[1]) < self.lengths[:, None]

    def of_words(self, values: np.ndarray) -> np.ndarray:
        """Give each word-piece the value of its word's first one: [B, n]."""
        positions = np.arange(self.ids.shape[1])
        first = np.maximum.accumulate(np.where(self.word_starts, positions, 0), axis=1)
        return np.take_along_axis(values, first, axis=1)


def read(
    tokens: Tokens,
    rows: np.ndarray,
    length: int,
    vocabulary: Vocabulary,
    values: np.ndarray | None = None,
) -> Batch:
    """Read the passages `rows`, cut to `length` word-pieces; `values` are float16 [T]."""
    rows = np.asarray(rows, dtype=np.int64)
    begins = tokens.starts[rows]
    lengths = np.minimum(tokens.starts[rows + 1] - begins, length)
    return pad(tokens, rows, begins, lengths, vocabulary, values)


def pad(
    tokens: Tokens,
    rows: np.ndarray,
    begins: np.ndarray,
    lengths: np.ndarray,
    vocabulary: Vocabulary,
    values: np.ndarray | None = None,
) -> Batch:
    """Read the word-pieces ``begins .. begins + lengths``; `rows` select the random draws."""
    positions = np.arange(int(lengths.max(initial=0)))
    real = positions < lengths[:, None]
    at = (begins[:, None] + positions)[real]

    def padded(array: np.ndarray, kind: type) -> np.ndarray:
        grid = np.zeros(real.shape, kind)
        grid[real] = array[at]
        return grid

    ids = padded(tokens.ids, np.int32)
    word_starts = real & (vocabulary.word_starts[ids] | (positions == 0))
    candidates = real & ~vocabulary.special[ids]
    own = None if values is None else padded(values, np.float32)
    return Batch(ids, lengths, rows, word_starts, candidates, own)
