"""The last step of strategies that rank word-pieces by a number: mask the highest."""

from __future__ import annotations

import numpy as np

from cdmae.masking import SELECT, Batch, Side
from cdmae.masking.noise import UNIT, Key, draws


def highest(batch: Batch, values: np.ndarray) -> np.ndarray:
    """Mark the k highest candidates of each passage, from the left among ties: bool [B, n].

    values: float32 [B, n].
    """
    if not values.size:
        return np.zeros(values.shape, bool)
    values = np.where(batch.candidates, values, np.float32(-np.inf))
    ordered = np.sort(values, axis=1)
    lowest = ordered[np.arange(len(values)), -np.maximum(1, batch.k)][:, None]
    chosen = values > lowest
    ties = values == lowest
    left = batch.k - chosen.sum(axis=1)
    return chosen | (ties & (np.cumsum(ties, axis=1) <= left[:, None]))


def weighted(batch: Batch, side: Side, key: Key) -> np.ndarray:
    """Mask words drawn without replacement, in proportion to their weights: bool [B, n].

    ``batch.values`` holds the logarithms of the weights. With Gumbel noise added to them, the k
    highest are a sample without replacement (Efraimidis and Spirakis 2006; Vieira 2014). The pieces
    of a word share their noise: at most one word is therefore masked in part.
    """
    bits = batch.of_words(draws(key, batch.rows, batch.ids.shape[1], salt=SELECT))
    uniform = ((bits >> np.uint64(11)) + 0.5) * UNIT
    noise = -np.log(-np.log(uniform))
    return highest(batch, (batch.values + noise).astype(np.float32))
