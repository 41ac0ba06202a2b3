"""coCondenser (Gao and Callan 2022): Condenser, with a contrastive loss between spans by [CLS].

Two neighbouring spans of each passage. The vector of a span must score its neighbour above all
other spans of the global batch: L_co = -log exp(h_1 . h_2) / sum over other spans of exp(h_1 . h),
the mean over spans.

The loss reads all vectors at once, but the memory holds the activations of one micro-batch only.
The vectors are therefore computed beforehand without activations, and all processes exchange them.
Each micro-batch then gets the loss's gradient at its own vectors (gradient caching, Gao et al.
2021). Neither accumulation nor the number of processes changes the negatives.

    B spans of a micro-batch, N spans of the global batch, D dimensions
"""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Generator, Tensor
from torch.nn import functional

from cdmae import masking
from cdmae.config.encoders import Pretraining
from cdmae.pretraining.batches import Batch
from cdmae.pretraining.objectives._parts import added
from cdmae.pretraining.objectives.condenser import Condenser
from cdmae.training.ranks import Ranks


class CoCondenser(Condenser):
    """Encoder and head, and the contrast of the spans."""

    name = "cocondenser"

    @staticmethod
    def sides(settings: Pretraining, unit: str) -> dict[str, masking.Side]:
        """Return the encoder's masks, for two spans per passage."""
        return {"encoder": replace(masking.encoder_side(settings, unit), spans=2)}

    def prepare(
        self, batches: list[Batch], generators: list[Generator | None], group: Ranks
    ) -> list[Batch]:
        """Add the global batch's contrastive loss, and its gradient at [CLS], to micro-batches."""
        own = self.model.get_input_embeddings().weight
        vectors = own.new_zeros(
            batches[0].whole, self.model.config.hidden_size, dtype=torch.float32
        )
        with torch.no_grad():
            for batch, generator in zip(batches, generators, strict=True):
                _, h_c, _ = self.early_and_late(batch["encoder"], generator)
                vectors[batch.range] = h_c.float()
        group.add_up([vectors])  # each row is 0 in every process but one
        with torch.autocast(vectors.device.type, enabled=False):
            loss = contrast(vectors.requires_grad_())
        (gradient,) = torch.autograd.grad(loss, vectors)
        return [
            replace(batch, common=loss.detach(), pull=gradient[batch.range]) for batch in batches
        ]

    def forward(
        self, batch: Batch, generator: Generator | None = None
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """Return L = L^c_mlm + L_mlm + L_co; the curve shows the last two as the decoder's loss.

        The batch comes from `prepare`.
        """
        losses, h_c = self.condensed(batch, generator)
        loss, numbers = added(losses, batch.share * batch.common)
        # It has the gradient of the contrastive loss; its value has no meaning.
        pulled = (h_c.float() * batch.pull).sum()
        return loss + (pulled - pulled.detach()), numbers


def contrast(vectors: Tensor) -> Tensor:
    """Return L_co of spans [N, D], 0-d; spans 2 i and 2 i + 1 are neighbours."""
    scores = (vectors @ vectors.T).fill_diagonal_(-torch.inf)
    return functional.cross_entropy(scores, torch.arange(len(vectors), device=vectors.device) ^ 1)
