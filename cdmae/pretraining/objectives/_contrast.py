"""Contrasts of all vectors of the global batch, by gradient caching (Gao et al. 2021).

The loss reads all vectors at once, but the memory holds the activations of one micro-batch only.
The vectors are therefore computed beforehand without activations, and all processes exchange them.
Each micro-batch then gets the loss's gradient at its own vectors. Neither accumulation nor the
number of processes changes the negatives.

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
    """Add the global batch's contrastive loss, and its gradient at the vectors, to micro-batches.

    encode: returns the vectors [B, D] of the side ``encoder``. contrast: the loss of all vectors
    [N, D], 0-d. width: D.
    """
    device = batches[0]["encoder"].inputs.ids.device
    vectors = torch.zeros(batches[0].whole, width, device=device)
    with torch.no_grad():
        for batch, generator in zip(batches, generators, strict=True):
            vectors[batch.range] = encode(batch["encoder"], generator).float()
    group.add_up([vectors])  # each row is 0 in every process but one
    with torch.autocast(vectors.device.type, enabled=False):
        loss = contrast(vectors.requires_grad_())
    (gradient,) = torch.autograd.grad(loss, vectors)
    return [replace(batch, common=loss.detach(), pull=gradient[batch.range]) for batch in batches]


def pulled(vectors: Tensor, batch: Batch) -> Tensor:
    """Return a number, 0-d, that has the contrast's gradient and the value 0.

    vectors: [B, D], of a micro-batch from `prepared`.
    """
    product = (vectors.float() * batch.pull).sum()
    return product - product.detach()
