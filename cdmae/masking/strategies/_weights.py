"""Draw words without replacement, with probabilities in proportion to their weights."""

from __future__ import annotations

import numpy as np

from cdmae.compiled import compiled
from cdmae.masking import SELECT, Batch, Side
from cdmae.masking.noise import UNIT, Key, draws
from cdmae.masking.strategies._top import budget, top


def weighted(batch: Batch, side: Side, key: Key) -> np.ndarray:
    """Mask floor(p x n) word-pieces: words are drawn in proportion to their weights, bool [B, n].

    ``batch.importance`` holds the logarithms of the weights. With Gumbel noise added to them, the k
    highest are a sample without replacement (Efraimidis and Spirakis 2006; Vieira 2014). The pieces
    of a word share their noise: at most one word is therefore masked in part.
    """
    noise = np.empty(batch.ids.shape, np.float32)
    bits = draws(key, batch.rows, batch.ids.shape[1], salt=SELECT)
    _perturb(bits, batch.importance, batch.word_starts, batch.candidates, noise)
    return top(noise, budget(batch.candidates, side.ratio))


@compiled
def _perturb(draws, weights, word_starts, candidates, noise):  # noqa: ANN001, ANN202
    for passage in range(len(noise)):
        shared = 0.0
        for position in range(noise.shape[1]):
            if word_starts[passage, position] or position == 0:
                uniform = (np.float64(draws[passage, position] >> np.uint64(11)) + 0.5) * UNIT
                shared = -np.log(-np.log(uniform))
            value = np.float32(weights[passage, position] + shared)
            noise[passage, position] = (
                value if candidates[passage, position] else np.float32(-np.inf)
            )
