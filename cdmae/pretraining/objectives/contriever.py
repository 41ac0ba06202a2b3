"""Contriever: the contrast of two crops of a passage (Izacard et al. 2022).

The objective reads two random crops of each passage, each with a few tokens deleted. The vector of
the first crop, q, must score its passage's second crop, k, above the second crops of the global
batch's other passages. There are no masks, and the LM head is not trained.

L = -log exp(q_i . k_i / tau) / sum over j of exp(q_i . k_j / tau), the mean over passages
(``src/inbatch.py`` of facebookresearch/contriever; `cdmae.pretraining.objectives._contrast`).

    B crops of a micro-batch, N crops of the global batch, D dimensions
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Generator, Tensor
from torch.nn import functional

from cdmae.masking.noise import uniforms
from cdmae.pretraining.batches import Texts
from cdmae.pretraining.objectives._contexts import pairs
from cdmae.pretraining.objectives._contrast import Contrastive, pulled
from cdmae.pretraining.objectives._parts import Losses, spread
from cdmae.pretraining.reader import Reader

if TYPE_CHECKING:
    from cdmae.pretraining.batches import Batch, Masked, View

DELETE = 4  # the salt of the random stream


class Crops(Reader):
    """Reads two crops of each passage with a few tokens deleted, and masks nothing."""

    spans = 2

    def texts(self, rows: np.ndarray, epochs: np.ndarray) -> Texts:
        """Return two independent crops of each passage.

        A crop's share of the passage is uniform, then its position; a crop has at least one
        word-piece, if the passage has any.
        """
        draws = uniforms(self.keys("crop", epochs), rows, 5, salt=1)[:, 1:].astype(np.float64)
        least = self.settings.crop_least
        lengths = self.lengths[rows][:, None]
        shares = least + draws[:, :2] * (self.settings.crop_most - least)
        sizes = np.minimum(lengths, np.maximum(1, np.floor(shares * lengths))).astype(np.int64)
        offsets = np.floor(draws[:, 2:] * (lengths - sizes + 1)).astype(np.int64)
        begins = self.tokens.starts[rows][:, None] + offsets
        return pairs(rows, begins, sizes, epochs, len(self.tokens))

    def mask(self, name: str, texts: Texts, others: dict[str, Masked]) -> Masked:
        """Delete tokens; nothing is predicted."""
        batch = self.batch_of(texts, self.sides[name])
        kept = batch.real
        if self.settings.deletion:
            keys = self.keys(name, texts.epochs)
            draws = uniforms(keys, batch.rows, batch.ids.shape[1], salt=DELETE)
            kept &= ~batch.inside | (draws >= self.settings.deletion)
        return self.unpadded(texts, batch, batch.ids, np.zeros_like(batch.candidates), kept)


class Contriever(Contrastive):
    """The encoder alone."""

    name = "contriever"
    masked = ()
    plain = ("encoder",)  # both crops
    reader = Crops

    def forward(self, batch: Batch, generator: Generator | None = None) -> Losses:
        """Return the loss, shown as the encoder's in the curve; the batch comes from `prepare`."""
        vectors = self.vectors(batch["encoder"], generator)
        loss = batch.share * batch.common
        return loss + pulled(vectors, batch), {
            "encoder_loss": loss,
            "decoder_loss": torch.zeros_like(loss),
            "spread": spread(vectors) * batch.share,
        }

    def vectors(self, view: View, generator: Generator | None) -> Tensor:
        """Return the vectors of the crops [B, D]."""
        return self.encode(view, generator)[0]

    def contrast(self, vectors: Tensor) -> Tensor:
        """Return the loss of crops [N, D], 0-d; crops 2 i and 2 i + 1 come from one passage."""
        scores = vectors[::2] @ vectors[1::2].T / self.settings.temperature
        return functional.cross_entropy(scores, torch.arange(len(scores), device=scores.device))
