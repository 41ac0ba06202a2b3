"""Mask words drawn with the weight 1 / frequency, as in MASTER (Zhou et al. 2023, section 3.2)."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from cdmae.masking.strategies._weights import weighted as select
from cdmae.tokens.corpus import Tokens
from cdmae.tokens.words import broadcast, words_of

__all__ = ["select", "values"]


def values(tokens: Tokens, _: Path | None) -> np.ndarray:
    """Return log(1 / frequency) of each word-piece's word in the collection: float16 [T]."""
    words, _, _ = words_of(tokens, "word")
    counts = np.bincount(words).astype(np.float64)
    return broadcast(-np.log(counts[words]), tokens, "word")
