"""Near-duplicate texts, by MinHash: pairs whose sets of word trigrams have a Jaccard similarity of at least .7.

MinHash (Broder 1997) with banding only proposes pairs; each is then decided on the sets themselves, so a pair that is
reported is one, and one at .7 is missed with a probability of about 2e-4 (32 bands of 4).
Hashes are of the words' bytes, never Python's own, which differ from process to process.
"""

from __future__ import annotations

import hashlib
import re
from array import array
from collections.abc import Sequence
from itertools import combinations

import numpy as np

THRESHOLD = 0.7
_BANDS, _ROWS = 32, 4
_WORD = re.compile(r"\w+")


def near_duplicates(texts: Sequence[str], threshold: float = THRESHOLD) -> list[tuple[int, int]]:
    """Return the pairs (i, j), i < j, sorted, of texts with a trigram Jaccard similarity of at least `threshold`.

    Texts of fewer than three words are near-duplicates of nothing. About 3 cpu-s for 20,000 texts of 50 words.
    """
    shingles, starts, rows = _shingles(texts)  # [S], [R + 1], [R]
    if not len(rows):
        return []
    pairs = []
    for i, j in _candidates(shingles, starts):
        one, other = (set(shingles[starts[row] : starts[row + 1]].tolist()) for row in (i, j))
        if len(one & other) / len(one | other) >= threshold:
            pairs.append((int(rows[i]), int(rows[j])))
    return sorted(pairs)


def similar_words(one: str, other: str, threshold: float = THRESHOLD) -> bool:
    """Tell whether two short texts have a Jaccard similarity of their sets of words of at least `threshold`."""
    a, b = (set(_WORD.findall(text.casefold())) for text in (one, other))
    return len(a & b) >= threshold * len(a | b)


def _shingles(texts: Sequence[str]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the trigram hashes of the texts that have any, one after the other: uint64; their bounds; their rows."""
    numbers: dict[str, int] = {}
    words, rows, lengths = array("q"), [], []
    for row, text in enumerate(texts):
        tokens = _WORD.findall(text.casefold())
        if len(tokens) >= 3:
            words.extend([numbers.setdefault(word, len(numbers)) for word in tokens])
            rows.append(row)
            lengths.append(len(tokens))
    digests = [hashlib.blake2b(word.encode(), digest_size=8).digest() for word in numbers]
    ids = np.frombuffer(b"".join(digests), dtype="<u8").astype(np.uint64)[np.array(words, dtype=np.int64)]
    trigrams = _mix(_mix(_mix(ids[:-2]) + ids[1:-1]) + ids[2:])
    ends = np.cumsum(np.array(lengths, dtype=np.int64))
    within = np.ones(len(ids), dtype=bool)  # a trigram that begins at the last two words of a text leaves it
    within[ends - 1] = within[ends - 2] = False
    starts = np.concatenate([[0], ends - 2 * np.arange(1, len(ends) + 1)])
    return trigrams[within[:-2]], starts, np.array(rows, dtype=np.int64)


def _mix(values: np.ndarray) -> np.ndarray:
    """Apply the finaliser of SplitMix64 (Steele et al. 2014): every bit of the input moves every bit of the output."""
    values = values + np.uint64(0x9E3779B97F4A7C15)
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


def _candidates(shingles: np.ndarray, starts: np.ndarray) -> set[tuple[int, int]]:
    """Return the pairs of texts that agree in all rows of at least one band."""
    pairs: set[tuple[int, int]] = set()
    for band in range(_BANDS):
        key = np.zeros(len(starts) - 1, dtype=np.uint64)
        for row in range(_ROWS):
            salt = _mix(np.array([band * _ROWS + row], dtype=np.uint64))
            key = _mix(key) + np.minimum.reduceat(_mix(shingles ^ salt), starts[:-1])
        order = np.argsort(key, kind="stable")
        bounds = np.flatnonzero(np.diff(key[order])) + 1
        firsts, ends = np.append(0, bounds), np.append(bounds, len(order))
        for first, end in zip(firsts[ends - firsts > 1], ends[ends - firsts > 1], strict=True):
            pairs.update(combinations(order[first:end].tolist(), 2))  # ascending, the sort being stable
    return pairs
