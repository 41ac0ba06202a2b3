"""Heads of retrievers, one file each: a head turns a text's states into its vectors.

A head's file is named as in the config, where the head is a class of `cdmae.config.heads`. It has
three parts. `NETWORK` is the kind of network that it reads (of `cdmae.models.architectures.KINDS`).
``width(network)`` returns the dimensions of its vectors. ``vectors(network, packed, settings,
generator=..., memory=...)`` returns the vectors of packed texts [B, width], in float32 or wider. A
multi-vector head returns several rows per text. With
gradient caching, a batch is encoded twice with the same weights, first without gradients. memory is
then an empty dictionary, in which a head keeps intermediate results for the second pass.
"""

from __future__ import annotations

from types import ModuleType

from cdmae.models.heads import dense, multi, sparse, unified

HEADS: dict[str, ModuleType] = {
    "dense": dense,
    "sparse": sparse,
    "multi": multi,
    "unified": unified,
}


def of(name: str) -> ModuleType:
    """Return the module of a head."""
    return HEADS[name]
