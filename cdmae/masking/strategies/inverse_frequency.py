"""Rare words first: words drawn with weights 1 / frequency, as in MASTER (Zhou et al. 2023, section 3.2)."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from cdmae.importance import ami, ngrams
from cdmae.masking.strategies._weights import weighted as select
from cdmae.tokens.corpus import Tokens

__all__ = ["select", "values"]


def values(tokens: Tokens, _: Path | None) -> np.ndarray:
    """log(1 / frequency) of the word of each word-piece, counted in the collection itself: float16 [T]."""
    words, _, _ = ngrams.words_of(tokens, "word")
    return ami.broadcast(-np.log(np.bincount(words).astype(np.float64)[words]), tokens, "word")
