"""Rare words first: words drawn with weights 1 / frequency, as in MASTER (Zhou et al. 2023, section 3.2)."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from cdmae.masking import Batch, Side
from cdmae.masking.noise import Key
from cdmae.masking.strategies._weights import frequencies, spread, weighted
from cdmae.tokens.corpus import Tokens


def values(tokens: Tokens, importance: Path | None) -> np.ndarray:
    """log(1 / frequency) of the word of each word-piece, counted in the collection itself: float16 [T]."""
    del importance
    return spread(-np.log(frequencies(tokens).astype(np.float64)), tokens)


def select(batch: Batch, side: Side, key: Key) -> np.ndarray:
    """Mask floor(p x n) word-pieces in words drawn by 1 / frequency: bool [B, n]."""
    return weighted(batch, side, key)
