"""Look up the n-grams of new text among the n-grams that a collection repeats.

An n-gram that is not in the table occurs at most once in the collection, and counts as 1. N-grams
of the collection itself therefore have exactly the counts of `cdmae.importance.ngrams`.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from cdmae.arrays import read_array
from cdmae.errors import InputError
from cdmae.files import read_json, write_json
from cdmae.tokens.words import Numbering, begins, find

ABOUT = "table.json"
REFERENCE = "ngrams.json"  # file in a folder of importance with the relative path of its table

# files of the table, in addition to two per order
ARRAYS = ("word_keys", "word_numbers", "occurrences", "totals")


@dataclass(frozen=True)
class Table:
    """Hold the n-grams that occur at least twice, to look up new text.

    unit: `word` or `wordpiece`; pieces: the number of word-pieces.

    word_keys uint64: the words of several pieces, ``number of the word without its last piece x
    pieces + last piece``, sorted; word_numbers uint32: their numbers; occurrences [V]: by number.

    keys: per order from 2, ``row of the first n-1 words x V + number of the last word``, uint64,
    sorted. The row is among the keys of the order before; for order 2 it is the first word's
    number. counts: per order from 2. Occurrences and counts are uint32, or uint64 for 2^32 words or
    more.
    """

    unit: str
    pieces: int
    word_keys: np.ndarray
    word_numbers: np.ndarray
    occurrences: np.ndarray
    keys: tuple[np.ndarray, ...]
    counts: tuple[np.ndarray, ...]
    totals: np.ndarray

    @property
    def window(self) -> int:
        """Return the highest order L."""
        return len(self.keys) + 1

    def words(self, ids: np.ndarray, word_starts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return each word's number (-1 if unknown) and offset, for one segment's word-pieces."""
        ids = np.asarray(ids, dtype=np.int64)
        first = begins(ids, np.zeros(1, np.int64), np.asarray(word_starts), self.unit)
        numbers = Numbering(self.pieces, self.word_keys, self.word_numbers).number(ids, first)
        numbers[numbers >= len(self.occurrences)] = -1
        return numbers, np.flatnonzero(first)

    def look_up(self, words: np.ndarray) -> np.ndarray:
        """Return the counts of the n-grams that begin at each word of one segment: int64 [L, W].

        N-grams that are not in the table have a count of 1, as in the collection; n-grams that
        would leave the segment have 0.
        """
        words = np.asarray(words, dtype=np.int64)
        counts = np.zeros((self.window, len(words)), np.int64)
        counts[0] = np.maximum(1, np.where(words < 0, 1, self.occurrences[words]))
        rows = np.where(counts[0] > 1, words, -1)
        vocabulary = np.uint64(len(self.occurrences))
        for order in range(2, self.window + 1):
            inside = max(0, len(words) - order + 1)
            prefix = rows[:inside]
            last = words[order - 1 : order - 1 + inside]
            repeated = np.flatnonzero((prefix >= 0) & (last >= 0))
            keys = prefix[repeated].astype(np.uint64) * vocabulary
            keys += last[repeated].astype(np.uint64)
            rows = np.full(inside, -1)
            rows[repeated] = find(self.keys[order - 2], keys)
            hits = rows >= 0
            counts[order - 1, :inside] = 1
            counts[order - 1, :inside][hits] = self.counts[order - 2][rows[hits]]
        return counts


def write_about(folder: Path, unit: str, pieces: int, window: int) -> None:
    """Write ``table.json``, last: a folder without it is incomplete."""
    write_json(folder / ABOUT, {"unit": unit, "pieces": pieces, "window": window})


def refer(folder: Path, table: Path | str, unit: str) -> None:
    """Write the path of `table` into a folder of importance, which will be renamed later."""
    write_json(folder / REFERENCE, {"table": str(table), "unit": unit})


def unit_of(folder: Path | str) -> str:
    """Return the unit of a table or of a folder of importance: ``word`` or ``wordpiece``."""
    folder = Path(folder)
    about = folder / REFERENCE
    return read_json(about if about.exists() else folder / ABOUT)["unit"]


def read(folder: Path | str) -> Table:
    """Read a table of n-grams; the arrays stay on disk.

    folder: a folder of n-grams, or a folder of importance, which refers to its n-grams. Raises
    `InputError` if the table is missing or incomplete.
    """
    folder = Path(folder)
    if (folder / REFERENCE).exists():
        referred = os.path.normpath(folder / read_json(folder / REFERENCE)["table"])
        if not Path(referred).exists():
            raise InputError(
                f"{folder} needs the n-grams in {referred}, which do not exist; create them "
                f"with ./run {referred}"
            )
        folder = Path(referred)
    try:
        about = read_json(folder / ABOUT)
        orders = range(2, about["window"] + 1)
        return Table(
            unit=about["unit"],
            pieces=about["pieces"],
            keys=tuple(read_array(folder / f"keys_{order}.npy") for order in orders),
            counts=tuple(read_array(folder / f"counts_{order}.npy") for order in orders),
            **{name: read_array(folder / f"{name}.npy") for name in ARRAYS},
        )
    except (OSError, KeyError, TypeError) as error:
        raise InputError(
            f"{folder} contains no valid table of n-grams ({error!r}); delete it and run again"
        ) from None
