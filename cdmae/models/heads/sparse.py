"""The sparse head: a weight for every word-piece of the vocabulary (SPLADE, Formal et al. 2021).

w_j = max_i log(1 + ReLU(z_ij)), where z_ij is the logit of word-piece j at position i by the
language-model head (SPLADE v2, equation 6). All positions count, special tokens included. Most
weights of a trained model are 0.

The logits of all positions are never in memory together. They are computed for a few texts at a
time, and only each word-piece's largest logit and its row are kept. Its derivative has one entry
per positive weight, so the backward pass multiplies sparse matrices and costs a fraction of the
forward pass.

    S  rows        B  texts        n  rows of the longest text        E  width of the head's states
    V  word-pieces
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Generator, Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional

from cdmae.files import write_json
from cdmae.models import architectures, transformer
from cdmae.models.packed import Layout, Packed

NETWORK = "encoder"
# logits computed at a time: few enough for a CPU's cache, many enough to keep a GPU busy
LOGITS_AT_ONCE = {"cpu": 1 << 20, "cuda": 1 << 27}
# the module's name in sentence-transformers 5, which version 6 also accepts
MODULES = "sentence_transformers.sparse_encoder.models"


def width(network: nn.Module) -> int:
    """Return the number of word-pieces V."""
    return network.config.vocab_size


def vectors(
    network: nn.Module, packed: Packed, settings: object, *, generator: Generator | None = None
) -> Tensor:
    """Return the weights of texts, [B, V]; this head has no settings."""
    del settings
    states = transformer.hidden_states(network.base_model, packed, generator=generator)
    head = architectures.head(network)
    states = head.transform(states)
    # bf16 is for products, not for losses.
    states = states.to(torch.promote_types(states.dtype, torch.float32))
    rows = _rows(packed.layout)
    return _Weights.apply(states, head.output.weight, head.bias, rows, torch.is_grad_enabled())


def _rows(layout: Layout) -> Tensor:
    """Return the rows of each text, int64 [B, n]; a shorter text repeats its last row."""
    starts = layout.starts.long()
    last = starts.diff()[:, None] - 1
    positions = torch.arange(layout.longest, device=starts.device)
    return starts[:-1, None] + torch.minimum(positions, last)


class _Weights(torch.autograd.Function):
    """The maximum of log(1 + ReLU(logit)) over a text's rows, without storing the logits."""

    @staticmethod
    def forward(
        ctx: Any, states: Tensor, matrix: Tensor, bias: Tensor, rows: Tensor, learning: bool
    ) -> Tensor:
        device = states.device.type
        product = states.dtype
        if torch.is_autocast_enabled(device):
            product = torch.get_autocast_dtype(device)
        texts, longest = rows.shape
        words = len(matrix)
        weights = states.new_empty(texts, words)
        best = rows.new_empty(texts, words) if learning else None
        with torch.autocast(device, enabled=False):
            narrow = states.to(product)
            output = matrix.to(product)
            offset = bias.to(product)
            at_once = max(1, LOGITS_AT_ONCE[device] // (longest * words))
            for first in range(0, texts, at_once):
                own = rows[first : first + at_once]
                logits = functional.linear(narrow[own], output, offset)  # [b, n, V]
                if learning:
                    largest, position = logits.max(dim=1)
                    best[first : first + at_once] = own.gather(1, position)
                else:
                    largest = logits.amax(dim=1)
                weights[first : first + at_once] = largest
            weights.relu_().log1p_()
        if learning:
            ctx.save_for_backward(states, matrix, weights, best)
        return weights

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        states, matrix, weights, best = ctx.saved_tensors
        # log(1 + z) has the derivative 1 / (1 + z), which is exp(-w).
        slopes = torch.where(weights > 0, gradient * torch.exp(-weights), 0)
        text, piece = slopes.nonzero(as_tuple=True)
        slope = slopes[text, piece]
        of_logits = torch.sparse_coo_tensor(
            torch.stack([piece, best[text, piece]]),
            slope,
            (len(matrix), len(states)),
            check_invariants=False,
        )
        of_states = torch.sparse.mm(of_logits.t(), matrix)
        of_matrix = torch.sparse.mm(of_logits, states)
        return of_states, of_matrix, slopes.sum(0), None, None


def write_modules(folder: Path, *, width: int, longest: int, prompts: Mapping[str, str]) -> None:
    """Write the files that sentence-transformers' `SparseEncoder` needs to load the folder.

    Versions 5 and 6 compute the same vectors from these files.
    """
    parts = [("", "MLMTransformer"), ("1_SpladePooling", "SpladePooling")]
    modules = [
        {"idx": index, "name": str(index), "path": path, "type": f"{MODULES}.{name}"}
        for index, (path, name) in enumerate(parts)
    ]
    pooling = {
        "pooling_strategy": "max",
        "activation_function": "relu",
        "word_embedding_dimension": width,
    }
    described = {
        "model_type": "SparseEncoder",
        "similarity_fn_name": "dot",
        "prompts": {"query": "", "document": "", **prompts},
        "default_prompt_name": None,
    }
    (folder / "1_SpladePooling").mkdir()
    write_json(folder / "modules.json", modules)
    write_json(folder / "1_SpladePooling" / "config.json", pooling)
    lengths = {"max_seq_length": longest, "do_lower_case": False}
    write_json(folder / "sentence_bert_config.json", lengths)
    write_json(folder / "config_sentence_transformers.json", described)
