"""Weights of a text's own word-pieces: uniCOIL (Lin and Ma 2021) and DeepCT (Dai and Callan 2019).

A linear layer scores each position's state: z_i = v . h_i + c. A word-piece's weight is w_j = max_i
ReLU(z_i) over its positions i, for queries and for passages. This is COIL with one dimension, and
Tevatron's uniCOIL model. [CLS], [SEP] and word-pieces that are not in the text have
the weight 0. DeepCT regresses z_i on a target instead (`cdmae.finetuning.recall`), and a query's
weights are the counts of its word-pieces.

    R  rows without special tokens        B  texts        V  word-pieces        E  width
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from scipy import sparse
from torch import Generator, Tensor, nn
from torch.nn import functional

from cdmae.models import linear, transformer
from cdmae.models.packed import Packed
from cdmae.models.ragged import Ragged

if TYPE_CHECKING:
    from transformers import PreTrainedModel

NETWORK = "retriever"
LAYER = "weigh"  # the network's attribute
LEFT_OUT = (f"{LAYER}.",)  # weights of the network that `networks.write` leaves out
FOLDER = "1_Weights"  # the layer's folder below a model's


def scores(
    network: nn.Module, packed: Packed, *, generator: Generator | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the score of each row, its text and its word-piece, [R] each; scores are float32."""
    starts = packed.layout.starts.long()
    count = len(packed.layout.cells)
    inside = torch.ones(count, dtype=torch.bool, device=starts.device)
    inside[starts[:-1]] = False
    inside[starts[1:] - 1] = False
    rows = inside.nonzero()[:, 0]
    texts = torch.arange(len(packed), device=starts.device).repeat_interleave(starts.diff())
    states = transformer.hidden_states(network, packed, generator=generator)
    found = getattr(network, LAYER)(states[rows])[:, 0]
    # bf16 is for products, not for losses.
    found = found.to(torch.promote_types(found.dtype, torch.float32))
    return found, texts[rows], packed.ids[rows]


def vectors(network: nn.Module, packed: Packed, *, generator: Generator | None = None) -> Tensor:
    """Return the weights of texts, [B, V]."""
    found, texts, pieces = scores(network, packed, generator=generator)
    words = network.config.vocab_size
    weights = found.new_zeros(len(packed) * words)
    cells = texts * words + pieces
    weights = weights.scatter_reduce(0, cells, functional.relu(found), "amax")
    return weights.view(-1, words)


def counts(read: Ragged, words: int) -> sparse.csr_array:
    """Count each word-piece of framed queries, without [CLS] and [SEP]: float32 [Q, V]."""
    inside = np.ones(len(read.values), bool)
    inside[read.starts[:-1]] = False
    inside[read.starts[1:] - 1] = False
    kept = read.keep(inside)
    ones = np.ones(len(kept.values), np.float32)
    found = sparse.csr_array((ones, kept.values, kept.starts), shape=(len(kept), words))
    found.sum_duplicates()
    return found


# --- the layer ------------------------------------------------------------------------------------


def start(network: PreTrainedModel, seed: int) -> None:
    """Add a layer with new weights."""
    draws = torch.Generator().manual_seed(seed)
    setattr(network, LAYER, linear.new(network.config, 1, draws))


def write(folder: Path, network: nn.Module) -> None:
    """Write the layer into a folder below a model's; no other library reads it."""
    linear.write(folder / FOLDER, getattr(network, LAYER))


def load(network: PreTrainedModel, folder: Path | str) -> None:
    """Add the layer that is stored in a trained model's folder."""
    setattr(network, LAYER, linear.read(Path(folder) / FOLDER, network.config.hidden_size))
