"""Random masking of whole words (Cui et al. 2019), what RetroMAE and SimLM do to the encoder's input."""

from __future__ import annotations

import numpy as np

from cdmae.compiled import compiled
from cdmae.masking import SELECT, Batch, Side
from cdmae.masking.noise import Key, draws
from cdmae.masking.strategies._top import budget


def select(batch: Batch, side: Side, key: Key) -> np.ndarray:
    """Mask floor(p x n) word-pieces by going through the words in random order: bool [B, n].

    A word that is longer than what is left to mask is passed over. Where all that remain are longer, the first pieces
    of the first of them complete the number: no other word is masked in part.
    """
    chosen = np.zeros(batch.ids.shape, bool)
    order = draws(key, batch.rows, batch.ids.shape[1], salt=SELECT)
    choose(order, batch.word_starts, batch.candidates, budget(batch.candidates, side.ratio), chosen)
    return chosen


@compiled
def choose(draws, word_starts, candidates, budgets, chosen):  # noqa: ANN001, ANN201
    """Choose so many word-pieces of each passage, word by word: into `chosen`, bool [B, n]."""
    length = chosen.shape[1]
    begins = np.empty(length + 1, np.int64)  # of word w (from 0) the first place, and in ends[w + 1] the one behind it
    ends = np.empty(length + 1, np.int64)
    for passage in range(chosen.shape[0]):
        words = 0
        inside = False
        for place in range(length):  # without a branch: one on where words begin would be guessed wrong too often
            candidate = candidates[passage, place]
            begins[words] = place
            words += candidate and (word_starts[passage, place] or not inside)
            ends[words] = place + 1 if candidate else ends[words]
            inside = candidate  # a special token ends a word and is none itself
        left = budgets[passage]
        skipped = -1
        for index in range(words):
            if left == 0:
                break
            high = draws[passage, index] >> np.uint64(32)
            other = index + np.int64(high * np.uint64(words - index) >> np.uint64(32))
            start, end = begins[other], ends[other + 1]
            begins[other], ends[other + 1] = begins[index], ends[index + 1]
            if end - start <= left:
                for place in range(start, end):
                    chosen[passage, place] = True
                left -= end - start
            elif skipped < 0:
                skipped = start
        for place in range(skipped, skipped + left):
            chosen[passage, place] = True
