"""Number the words of a collection.

A word of one word-piece has the number of that piece. Longer words are numbered from V0, the number
of word-pieces, in the order in which the text first has them or a longer word that begins with
them. Their keys are ``number of the word without its last piece x V0 + last piece``: exact, without
strings.

P passages, T word-pieces, W words.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise

import numpy as np

from cdmae.errors import InputError
from cdmae.tokens.corpus import Tokens

UNITS = ("word", "wordpiece")
BLOCK = 1 << 20  # word-pieces that are read together
LARGEST = 65504.0  # the largest finite float16


def blocks(tokens: Tokens) -> Iterator[Tokens]:
    """Yield the passages of a collection in blocks of about `BLOCK` word-pieces."""
    goals = np.arange(BLOCK, len(tokens.ids), BLOCK)
    cuts = np.unique([0, *np.searchsorted(tokens.starts, goals), len(tokens)])
    for first, last in pairwise(cuts.tolist()):
        yield tokens.part(first, last)


def begins(ids: np.ndarray, edges: np.ndarray, word_starts: np.ndarray, unit: str) -> np.ndarray:
    """Return whether each word-piece begins a word: bool [T]; titles and texts begin at `edges`."""
    if unit not in UNITS:
        raise InputError(f"unit is {unit!r}; expected {', '.join(UNITS)}")
    if unit == "wordpiece":
        return np.ones(len(ids), bool)
    found = word_starts[ids]
    found[edges[edges < len(ids)]] = True
    return found


def broadcast(values: np.ndarray, tokens: Tokens, unit: str) -> np.ndarray:
    """Assign to every word-piece the value of its word: float16 [T]; values [W]."""
    words = np.cumsum(begins(tokens.ids, tokens.edges, tokens.word_starts, unit))
    found = int(words[-1]) if len(words) else 0
    if found != len(values):
        raise InputError(
            f"there are values for {len(values):,} words, but the tokens contain {found:,}; delete "
            "both and run again"
        )
    return values.clip(-LARGEST, LARGEST).astype(np.float16)[words - 1]


def find(table: np.ndarray, keys: np.ndarray) -> np.ndarray:
    """Return the rows of `keys` in the sorted `table`, -1 for keys that are not in it."""
    if not len(table):
        return np.full(len(keys), -1)
    rows = np.minimum(np.searchsorted(table, keys), len(table) - 1)
    return np.where(table[rows] == keys, rows, -1)


class Numbering:
    """Numbers of words; those of several pieces have sorted keys, uint64, and numbers, uint32."""

    def __init__(self, pieces: int, keys: np.ndarray, numbers: np.ndarray) -> None:
        """Start with known words; pieces: the number of word-pieces V0."""
        self.pieces = pieces
        self.keys = keys
        self.numbers = numbers

    def __len__(self) -> int:
        """Return the number of words V: the word-pieces, and the words of several pieces."""
        return self.pieces + len(self.keys)

    def number(self, ids: np.ndarray, first: np.ndarray, learn: bool = False) -> np.ndarray:
        """Return the number of each word of a text, int64 [W]; of unknown words: V or more.

        first bool [T]: whether each word-piece begins a word. learn: add the unknown words.
        """
        starts = np.flatnonzero(first)
        lengths = np.diff(np.append(starts, len(ids)))
        numbers = ids[starts].astype(np.int64)
        new_keys = [np.empty(0, np.uint64)]
        places = [np.empty(0, np.int64)]  # where the text first has each new word: its last piece
        added = len(self)
        for depth in range(1, int(lengths.max(initial=0))):
            longer = np.flatnonzero(lengths > depth)
            last = starts[longer] + depth
            keys = self._keys(numbers[longer], ids[last])
            keys, where, which = np.unique(keys, return_index=True, return_inverse=True)
            found = find(self.keys, keys)
            new = np.flatnonzero(found < 0)
            found[found >= 0] = self.numbers[found[found >= 0]]
            found[new] = added + np.arange(len(new))
            numbers[longer] = found[which]
            new_keys.append(keys[new])
            places.append(last[where[new]])
            added += len(new)
        if learn:
            self._add(np.concatenate(new_keys), np.concatenate(places), numbers)
        return numbers

    def _keys(self, prefixes: np.ndarray, last: np.ndarray) -> np.ndarray:
        return prefixes.astype(np.uint64) * np.uint64(self.pieces) + last.astype(np.uint64)

    def _add(self, keys: np.ndarray, places: np.ndarray, numbers: np.ndarray) -> None:
        """Add new words, and correct their `numbers` to the order of their places."""
        known = len(self)
        final = np.empty(len(keys), np.int64)
        final[np.argsort(places)] = known + np.arange(len(keys))
        prefixes, last = (array.astype(np.int64) for array in np.divmod(keys, self.pieces))
        for each in (numbers, prefixes):
            new = each >= known
            each[new] = final[each[new] - known]
        keys = np.append(self.keys, self._keys(prefixes, last))
        order = np.argsort(keys, kind="stable")
        self.keys = keys[order]
        self.numbers = np.append(self.numbers, final.astype(np.uint32))[order]


def number_words(
    tokens: Tokens, unit: str, take: Callable[[np.ndarray], object]
) -> tuple[np.ndarray, Numbering]:
    """Pass the words of a collection by number, uint32 [W], to `take`, block by block.

    Returns the offsets of all titles and texts in words, int64 [2 P + 1], and the numbering.
    """
    numbering = Numbering(len(tokens.word_starts), np.empty(0, np.uint64), np.empty(0, np.uint32))
    lengths = [np.zeros(1, np.int64)]
    for block in blocks(tokens):
        first = begins(block.ids, block.edges, block.word_starts, unit)
        take(numbering.number(block.ids, first, learn=True).astype(np.uint32))
        lengths.append(np.diff(np.append(0, np.cumsum(first))[block.edges]))
    return np.cumsum(np.concatenate(lengths)), numbering


def words_of(tokens: Tokens, unit: str) -> tuple[np.ndarray, np.ndarray, Numbering]:
    """Return the words by number, uint32 [W], and what `number_words` returns."""
    words = [np.empty(0, np.uint32)]
    segments, numbering = number_words(tokens, unit, words.append)
    return np.concatenate(words), segments, numbering
