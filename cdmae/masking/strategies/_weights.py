"""Words drawn one after another without replacement, each with a probability in proportion to its weight."""

from __future__ import annotations

import numpy as np

from cdmae.compiled import compiled
from cdmae.masking import SELECT, Batch, Side
from cdmae.masking.noise import UNIT, Key, draws
from cdmae.masking.strategies._top import budget, top


def weighted(batch: Batch, side: Side, key: Key) -> np.ndarray:
    """Mask floor(p x n) word-pieces, in words drawn by their weights: bool [B, n].

    ``batch.importance`` holds the logarithms of the weights. With Gumbel noise added to them the k highest are a sample
    without replacement (Efraimidis and Spirakis 2006; Vieira 2014). A word's pieces share their noise, so that at most
    one word is masked in part.
    """
    noise = np.empty(batch.ids.shape, np.float32)
    bits = draws(key, batch.rows, batch.ids.shape[1], salt=SELECT)
    _perturb(bits, batch.importance, batch.word_starts, batch.candidates, noise)
    return top(noise, budget(batch.candidates, side.ratio))


@compiled
def _perturb(draws, weights, word_starts, candidates, noise):  # noqa: ANN001, ANN202
    for passage in range(len(noise)):
        shared = 0.0
        for place in range(noise.shape[1]):
            if word_starts[passage, place] or place == 0:
                uniform = (np.float64(draws[passage, place] >> np.uint64(11)) + 0.5) * UNIT
                shared = -np.log(-np.log(uniform))
            value = np.float32(weights[passage, place] + shared)
            noise[passage, place] = value if candidates[passage, place] else np.float32(-np.inf)
