"""Random masking of single word-pieces, as in BERT: every candidate alike."""

from __future__ import annotations

import numpy as np

from cdmae.compiled import compiled
from cdmae.masking import SELECT, Batch, Side
from cdmae.masking._top import budget, top
from cdmae.noise import bits, stream, uniform


def select(batch: Batch, side: Side, key: np.uint64) -> np.ndarray:
    """Mask floor(p x n) word-pieces, drawn without replacement: bool [B, n]."""
    values = np.empty(batch.ids.shape, np.float32)
    _draw(batch.rows, batch.candidates, key, values)
    return top(values, budget(batch.candidates, side.ratio))


@compiled
def _draw(rows, candidates, key, values):  # noqa: ANN001, ANN202
    for passage in range(values.shape[0]):
        state = stream(key, rows[passage], SELECT)
        for place in range(values.shape[1]):
            values[passage, place] = uniform(bits(state, place)) if candidates[passage, place] else -np.inf
