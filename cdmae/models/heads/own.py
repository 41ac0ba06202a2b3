"""Weights of a text's own word-pieces: uniCOIL (Lin and Ma 2021) and DeepCT (Dai and Callan 2019).

A linear layer scores each position's state: z_i = v . h_i + c. uniCOIL is COIL with one dimension,
as in Tevatron's model: a word-piece's weight is w_j = max_i ReLU(z_i) over its positions i, for
queries and for passages. DeepCT scores only the first word-piece of each word; the word's other
word-pieces have the same score. It is regressed on a target (`cdmae.finetuning.recall`), and a
query's weights are the counts of its word-pieces. [CLS], [SEP] and word-pieces that are not in the
text have the weight 0.

    R  rows without special tokens        F  rows that are scored        B  texts
    V  word-pieces        E  width
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from scipy import sparse
from torch import Generator, Tensor, nn
from torch.nn import functional

from cdmae.models import transformer
from cdmae.models.linear import Layer, Layers
from cdmae.models.packed import Packed
from cdmae.models.ragged import BARE, Ragged, content
from cdmae.tokens.prompts import FRAME

if TYPE_CHECKING:
    from cdmae.models.checkpoint import Model

NETWORK = "retriever"
LAYERS = {"weigh": Layer("1_Weights", 1)}


def layers(described: Mapping[str, Any]) -> Layers:
    """Return the layer that scores a position."""
    return LAYERS


def write(folder: Path, model: Model, prompts: Mapping[str, str]) -> None:
    """Write nothing: no other library reads the layer."""


def flagged(read: Ragged, begins: np.ndarray) -> Ragged:
    """Flag the word-pieces without a score of their own, for DeepCT.

    read: framed texts. begins: bool, whether a word-piece begins a word, without special tokens.
    """
    flags = np.full(len(read.values), BARE, np.uint8)
    flags[content(read.starts)] = np.where(begins, 0, BARE)
    flags[read.starts[:-1][read.lengths > FRAME] + 1] = 0  # a text's first
    return replace(read, flags=flags)


def scores(
    network: nn.Module, packed: Packed, *, generator: Generator | None = None
) -> tuple[Tensor, Tensor]:
    """Return the scores [F], float32, and their rows of the packed batch."""
    rows = _inside(packed)
    if packed.scored is not None:
        rows = packed.scored.index[: len(packed.scored.cells)]
    states = transformer.hidden_states(network, packed, generator=generator)
    found = network.weigh(states[rows])[:, 0]
    # bf16 is for products, not for losses.
    return found.to(torch.promote_types(found.dtype, torch.float32)), rows


def vectors(network: nn.Module, packed: Packed, *, generator: Generator | None = None) -> Tensor:
    """Return the weights of texts, [B, V]."""
    found, scored = scores(network, packed, generator=generator)
    rows = _inside(packed)
    begins = torch.zeros(packed.size, dtype=torch.bool, device=rows.device)
    begins[scored] = True
    found = found[begins[rows].cumsum(0) - 1]  # of the word to which a row belongs
    starts = packed.starts.long()
    texts = torch.arange(len(packed), device=starts.device).repeat_interleave(starts.diff() - 2)
    words = network.config.vocab_size
    weights = found.new_zeros(len(packed) * words)
    cells = texts * words + packed.ids[rows]
    weights = weights.scatter_reduce(0, cells, functional.relu(found), "amax")
    return weights.view(-1, words)


def _inside(packed: Packed) -> Tensor:
    """Return the rows without special tokens, int64 [R]."""
    starts = packed.starts.long()
    inside = torch.ones(len(packed.cells), dtype=torch.bool, device=starts.device)
    inside[starts[:-1]] = False
    inside[starts[1:] - 1] = False
    return inside.nonzero()[:, 0]


def counts(read: Ragged, words: int) -> sparse.csr_array:
    """Count each word-piece of framed queries, without [CLS] and [SEP]: float32 [Q, V]."""
    kept = read.keep(content(read.starts))
    ones = np.ones(len(kept.values), np.float32)
    found = sparse.csr_array((ones, kept.values, kept.starts), shape=(len(kept), words))
    found.sum_duplicates()
    return found
