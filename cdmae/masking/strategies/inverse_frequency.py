"""Mask words drawn with the weight 1 / frequency, as in MASTER (Zhou et al. 2023, section 3.2)."""

from __future__ import annotations

import numpy as np

from cdmae.masking import Corpus
from cdmae.masking.strategies._ranking import weighted as select
from cdmae.tokens.words import broadcast, number_words

__all__ = ["select", "values"]


def values(corpus: Corpus) -> np.ndarray:
    """Return log(1 / frequency) of each word-piece's word in the collection: float16 [T]."""
    words, _ = number_words(corpus.tokens)
    counts = np.bincount(words).astype(np.float64)
    return broadcast(-np.log(counts[words]), corpus.tokens, "word")
