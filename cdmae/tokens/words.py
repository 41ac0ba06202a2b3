"""Find the words of a collection, and name each by a 64-bit hash of its word-pieces.

Among 10^8 different words or n-grams, 0.0003 pairs with equal hashes are expected.

P passages, T word-pieces, W words.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
from pandas.util import hash_array

from cdmae.tokens.corpus import Tokens

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
    if unit == "wordpiece":
        return np.ones(len(ids), bool)
    found = word_starts[ids]
    found[edges[edges < len(ids)]] = True
    return found


def broadcast(values: np.ndarray, tokens: Tokens, unit: str) -> np.ndarray:
    """Assign to every word-piece the value of its word: float16 [T]; values [W]."""
    words = np.cumsum(begins(tokens.ids, tokens.edges, tokens.word_starts, unit))
    return values.clip(-LARGEST, LARGEST).astype(np.float16)[words - 1]


def hashes(ids: np.ndarray, first: np.ndarray) -> np.ndarray:
    """Return the hash of each word, uint64 [W]; first bool [T]: whether a piece begins a word."""
    starts = np.flatnonzero(first)
    if not len(starts):
        return np.empty(0, np.uint64)
    lengths = np.diff(np.append(starts, len(ids)))
    offsets = np.arange(len(ids)) - np.repeat(starts, lengths)  # of each piece in its word
    places = offsets.astype(np.uint64) << np.uint64(32)
    pieces = hash_array(places + ids.astype(np.uint64))
    return np.add.reduceat(pieces, starts)


def longer(ngrams: np.ndarray, words: np.ndarray, order: int) -> np.ndarray:
    """Return the hashes of the n-grams of `order` words, from those of one word less.

    ngrams, words: the hashes of the n-gram that begins at each word, and of each word.
    """
    size = max(0, len(words) - order + 1)
    return hash_array(ngrams[:size]) + words[order - 1 :]


def hash_words(tokens: Tokens, unit: str) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield the hashes of the words of each block, and the lengths of titles and texts in words."""
    for block in blocks(tokens):
        first = begins(block.ids, block.edges, block.word_starts, unit)
        yield hashes(block.ids, first), np.diff(np.append(0, np.cumsum(first))[block.edges])


def number_words(tokens: Tokens) -> tuple[np.ndarray, np.ndarray]:
    """Return the number of each word of a collection, uint32 [W]; equal words have one number.

    Also returns the lengths of all titles and texts in words, int64 [2 P].
    """
    known = np.empty(0, np.uint64)
    for words, _ in hash_words(tokens, "word"):
        known = np.union1d(known, words)
    numbers = [np.empty(0, np.uint32)]
    lengths = [np.empty(0, np.int64)]
    for words, counts in hash_words(tokens, "word"):
        numbers.append(np.searchsorted(known, words).astype(np.uint32))
        lengths.append(counts)
    return np.concatenate(numbers), np.concatenate(lengths)
