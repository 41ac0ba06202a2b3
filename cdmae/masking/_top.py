"""The k highest of each row, as a mask: the last step of every strategy."""

from __future__ import annotations

import numpy as np

from cdmae.compiled import compiled


def budget(candidates: np.ndarray, ratio: float) -> np.ndarray:
    """Algorithm 1, line 6: k = floor(n x p), n the candidates of each passage: int64 [B]."""
    # 0.29 x 100 is 28.999999999999996 in floating point.
    return np.floor(candidates.sum(axis=1) * ratio + 1e-9).astype(np.int64)


def top(values: np.ndarray, k: np.ndarray) -> np.ndarray:
    """The k[b] highest `values` of each row, ties from the left: bool [B, n].

    values float32 [B, n], minus infinity for what is no candidate.
    """
    chosen = np.zeros(values.shape, bool)
    _mark(values, np.sort(values, axis=1), k, chosen)
    return chosen


@compiled
def _mark(values, ordered, k, chosen):  # noqa: ANN001, ANN202
    for row in range(values.shape[0]):
        wanted = k[row]
        if wanted == 0:
            continue
        least = ordered[row, values.shape[1] - wanted]
        ties = wanted
        for place in range(values.shape[1]):
            ties -= values[row, place] > least
        for place in range(values.shape[1]):
            if values[row, place] > least:
                chosen[row, place] = True
            elif values[row, place] == least and ties > 0:
                chosen[row, place] = True
                ties -= 1
