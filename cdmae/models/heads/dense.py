"""The dense head: one vector per text, a pooled state of the encoder (section 3.5)."""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Generator, Tensor, nn

from cdmae.models import transformer
from cdmae.models.packed import Packed

NETWORK = "retriever"


class Compared(Protocol):
    """The head's settings, from a stage or from a trained model."""

    pooling: str
    similarity: str


def width(network: nn.Module) -> int:
    """Return the number of dimensions D of a vector."""
    return network.config.hidden_size


def vectors(
    network: nn.Module,
    packed: Packed,
    settings: Compared,
    *,
    generator: Generator | None = None,
    memory: dict[str, Tensor] | None = None,
) -> Tensor:
    """Return the vectors of texts, [B, D]; a second pass computes everything again."""
    del memory
    pooled = transformer.vectors(
        network, packed, settings.pooling, settings.similarity, generator=generator
    )
    # bf16 is for products, not for losses.
    return pooled.to(torch.promote_types(pooled.dtype, torch.float32))
