"""The sparse head: a weight for every word-piece of the vocabulary (SPLADE, Formal et al. 2021).

With the setting `pieces: own` only the text's own word-pieces have a weight, see `own`. With
`query_weights: idf` queries have weights from a table, see `table`.

w_j = max_i log(1 + ReLU(z_ij)), where z_ij is the logit of word-piece j at position i by the
language-model head (SPLADE v2, equation 6). All positions count, special tokens included. Most
weights of a trained model are 0.

The logits of all positions are never held together: they are computed for some texts and some
word-pieces at a time, and only the largest logit and its position are kept. Its derivative has one
entry per positive weight, so the backward pass multiplies sparse matrices and costs a fraction of
the forward pass. The second pass of gradient caching reuses the first pass's positions: the logits,
the largest part of a step, are computed once.

    S  rows        B  texts        n  rows of the longest text        E  width of the head's states
    V  word-pieces
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Generator, Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional

from cdmae.models import architectures, metadata, transformer
from cdmae.models.heads import own
from cdmae.models.largest import counter, largest
from cdmae.models.packed import WIDTH, Layout, Packed

if TYPE_CHECKING:
    from cdmae.config.stages import Stage
    from cdmae.models.checkpoint import Model

NETWORK = "encoder"
# logits and word-pieces computed at a time: few for a CPU's cache, many for a GPU
LOGITS_AT_ONCE = {"cpu": 1 << 19, "cuda": 1 << 27}
WORDS_AT_ONCE = {"cpu": 2048, "cuda": 1 << 20}
# Positive numbers have the order of their bits, and integers are compared faster. Where all logits
# are negative, the weight is 0, whichever is the largest.
BITS = {torch.float32: torch.int32, torch.bfloat16: torch.int16, torch.float16: torch.int16}
# the module's name in sentence-transformers 5, which version 6 also accepts
MODULES = "sentence_transformers.sparse_encoder.models"
POOLING = "1_SpladePooling"


def width(network: nn.Module) -> int:
    """Return the number of word-pieces V."""
    return network.config.vocab_size


def vectors(
    network: nn.Module,
    packed: Packed,
    settings: Model | Stage,
    *,
    generator: Generator | None = None,
    memory: dict[str, Tensor] | None = None,
) -> Tensor:
    """Return the weights of texts, [B, V]; `cdmae.models.heads` states the memory."""
    if settings.pieces == "own":
        return own.vectors(network, packed, generator=generator)
    states = transformer.hidden_states(network.base_model, packed, generator=generator)
    return weights(network, states, packed, memory=memory)


def weights(
    network: nn.Module,
    states: Tensor,
    packed: Packed,
    *,
    memory: dict[str, Tensor] | None = None,
) -> Tensor:
    """Return the weights of texts, [B, V], from the encoder's states of their rows."""
    head = architectures.head(network)
    states = head.transform(states)
    # bf16 is for products, not for losses.
    states = states.to(torch.promote_types(states.dtype, torch.float32))
    rows = _rows(packed)
    learning = torch.is_grad_enabled()
    if not learning and memory is None:
        return _largest(states, head, rows, packed)[0]
    found = {} if memory is None else memory
    if not found:
        found["weights"], found["positions"] = _largest(states, head, rows, packed, positions=True)
    if not learning:
        return found["weights"]
    return _Weights.apply(states, head.output.weight, head.output.bias, rows, *found.values())


def _rows(layout: Layout) -> Tensor:
    """Return the rows of each text, int64 [B, n]; a shorter text repeats its last row."""
    starts = layout.starts.long()
    last = starts.diff()[:, None] - 1
    positions = torch.arange(layout.longest, device=starts.device)
    return starts[:-1, None] + torch.minimum(positions, last)


