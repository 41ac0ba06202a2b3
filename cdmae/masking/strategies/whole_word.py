"""Random masking of whole words (Cui et al. 2019), as for the encoder in RetroMAE and SimLM."""

from __future__ import annotations

import numpy as np

from cdmae.compiled import compiled
from cdmae.masking import SELECT, Batch, Side
from cdmae.masking.noise import Key, draws


def select(batch: Batch, side: Side, key: Key) -> np.ndarray:
    """Mask k word-pieces by visiting the words in random order: bool [B, n].

    A word with more pieces than are left to mask is skipped. If all remaining words are too long,
    the first pieces of the first skipped word complete the number: no other word is masked in part.
    """
    chosen = np.zeros(batch.ids.shape, bool)
    order = draws(key, batch.rows, batch.ids.shape[1], salt=SELECT)
    choose(order, batch.word_starts, batch.candidates, batch.k, chosen)
    return chosen


@compiled
def choose(draws, word_starts, candidates, budgets, chosen):  # noqa: ANN001, ANN201
    """Mark `budgets` word-pieces of each passage in `chosen`, bool [B, n], word by word."""
    length = chosen.shape[1]
    # Word w, counted from 0, has the word-pieces begins[w] to ends[w + 1] - 1.
    begins = np.empty(length + 1, np.int64)
    ends = np.empty(length + 1, np.int64)
    for passage in range(chosen.shape[0]):
        words = 0
        inside = False
        for position in range(length):  # without branches, which would be mispredicted too often
            candidate = candidates[passage, position]
            begins[words] = position
            words += candidate and (word_starts[passage, position] or not inside)
            ends[words] = position + 1 if candidate else ends[words]
            inside = candidate  # a special token ends a word
        left = budgets[passage]
        skipped = -1
        for index in range(words):
            if left == 0:
                break
            high = draws[passage, index + 1] >> np.uint64(32)
            other = index + np.int64(high * np.uint64(words - index) >> np.uint64(32))
            start = begins[other]
            end = ends[other + 1]
            begins[other] = begins[index]
            ends[other + 1] = ends[index + 1]
            if end - start <= left:
                for position in range(start, end):
                    chosen[passage, position] = True
                left -= end - start
            elif skipped < 0:
                skipped = start
        for position in range(skipped, skipped + left):
            chosen[passage, position] = True
