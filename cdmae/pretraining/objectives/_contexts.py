"""Two neighbouring spans of each passage.

The two texts of a passage are neighbours in a batch: texts 2 i and 2 i + 1.

    B passages of a batch
"""

from __future__ import annotations

import numpy as np

from cdmae.masking.noise import uniforms
from cdmae.pretraining.batches import Texts
from cdmae.pretraining.reader import Reader, word_begins

MIDDLE = (0.25, 0.75)  # the part of a passage from which the cut into two spans is drawn


class Contexts(Reader):
    """Reads two spans of each passage.

    The boundary is drawn from the middle half for each epoch, and moved to the beginning of a word.
    Both spans have at most the length of a passage.
    """

    spans = 2

    @property
    def longest(self) -> int:
        """Return the number of word-pieces at which passages are cut: two spans'."""
        return 2 * self.length

    def texts(self, rows: np.ndarray, epochs: np.ndarray) -> Texts:
        """Return two spans of each passage."""
        begins = self.tokens.starts[rows]
        lengths = self.lengths[rows]
        draw = uniforms(self.keys("cut", epochs), rows, 2, salt=1)[:, 1].astype(np.float64)
        low = np.maximum(np.ceil(lengths * MIDDLE[0]), lengths - self.length)
        high = np.minimum(np.floor(lengths * MIDDLE[1]), self.length)
        cuts = begins + (low + np.floor(draw * np.maximum(0, high - low + 1))).astype(np.int64)
        cuts = word_begins(cuts, begins, self.tokens.ids, self.vocabulary.word_starts)
        first = cuts - begins
        second = np.minimum(lengths - first, self.length)
        begins = np.stack([begins, cuts], axis=1)
        lengths = np.stack([first, second], axis=1)
        return pairs(rows, begins, lengths, epochs, len(self.tokens))


def pairs(
    rows: np.ndarray, begins: np.ndarray, lengths: np.ndarray, epochs: np.ndarray, passages: int
) -> Texts:
    """Return two texts of each passage, by their offsets and lengths [B, 2].

    Second texts have row numbers beyond the number of passages, and thus other random draws.
    """
    keys = np.stack([rows, rows + passages], axis=1)
    return Texts(keys.ravel(), begins.ravel(), lengths.ravel(), np.repeat(epochs, 2))


def exchanged(texts: Texts) -> Texts:
    """Return for each text the other one of its passage."""
    return texts[np.arange(len(texts.rows)) ^ 1]
