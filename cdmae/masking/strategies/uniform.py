"""Random masking of single word-pieces, as in BERT."""

from __future__ import annotations

import numpy as np

from cdmae.masking import SELECT, Batch, Side
from cdmae.masking.noise import Key, uniforms
from cdmae.masking.strategies._ranking import highest


def select(batch: Batch, side: Side, key: Key) -> np.ndarray:
    """Mask k word-pieces, drawn without replacement: bool [B, n]."""
    return highest(batch, uniforms(key, batch.rows, batch.ids.shape[1], salt=SELECT))
