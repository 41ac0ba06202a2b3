"""Mask words drawn in proportion to their inverse document frequency.

The weight is BM25's in Lucene's form: log(1 + (P - d + 0.5) / (d + 0.5)) for a word in d of P
passages.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from cdmae.compiled import compiled
from cdmae.masking.strategies._weights import weighted as select
from cdmae.tokens.corpus import Tokens
from cdmae.tokens.words import broadcast, words_of

__all__ = ["select", "values"]


def values(tokens: Tokens, _: Path | None) -> np.ndarray:
    """Return the log of the inverse document frequency of each word-piece's word: float16 [T]."""
    words, segments, _ = words_of(tokens, "word")
    having = np.zeros(int(words.max(initial=0)) + 1, np.int64)
    _count_passages(words, segments[::2].copy(), np.full(len(having), -1, np.int64), having)
    weights = np.log1p((len(tokens) - having + 0.5) / (having + 0.5))
    return broadcast(np.log(weights)[words], tokens, "word")


@compiled
def _count_passages(words, passages, last, having):  # noqa: ANN001, ANN202
    for passage in range(len(passages) - 1):
        for position in range(passages[passage], passages[passage + 1]):
            word = words[position]
            having[word] += last[word] != passage
            last[word] = passage
