"""Two texts of each passage: neighbouring spans, or the passage and one of its queries.

The two texts of a passage are neighbours in a batch: texts 2 i and 2 i + 1.

    B passages
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cdmae.masking.noise import uniforms
from cdmae.pretraining import further
from cdmae.pretraining.batches import Texts
from cdmae.pretraining.reader import Reader, word_begins

if TYPE_CHECKING:
    from cdmae.config.encoders import Pretraining
    from cdmae.masking import Corpus, Side
    from cdmae.pretraining.further import Asked
    from cdmae.tokens.corpus import Tokens

MIDDLE = (0.25, 0.75)  # the part of a passage from which the cut into two spans is drawn


class Contexts(Reader):
    """Reads two spans of each passage, or with `context: query` the passage and a query."""

    spans = 2

    def __init__(
        self,
        settings: Pretraining,
        sides: dict[str, Side],
        corpus: Corpus,
        seed: int,
        asked: Asked | None = None,
        store: Tokens | None = None,
    ) -> None:
        """Read the queries, unless they are given; store: see `Reader`."""
        if getattr(settings, "context", "") == "query":
            asked = asked or further.queries(corpus)
            store = asked.tokens
        self.asked = asked
        super().__init__(settings, sides, corpus, seed, store)
        if asked:
            self.read_rows = asked.passages

    @property
    def longest(self) -> int:
        """Return the number of word-pieces at which passages are cut: a text's, or two spans'."""
        return self.length if self.asked else 2 * self.length

    def texts(self, rows: np.ndarray, epochs: np.ndarray) -> Texts:
        """Return two texts of each passage; the pair of texts is drawn for each epoch."""
        begins = self.store.starts[rows]
        lengths = self.lengths[rows]
        if self.asked:
            draws = uniforms(self.keys("query", epochs), rows, 1, salt=1)[:, 0]
            queries = self.asked.drawn(rows, draws)
            begins = np.stack([begins, self.store.starts[queries]], axis=1)
            lengths = np.stack([lengths, self.lengths[queries]], axis=1)
        else:
            cut = self.cut(rows, begins, lengths, epochs)
            begins = np.stack([begins, begins + cut], axis=1)
            lengths = np.stack([cut, np.minimum(lengths - cut, self.length)], axis=1)
        return pairs(rows, begins, lengths, epochs, len(self.tokens))

    def cut(
        self, rows: np.ndarray, begins: np.ndarray, lengths: np.ndarray, epochs: np.ndarray
    ) -> np.ndarray:
        """Draw the length of each passage's first span, int64 [B].

        The boundary is drawn from the middle half and moved to the beginning of a word. Both spans
        have at most the length of a passage.
        """
        draw = uniforms(self.keys("cut", epochs), rows, 1, salt=1)[:, 0].astype(np.float64)
        low = np.maximum(np.ceil(lengths * MIDDLE[0]), lengths - self.length)
        high = np.minimum(np.floor(lengths * MIDDLE[1]), self.length)
        cut = (low + np.floor(draw * np.maximum(0, high - low + 1))).astype(np.int64)
        pieces = self.tokens.ids  # stays on disk
        return word_begins(begins + cut, begins, pieces, self.vocabulary.word_starts) - begins


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
