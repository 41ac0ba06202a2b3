"""Random masking of single word-pieces, as in BERT."""

from __future__ import annotations

import numpy as np

from cdmae.masking import SELECT, Batch, Side
from cdmae.masking.noise import Key, uniforms
from cdmae.masking.strategies._top import budget, top


def select(batch: Batch, side: Side, key: Key) -> np.ndarray:
    """Mask floor(p x n) word-pieces, drawn without replacement: bool [B, n]."""
    values = uniforms(key, batch.rows, batch.ids.shape[1], salt=SELECT)
    values[~batch.candidates] = -np.inf
    return top(values, budget(batch.candidates, side.ratio))
