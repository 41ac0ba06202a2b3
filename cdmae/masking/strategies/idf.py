"""Words that few passages have first: words drawn with their inverse document frequency as weight.

The weight is BM25's, as Lucene computes it: log(1 + (P - d + 0.5) / (d + 0.5)) for a word that d of P passages have.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from cdmae.masking import Batch, Side
from cdmae.masking.noise import Key
from cdmae.masking.strategies._weights import document_frequencies, spread, weighted
from cdmae.tokens.corpus import Tokens


def values(tokens: Tokens, importance: Path | None) -> np.ndarray:
    """Return the logarithm of the inverse document frequency of the word of each word-piece: float16 [T]."""
    del importance
    having = document_frequencies(tokens)
    return spread(np.log(np.log1p((len(tokens) - having + 0.5) / (having + 0.5))), tokens)


def select(batch: Batch, side: Side, key: Key) -> np.ndarray:
    """Mask floor(p x n) word-pieces in words drawn by their inverse document frequency: bool [B, n]."""
    return weighted(batch, side, key)
