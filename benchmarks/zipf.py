"""Make word-pieces of collections of any size, with Zipf's law and lengths as in MS MARCO.

Words have two regimes (Gerlach and Altmann 2013): within a core vocabulary the frequency falls like
1 / rank, beyond it faster, and there is no last word. A text is a chain of phrases of one to six
words, which also follow Zipf's law, so long n-grams repeat. Phrases are not stored: their words are
a hash of their rank. A block is the same in collections of every size.

Of 56 M words 98, 70 and 32 % of the 2-, 3- and 4-grams have to be counted (the others contain a
shorter n-gram that occurs once); in English 98, 62 and 30 %. Synthetic text has neither syntax
nor topics: it serves to measure time and memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from cdmae.tokens.corpus import stream_tokens

BLOCK = 1 << 16  # passages made together
WORDS = 56.0  # of a passage of MS MARCO, on average
CORE = 20_000  # words of the first regime
CORE_SHARE = 0.94  # their share of a text
TAIL = 1.5  # the exponent of the other regime
PHRASES = 1e13  # number of phrases
LONGEST = 6  # words of the longest phrase
PIECES = 30522  # word-pieces, as in BERT
SPECIAL = 5
BEGINS = 12_000  # word-pieces that begin a word
DIGITS = 32  # word-pieces per position within a word


def blocks(passages: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield blocks of words and of passage lengths.

    Words are ranks from 0, uint32, without gaps between passages; lengths are in words, int64.
    """
    for number, first in enumerate(range(0, passages, BLOCK)):
        rng = np.random.default_rng([0, number])
        lengths = np.maximum(1, rng.gamma(4.0, WORDS / 4.0, BLOCK)).astype(np.int64)
        text = _text(rng, int(lengths.sum()))
        kept = lengths[: passages - first]
        yield text[: kept.sum()], kept


def _text(rng: np.random.Generator, words: int) -> np.ndarray:
    phrases = (PHRASES ** rng.random(words)).astype(np.uint64)
    lengths = (1 + _hash(phrases, 0) % np.uint64(LONGEST)).astype(np.int64)
    ends = np.cumsum(lengths)
    used = int(np.searchsorted(ends, words)) + 1
    phrases = phrases[:used]
    lengths = lengths[:used]
    ends = ends[:used]
    place = 1 + np.arange(ends[-1]) - np.repeat(ends - lengths, lengths)
    return _ranks((_hash(np.repeat(phrases, lengths), place) >> np.uint64(11)) * 2.0**-53)[:words]


def _ranks(shares: np.ndarray) -> np.ndarray:
    """Return the words that reach the cumulated shares in [0, 1): ranks, uint32 from 0."""
    core = CORE ** (np.minimum(shares, CORE_SHARE) / CORE_SHARE)
    tail = CORE * np.minimum(1.0, (1.0 - shares) / (1.0 - CORE_SHARE)) ** (-1.0 / (TAIL - 1.0))
    return np.minimum(np.where(shares < CORE_SHARE, core, tail) - 1.0, 2.0**32 - 1).astype(
        np.uint32
    )


def _hash(values: np.ndarray, key: np.ndarray | int) -> np.ndarray:
    """Apply the finaliser of splitmix64 over two numbers: uint64."""
    mixed = values * np.uint64(0x9E3779B97F4A7C15) + np.asarray(key, np.uint64) * np.uint64(
        0xD1B54A32D192ED03
    )
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))


def write_tokens(folder: Path, passages: int) -> int:
    """Write the output of the rule tokens; return its number of words."""
    total = 0

    def parts() -> Iterator[tuple[np.ndarray, np.ndarray]]:
        nonlocal total
        for words, lengths in blocks(passages):
            total += len(words)
            yield _pieces(words, lengths)

    stream_tokens(folder, parts(), np.uint16, np.arange(PIECES) < SPECIAL + BEGINS)
    return total


def _pieces(words: np.ndarray, lengths: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the word-pieces of words by rank, uint16, and the lengths of titles and texts.

    Titles are empty; the lengths alternate.
    """
    rest = (
        words.astype(np.int64) // BEGINS
    )  # of rarer words, in digits: each is a word-piece of its place
    digits = [rest // DIGITS**place % DIGITS for place in range(5)]
    number = 1 + sum((rest >= DIGITS**place).astype(np.int64) for place in range(5))
    ends = np.cumsum(number)
    ids = np.empty(ends[-1], np.uint16)
    ids[ends - number] = SPECIAL + words % BEGINS
    for place, digit in enumerate(digits):
        longer = number > place + 1
        ids[(ends - number)[longer] + place + 1] = SPECIAL + BEGINS + DIGITS * place + digit[longer]
    texts = np.diff(ends[np.cumsum(lengths) - 1], prepend=0)
    return ids, np.stack([np.zeros_like(texts), texts], axis=1).ravel()
