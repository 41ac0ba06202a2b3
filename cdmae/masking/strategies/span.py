"""Contiguous spans of words of geometric length, as in SpanBERT (Joshi et al. 2020, section 3.1)."""

from __future__ import annotations

import numpy as np

from cdmae.compiled import compiled
from cdmae.masking import LOWER, SELECT, Batch, Side
from cdmae.masking.noise import Key, draws
from cdmae.masking.strategies._top import budget

STOP, LONGEST = 0.2, 10  # SpanBERT's p and its longest span: 3.8 words on average


def select(batch: Batch, side: Side, key: Key) -> np.ndarray:
    """Mask floor(p x n) word-pieces, span by span: bool [B, n].

    A span begins at a word that is drawn among those not masked yet, and has l words, l ~ Geometric(0.2) up to 10; it
    ends early at the end of the passage. The last span is cut where the number is reached.
    """
    chosen = np.zeros(batch.ids.shape, bool)
    order = draws(key, batch.rows, batch.ids.shape[1], salt=SELECT)
    _choose(order, batch.word_starts, batch.candidates, budget(batch.candidates, side.ratio), chosen)
    return chosen


@compiled
def length(draw):  # noqa: ANN001, ANN201
    """Words of a span: P(l) in proportion to p (1 - p)^(l - 1), l = 1 .. 10, from the lower half of 64 random bits."""
    uniform = np.float64(draw & LOWER) * 2.0**-32
    return 1 + np.int64(np.log1p(-uniform * (1.0 - (1.0 - STOP) ** LONGEST)) / np.log(1.0 - STOP))


@compiled
def _choose(draws, word_starts, candidates, budgets, chosen):  # noqa: ANN001, ANN202
    size = chosen.shape[1]
    order = np.empty(size, np.int64)
    for passage in range(len(chosen)):
        words = 0
        for place in range(size):
            if candidates[passage, place] and (word_starts[passage, place] or not candidates[passage, place - 1]):
                order[words] = place
                words += 1
        left = budgets[passage]
        for index in range(words):
            if left == 0:
                break
            draw = draws[passage, index]
            other = index + np.int64((draw >> np.uint64(32)) * np.uint64(words - index) >> np.uint64(32))
            order[index], order[other] = order[other], order[index]
            place = order[index]
            if chosen[passage, place]:
                continue
            begun = 0
            while place < size and left > 0:
                begun += candidates[passage, place] and (word_starts[passage, place] or begun == 0)
                if begun > length(draw) or not candidates[passage, place]:
                    break
                left -= not chosen[passage, place]
                chosen[passage, place] = True
                place += 1
