"""A dense and a sparse head on one encoder (UnifieR, Shen et al. 2023, KDD).

One forward pass of the encoder gives both representations of a text: a pooled state
(`cdmae.models.heads.dense`) and a weight for every word-piece (`cdmae.models.heads.sparse`). In
training, a text's vector has the V weights, followed by the D numbers of the pooled state.

    B  texts        V  word-pieces        D  width of the encoder
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Generator, Tensor, nn

from cdmae.models import transformer
from cdmae.models.heads import dense, sparse
from cdmae.models.packed import Packed

if TYPE_CHECKING:
    from cdmae.config.stages import Stage
    from cdmae.models.checkpoint import Model

NETWORK = "encoder"
write = sparse.write  # the model card has the lines that load the dense head


def width(network: nn.Module) -> int:
    """Return V + D."""
    return sparse.width(network) + dense.width(network)


def vectors(
    network: nn.Module,
    packed: Packed,
    settings: Model | Stage,
    *,
    generator: Generator | None = None,
    memory: dict[str, Tensor] | None = None,
) -> Tensor:
    """Return the vectors of texts, [B, V + D]; `cdmae.models.heads` states the memory."""
    states = transformer.hidden_states(network.base_model, packed, generator=generator)
    weights = sparse.weights(network, states, packed, memory=memory)
    pooled = transformer.pooled(states, packed, settings.pooling, settings.similarity)
    return torch.cat([weights, pooled.to(weights.dtype)], dim=1)
