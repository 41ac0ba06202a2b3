"""The dense head: one vector per text, a pooled state of the encoder (section 3.5)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import Generator, Tensor, nn

from cdmae.models import metadata, transformer
from cdmae.models.packed import Packed

if TYPE_CHECKING:
    from cdmae.config.stages import Stage
    from cdmae.models.checkpoint import Model

NETWORK = "retriever"


def write(folder: Path, model: Model, prompts: Mapping[str, str]) -> None:
    """Write the files by which sentence-transformers computes the same vectors."""
    metadata.write_modules(
        folder,
        width=width(model.network),
        pooling=model.pooling,
        similarity=model.similarity,
        longest=model.lengths["passage_length"],
        prompts=prompts,
    )


def width(network: nn.Module) -> int:
    """Return the number of dimensions D of a vector."""
    return network.config.hidden_size


def vectors(
    network: nn.Module,
    packed: Packed,
    settings: Model | Stage,
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
