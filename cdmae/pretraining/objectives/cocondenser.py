"""coCondenser (Gao and Callan 2022): Condenser, with a contrastive loss between spans by [CLS].

The objective reads two neighbouring spans of each passage. The vector of a span must score its
neighbour above all other spans of the global batch: L_co = -log exp(h_1 . h_2) / sum over other
spans of exp(h_1 . h), the mean over spans.

The loss reads the whole global batch (`cdmae.pretraining.objectives._contrast`).

    B spans of a micro-batch, N spans of the global batch, D dimensions
"""

from __future__ import annotations

import torch
from torch import Generator, Tensor
from torch.nn import functional

from cdmae.pretraining.batches import Batch, View
from cdmae.pretraining.objectives._contexts import Contexts
from cdmae.pretraining.objectives._contrast import Contrastive, pulled
from cdmae.pretraining.objectives._parts import Losses, added
from cdmae.pretraining.objectives.condenser import Condenser


class CoCondenser(Condenser, Contrastive):
    """Encoder and head, and the contrast of the spans."""

    name = "cocondenser"
    reader = Contexts

    def forward(self, batch: Batch, generator: Generator | None = None) -> Losses:
        """Return L = L^c_mlm + L_mlm + L_co; the curve shows the last two as the decoder's loss.

        The batch comes from `prepare`.
        """
        losses, h_c = self.condensed(batch, generator)
        loss, numbers = added(losses, batch.share * batch.common)
        return loss + pulled(h_c, batch), numbers

    def vectors(self, view: View, generator: Generator | None) -> Tensor:
        """Return the late [CLS] states of the spans [B, D]."""
        return self.early_and_late(view, generator)[1]

    def contrast(self, vectors: Tensor) -> Tensor:
        """Return L_co of spans [N, D], 0-d; spans 2 i and 2 i + 1 are neighbours."""
        scores = (vectors @ vectors.T).fill_diagonal_(-torch.inf)
        neighbours = torch.arange(len(vectors), device=vectors.device) ^ 1
        return functional.cross_entropy(scores, neighbours)
