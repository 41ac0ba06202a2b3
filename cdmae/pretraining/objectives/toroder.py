"""ToRoDer: an encoder that reads misspelt words (Zhuang et al. 2023, arXiv:2304.08138).

The encoder reads the passage with some words misspelt and others masked, and predicts the masked
ones. The decoder reads the vector and the correct passage, in which the misspelt words are masked,
and then the encoder's masked words and more, up to its ratio; it predicts these. The vector of a
misspelt text therefore has to carry the correct words.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from cdmae import masking
from cdmae.models.ragged import Ragged, indices, starts_of
from cdmae.pretraining.batches import Masked
from cdmae.pretraining.objectives.mae import Mae
from cdmae.pretraining.reader import Reader
from cdmae.pretraining.spelling import Spelling

if TYPE_CHECKING:
    from cdmae.masking import Batch
    from cdmae.pretraining.batches import Texts


class Misspelling(Reader):
    """Misspells words of the encoder's texts and masks these words in the decoder's."""

    @cached_property
    def spelling(self) -> Spelling:
        """Return what finds and misspells words."""
        return Spelling(self.corpus.tokenizer, self.vocabulary)

    def mask(self, name: str, texts: Texts, others: dict[str, Masked]) -> Masked:
        """Apply equation 1 beyond the misspelt words; both sides draw words in the same order."""
        side = self.sides[name]
        batch = self.batch_of(texts, side)
        of_words = self.keys("misspelt", texts.epochs)
        keys = self.keys("encoder", texts.epochs)
        misspelt = self.spelling.choose(batch, self.settings.misspelt, of_words)
        if name == "decoder":
            ids, chosen = masking.mask(batch, side, self.vocabulary, keys, misspelt)
            return self.framed(texts, batch, ids, chosen)
        correct = replace(batch, candidates=batch.candidates & ~misspelt)
        chosen = masking.draw(correct, side, keys, masking.budget(batch.candidates, side.ratio))
        ids = masking.corrupt(batch, chosen, side, self.vocabulary, keys)
        lengths, source, new = self.misspelt(batch, misspelt, of_words)
        pieces = Ragged(np.where(new < 0, ids.ravel()[source], new), starts_of(lengths))
        return Masked.of(
            texts, pieces, chosen.ravel()[source], batch.ids.ravel()[source], self.vocabulary
        )

    def misspelt(
        self, batch: Batch, chosen: np.ndarray, keys: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Misspell the `chosen` words, bool [B, n], and cut the passages, which become longer.

        Returns the passages' lengths, int64 [B]; for each word-piece the offset in the padded
        passages, of misspelt words that of their beginning; and the word-pieces, of misspelt words
        the new ones, -1 elsewhere.
        """
        begins, ends, pieces = self.spelling.misspell(batch, chosen, keys)
        counts = batch.real.astype(np.int64).ravel()  # each position becomes none, one or more
        counts[indices(begins, ends - begins)] = 0
        counts[begins] = pieces.lengths
        counts = counts.reshape(batch.ids.shape)
        before = np.cumsum(counts, axis=1) - counts
        counts = np.minimum(counts, np.maximum(0, self.length - before))
        source = np.repeat(np.arange(counts.size), counts.ravel())
        first = np.full(counts.size, -1, np.int64)
        first[begins] = pieces.starts[:-1]
        within = np.arange(len(source)) - starts_of(counts.ravel())[source]
        is_new = first[source] >= 0
        new = np.full(len(source), -1, np.int64)
        new[is_new] = pieces.values[(first[source] + within)[is_new]]
        return counts.sum(axis=1), source, new


class ToRoDer(Mae):
    """Encoder, bottleneck and decoder."""

    name = "toroder"
    reader = Misspelling
