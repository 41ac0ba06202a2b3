"""Mask words drawn in proportion to their inverse document frequency.

The weight is BM25's in Lucene's form: log(1 + (P - d + 0.5) / (d + 0.5)) for a word in d of P
passages.
"""

from __future__ import annotations

import numpy as np

from cdmae.compiled import compiled
from cdmae.masking import Corpus
from cdmae.masking.strategies._ranking import weighted as select
from cdmae.tokens.words import broadcast, words_of

__all__ = ["IN_WORDS", "select", "values"]

IN_WORDS = "preferably words that occur in few passages"


def values(corpus: Corpus) -> np.ndarray:
    """Return the log of the inverse document frequency of each word-piece's word: float16 [T]."""
    words, segments, _ = words_of(corpus.tokens, "word")
    having = np.zeros(int(words.max(initial=0)) + 1, np.int64)
    _count_passages(words, segments[::2].copy(), np.full(len(having), -1, np.int64), having)
    weights = np.log1p((len(corpus.tokens) - having + 0.5) / (having + 0.5))
    return broadcast(np.log(weights)[words], corpus.tokens, "word")


@compiled
def _count_passages(words, passages, last, having):  # noqa: ANN001, ANN202
    for passage in range(len(passages) - 1):
        for position in range(passages[passage], passages[passage + 1]):
            word = words[position]
            having[word] += last[word] != passage
            last[word] = passage
