"""Heads of retrievers, one file each: a head turns the states of a text into its vector.

A head's file is named as in the config, where the head is a class of `cdmae.config.heads`. It has
three parts. `NETWORK` is the kind of network that it reads (of `cdmae.models.architectures.KINDS`).
``width(network)`` returns the dimensions of its vectors. ``vectors(network, packed, settings,
generator=..., memory=...)`` returns the vectors of packed texts [B, width], in float32 or wider. A
multi-vector head returns several rows per text. memory: an empty dictionary for a batch that is
encoded twice with the same weights, first without gradients (gradient caching); a head keeps there
what need not be computed again.
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
