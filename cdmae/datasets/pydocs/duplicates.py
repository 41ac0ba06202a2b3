"""Near-duplicate texts, by MinHash: pairs whose sets of word trigrams have a Jaccard similarity of at least .7.

MinHash (Broder 1997) with banding only proposes pairs; each is then decided on the sets themselves, so a pair that is
reported is one, and one at .7 is missed with a probability of about 2e-4 (32 bands of 4).
Hashes are of the words' bytes, never Python's own, which differ from process to process.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence

import numpy as np

THRESHOLD = 0.7
_BANDS, _ROWS = 32, 4
_WORD = re.compile(r"\w+")


def near_duplicates(texts: Sequence[str], threshold: float = THRESHOLD) -> list[tuple[int, int]]:
    """The pairs (i, j), i < j, sorted, of texts with a trigram Jaccard similarity of at least `threshold`.

    Texts of fewer than three words are near-duplicates of nothing. About 2 s for 20,000 texts of 50 words.
    """
    shingles, starts, rows = _shingles(texts)  # [S], [R + 1], [R]
    if not len(rows):
        return []
    cuts = np.split(shingles, starts[1:-1])
    return sorted(
        (int(rows[i]), int(rows[j]))
        for i, j in _candidates(shingles, starts)
        if _jaccard(cuts[i], cuts[j]) >= threshold
    )


def similar_words(one: str, other: str, threshold: float = THRESHOLD) -> bool:
    """Whether two short texts have a Jaccard similarity of their sets of words of at least `threshold`."""
    a, b = (set(_WORD.findall(text.casefold())) for text in (one, other))
    return len(a & b) >= threshold * len(a | b)


def _shingles(texts: Sequence[str]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The distinct trigram hashes of each text (uint64, sorted), their bounds, and the rows of texts that have any."""
    hashes: dict[str, int] = {}
    found, rows = [], []
    for row, text in enumerate(texts):
        words = _WORD.findall(text.casefold())
        if len(words) < 3:
            continue
        for word in words:
            if word not in hashes:
                hashes[word] = int.from_bytes(hashlib.blake2b(word.encode(), digest_size=8).digest(), "little")
        ids = np.array([hashes[word] for word in words], dtype=np.uint64)
        found.append(np.unique(_mix(_mix(_mix(ids[:-2]) + ids[1:-1]) + ids[2:])))
        rows.append(row)
    starts = np.cumsum([0, *map(len, found)])
    return np.concatenate([np.empty(0, np.uint64), *found]), starts, np.array(rows, dtype=np.int64)


def _mix(values: np.ndarray) -> np.ndarray:
    """The finaliser of SplitMix64 (Steele et al. 2014): every bit of the input moves every bit of the output."""
    values = values + np.uint64(0x9E3779B97F4A7C15)
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


def _candidates(shingles: np.ndarray, starts: np.ndarray) -> set[tuple[int, int]]:
    """The pairs of texts that agree in all rows of at least one band."""
    pairs: set[tuple[int, int]] = set()
    for band in range(_BANDS):
        key = np.zeros(len(starts) - 1, dtype=np.uint64)
        for row in range(_ROWS):
            salt = _mix(np.array([band * _ROWS + row], dtype=np.uint64))
            key = _mix(key) + np.minimum.reduceat(_mix(shingles ^ salt), starts[:-1])
        order = np.argsort(key, kind="stable")
        bounds = np.flatnonzero(np.diff(key[order])) + 1
        for group in np.split(order, bounds):
            if len(group) > 1:
                members = group.tolist()  # ascending, the sort being stable
                pairs.update((a, b) for at, a in enumerate(members) for b in members[at + 1 :])
    return pairs


def _jaccard(a: np.ndarray, b: np.ndarray) -> float:
    shared = len(np.intersect1d(a, b, assume_unique=True))
    return shared / (len(a) + len(b) - shared)
