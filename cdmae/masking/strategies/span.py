"""Contiguous spans of words, geometric in length (SpanBERT, Joshi et al. 2020, section 3.1)."""

from __future__ import annotations

import numpy as np

from cdmae.compiled import compiled
from cdmae.masking import LOWER, SELECT, Batch, Side
from cdmae.masking.noise import Key, draws

STOP = 0.2  # SpanBERT's p
LONGEST = 10  # words of SpanBERT's longest span; the mean is 3.8


def select(batch: Batch, side: Side, key: Key) -> np.ndarray:
    """Mask k word-pieces, span by span: bool [B, n].

    A span begins at a random unmasked word. It has l ~ Geometric(0.2) words, at most 10, or fewer
    at the end of the passage. The last span is cut once k word-pieces are masked.
    """
    chosen = np.zeros(batch.ids.shape, bool)
    order = draws(key, batch.rows, batch.ids.shape[1], salt=SELECT)
    _choose(order, batch.word_starts, batch.candidates, batch.k, chosen)
    return chosen


@compiled
def length(draw):  # noqa: ANN001, ANN201
    """Draw the length l of a span in words from the lower half of 64 random bits.

    P(l) is in proportion to p (1 - p)^(l - 1), l = 1 .. 10.
    """
    uniform = np.float64(draw & LOWER) * 2.0**-32
    longest = 1.0 - (1.0 - STOP) ** LONGEST
    return 1 + np.int64(np.log1p(-uniform * longest) / np.log(1.0 - STOP))


@compiled
def _choose(draws, word_starts, candidates, budgets, chosen):  # noqa: ANN001, ANN202
    size = chosen.shape[1]
    order = np.empty(size, np.int64)
    for passage in range(len(chosen)):
        words = 0
        for position in range(size):
            if not candidates[passage, position]:
                continue
            if word_starts[passage, position] or not candidates[passage, position - 1]:
                order[words] = position
                words += 1
        left = budgets[passage]
        for index in range(words):
            if left == 0:
                break
            draw = draws[passage, index + 1]
            high = draw >> np.uint64(32)
            other = index + np.int64(high * np.uint64(words - index) >> np.uint64(32))
            order[index], order[other] = order[other], order[index]
            position = order[index]
            if chosen[passage, position]:
                continue
            begun = 0
            while position < size and left > 0:
                first = word_starts[passage, position] or begun == 0
                begun += candidates[passage, position] and first
                if begun > length(draw) or not candidates[passage, position]:
                    break
                left -= not chosen[passage, position]
                chosen[passage, position] = True
                position += 1