def _blocks(layout: Layout, words: int, device: str) -> Iterator[tuple[slice, int]]:
    """Divide texts into blocks; yield each block's texts and the rows of its longest text.

    words: the number of word-pieces with logits in memory at a time. On a GPU, reading the lengths
    would wait for all computations, so each block has the rows of the longest text of all.
    """
    lengths = [layout.longest] * len(layout)
    if device == "cpu":
        lengths = [-(-length // WIDTH) * WIDTH for length in layout.starts.diff().tolist()]
    first = 0
    while first < len(lengths):
        at_once = max(1, LOGITS_AT_ONCE[device] // (lengths[first] * words))
        texts = slice(first, first + at_once)
        yield texts, max(lengths[texts])
        first += at_once


@torch.no_grad()
def _largest(
    states: Tensor,
    head: architectures.Head,
    rows: Tensor,
    layout: Layout,
    *,
    positions: bool = False,
) -> tuple[Tensor, Tensor | None]:
    """Return the weights of texts, [B, V], and the first position of each, unsigned [B, V].

    states: [S, E], transformed by the head; rows: [B, n].
    """
    device = states.device.type
    product = transformer.product_type(states)
    texts, longest = rows.shape
    every = len(head.output.weight)
    at_once = min(every, WORDS_AT_ONCE[device])
    weights = states.new_empty(texts, every)
    kind = counter(longest)
    best = torch.empty(texts, every, dtype=kind, device=states.device) if positions else None
    with torch.autocast(device, enabled=False):
        narrow = states.to(product)
        output = head.output.weight.to(product)
        offset = head.output.bias.to(product)
        for some, width in _blocks(layout, at_once, device):
            block = narrow[rows[some, :width]]
            for first in range(0, every, at_once):
                words = slice(first, first + at_once)
                logits = functional.linear(block, output[words], offset[words])  # [b, n, v]
                bits = logits.view(BITS.get(product, product))
                if positions:
                    found, best[some, words] = largest(bits)
                else:
                    found = bits.amax(dim=1)
                weights[some, words] = found.view(product)
        return weights.relu_().log1p_(), best


class _Weights(torch.autograd.Function):
    """The maximum over a text's rows of log(1 + ReLU(logit)), computed by `_largest`."""

    @staticmethod
    def forward(
        ctx: Any,
        states: Tensor,
        matrix: Tensor,
        bias: Tensor,
        rows: Tensor,
        weights: Tensor,
        positions: Tensor,
    ) -> Tensor:
        ctx.save_for_backward(states, matrix, rows, weights, positions)
        return weights.detach()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        states, matrix, rows, weights, positions = ctx.saved_tensors
        # log(1 + z) has the derivative 1 / (1 + z), which is exp(-w).
        slopes = torch.where(weights > 0, gradient * torch.exp(-weights), 0)
        text, piece = slopes.nonzero(as_tuple=True)
        slope = slopes[text, piece]
        row = rows[text, positions[text, piece].long()]
        of_logits = torch.sparse_coo_tensor(
            torch.stack([piece, row]),
            slope,
            (len(matrix), len(states)),
            check_invariants=False,
        )
        of_states = torch.sparse.mm(of_logits.t(), matrix)
        of_matrix = torch.sparse.mm(of_logits, states)
        return of_states, of_matrix, slopes.sum(0), None, None, None


# --- files ----------------------------------------------------------------------------------------


def write(folder: Path, model: Model, prompts: Mapping[str, str]) -> None:
    """Write the files that sentence-transformers' `SparseEncoder` needs to load the folder.

    Versions 5 and 6 compute the same vectors from these files.
    """
    pooling = {
        "pooling_strategy": "max",
        "activation_function": "relu",
        "word_embedding_dimension": width(model.network),
    }
    modules = {"": f"{MODULES}.MLMTransformer", POOLING: f"{MODULES}.SpladePooling"}
    options = {
        "model_type": "SparseEncoder",
        "similarity_fn_name": "dot",
        "prompts": {"query": "", "document": "", **prompts},
        "default_prompt_name": None,
    }
    longest = model.lengths["passage_length"]
    metadata.write_layout(folder, modules, {POOLING: pooling}, longest, options)
