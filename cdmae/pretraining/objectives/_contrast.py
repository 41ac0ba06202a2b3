"""Contrastive losses over the vectors of the global batch, by gradient caching (Gao et al. 2021).

The loss needs all vectors together, but memory holds the activations of only one micro-batch. The
vectors are therefore computed in advance without activations, and all processes exchange them. Each
micro-batch then gets the loss's gradient with respect to its own vectors. Neither accumulation nor
the number of processes changes the negatives.

    B texts of a micro-batch, N texts of the global batch, D dimensions
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import torch
from torch import Generator, Tensor

from cdmae.pretraining.objectives._parts import Objective

if TYPE_CHECKING:
    from cdmae.pretraining.batches import Batch
    from cdmae.training.ranks import Ranks


class Contrastive(Objective):
    """An objective with a contrastive loss over the vectors of the side ``encoder``.

    A subclass has ``vectors(view, generator)``, which returns the vectors of a micro-batch [B, D],
    and ``contrast(vectors)``, which returns the loss, 0-d, of all vectors [N, D].
    """

    def prepare(
        self, batches: list[Batch], generators: list[Generator | None], group: Ranks
    ) -> list[Batch]:
        """Store the loss, and its gradient with respect to the vectors, in each micro-batch."""
        device = batches[0]["encoder"].inputs.ids.device
        vectors = torch.zeros(batches[0].whole, self.model.config.hidden_size, device=device)
        with torch.no_grad():
            for batch, generator in zip(batches, generators, strict=True):
                vectors[batch.range] = self.vectors(batch["encoder"], generator).float()
        group.add_up([vectors])  # each row is 0 in all processes except one
        with torch.autocast(device.type, enabled=False):
            loss = self.contrast(vectors.requires_grad_())
        (gradient,) = torch.autograd.grad(loss, vectors)
        common = loss.detach()
        return [replace(batch, common=common, pull=gradient[batch.range]) for batch in batches]


def pulled(vectors: Tensor, batch: Batch) -> Tensor:
    """Return a scalar with the value 0 and the gradient of the contrastive loss.

    vectors: [B, D], of a micro-batch from `Contrastive.prepare`.
    """
    product = (vectors.float() * batch.pull).sum()
    return product - product.detach()
