"""Heads of retrievers, one file each: a head turns a text's states into its vectors.

A head's file is named as in the config, where the head is a class of `cdmae.config.stages`. It
has these parts:

- `NETWORK`: the kind of network that it reads (of `cdmae.models.architectures.KINDS`).
- ``layers(described)``: the linear layers that it adds to the network (`cdmae.models.linear`), if
  it adds any; described: the contents of ``cdmae.json``.
- ``write(folder, model, prompts)``: writes what other libraries need to load the folder.
- ``width(network)``: the dimensions of its vectors.
- ``vectors(network, packed, settings, generator=..., memory=...)``: the vectors of packed texts
  [B, width], in float32 or wider. A multi-vector head returns several rows per text. With gradient
  caching, a batch is encoded twice with the same weights, first without gradients. memory is then
  an empty dictionary, in which a head keeps intermediate results for the second pass.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType
from typing import Any

from cdmae.models.heads import dense, multi, own, sparse, unified
from cdmae.models.linear import Layers

HEADS: dict[str, ModuleType] = {
    "dense": dense,
    "sparse": sparse,
    "multi": multi,
    "unified": unified,
}


def of(name: str) -> ModuleType:
    """Return the module of a head."""
    return HEADS[name]


def described_by(described: Mapping[str, Any]) -> ModuleType:
    """Return the module that reads and writes a model with these keys of ``cdmae.json``."""
    return own if described["pieces"] == "own" else of(described["head"])


def layers(described: Mapping[str, Any]) -> Layers:
    """Return the linear layers that a model with these keys of ``cdmae.json`` has."""
    head = described_by(described)
    return head.layers(described) if hasattr(head, "layers") else {}
