"""Mask words drawn in proportion to their inverse document frequency.

The weight is BM25's in Lucene's form: log(1 + (P - d + 0.5) / (d + 0.5)) for a word in d of P
passages.
"""

from __future__ import annotations

import numpy as np

from cdmae.masking import Corpus
from cdmae.masking.strategies._ranking import weighted as select
from cdmae.tokens.words import broadcast, number_words

__all__ = ["select", "values"]


def values(corpus: Corpus) -> np.ndarray:
    """Return the log of the inverse document frequency of each word-piece's word: float16 [T]."""
    words, lengths = number_words(corpus.tokens)
    passages = np.repeat(np.arange(len(corpus.tokens)), lengths.reshape(-1, 2).sum(axis=1))
    size = int(words.max(initial=0)) + 1
    once = np.unique(passages * size + words)  # each word of each passage
    having = np.bincount(once % size, minlength=size)
    weights = np.log1p((len(corpus.tokens) - having + 0.5) / (having + 0.5))
    return broadcast(np.log(weights)[words], corpus.tokens, "word")
