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

import numpy as np
import torch
from safetensors.torch import load_file
from scipy import sparse
from torch import Generator, Tensor, nn
from torch.nn import functional

from cdmae.errors import InputError
from cdmae.files import remedy, write_json
from cdmae.models import networks, transformer
from cdmae.models.packed import Packed
from cdmae.models.ragged import Ragged

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


def start(network: nn.Module, seed: int) -> None:
    """Add a layer with new weights from N(0, initializer_range), as in BERT."""
    drawn = torch.randn(
        1, network.config.hidden_size, generator=torch.Generator().manual_seed(seed)
    )
    spread = getattr(network.config, "initializer_range", 0.02)
    _attach(network, drawn * spread, torch.zeros(1))


def write(folder: Path, network: nn.Module) -> None:
    """Write the layer into a folder below a model's; no other library reads it."""
    layer = getattr(network, LAYER)
    (folder / FOLDER).mkdir()
    sizes = {"in_features": layer.in_features, "out_features": 1, "bias": True}
    write_json(folder / FOLDER / "config.json", sizes)
    stored = {name: weight.detach().cpu() for name, weight in layer.state_dict().items()}
    networks.write_tensors(folder / FOLDER, {f"linear.{name}": stored[name] for name in stored})


def load(network: nn.Module, folder: Path | str) -> None:
    """Add the layer that is stored in a trained model's folder."""
    path = Path(folder) / FOLDER / "model.safetensors"
    try:
        stored = load_file(path)
        weight = stored["linear.weight"]
        bias = stored["linear.bias"]
    except Exception as error:  # safetensors raises errors of its own
        raise InputError(f"{path} holds no layer of weights ({error}); {remedy(path)}") from None
    if weight.shape != (1, network.config.hidden_size) or bias.shape != (1,):
        raise InputError(
            f"{path} has a layer of the shape {list(weight.shape)} for an encoder of width "
            f"{network.config.hidden_size}; {remedy(path)}"
        )
    _attach(network, weight, bias)


def _attach(network: nn.Module, weight: Tensor, bias: Tensor) -> None:
    layer = nn.Linear(weight.shape[1], 1)
    layer.weight = nn.Parameter(weight.float())
    layer.bias = nn.Parameter(bias.float())
    setattr(network, LAYER, layer)
