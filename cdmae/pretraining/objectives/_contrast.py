"""Contrastive losses over the vectors of the global batch, by gradient caching (Gao et al. 2021).

The loss needs all vectors together, but memory holds the activations of only one micro-batch. The
vectors are therefore computed in advance without activations, and all processes exchange them. Each
micro-batch then gets the loss's gradient with respect to its own vectors. Neither accumulation nor
the number of processes changes the negatives.

    B texts of a micro-batch, N texts of the global batch, D dimensions
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import torch
from torch import Generator, Tensor

if TYPE_CHECKING:
    from cdmae.pretraining.batches import Batch, View
    from cdmae.training.ranks import Ranks


def prepared(
    batches: list[Batch],
    generators: list[Generator | None],
    group: Ranks,
    *,
    encode: Callable[[View, Generator | None], Tensor],
    contrast: Callable[[Tensor], Tensor],
    width: int,
) -> list[Batch]:
    """Store in each micro-batch the contrastive loss, and its gradient with respect to the vectors.

    The loss is over the global batch. encode: returns the vectors [B, D] of the side ``encoder``.
    contrast: returns the loss, 0-d, of all vectors [N, D]. width: D.
    """
    device = batches[0]["encoder"].inputs.ids.device
    vectors = torch.zeros(batches[0].whole, width, device=device)
    with torch.no_grad():
        for batch, generator in zip(batches, generators, strict=True):
            vectors[batch.range] = encode(batch["encoder"], generator).float()
    group.add_up([vectors])  # each row is 0 in all processes except one
    with torch.autocast(vectors.device.type, enabled=False):
        loss = contrast(vectors.requires_grad_())
    (gradient,) = torch.autograd.grad(loss, vectors)
    return [replace(batch, common=loss.detach(), pull=gradient[batch.range]) for batch in batches]


def pulled(vectors: Tensor, batch: Batch) -> Tensor:
    """Return a scalar with the value 0 and the gradient of the contrastive loss.

    vectors: [B, D], of a micro-batch from `prepared`.
    """
    product = (vectors.float() * batch.pull).sum()
    return product - product.detach()
