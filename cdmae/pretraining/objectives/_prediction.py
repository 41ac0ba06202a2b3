"""The language-model head: cross-entropy and largest logits without storing all logits.

    B passages, S rows, M masked rows, V word-pieces, D dimensions

Logits of every position of the paper's batch would need 75 GB. Here they are computed for a few
rows at a time and replaced immediately by their gradient. None is kept for the backward pass or
computed twice.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional

from cdmae.models.architectures import Head
from cdmae.models.attention import Grid
from cdmae.models.packed import Layout
from cdmae.models.transformer import product_type

LOGITS_AT_ONCE = {"cpu": 1 << 24, "cuda": 1 << 27}
ALIGNED = 32  # columns
# The number of word-pieces is rounded up to a multiple: BERT's 30,522 are not aligned for a GPU.
ROWS = {"cpu": 1, "cuda": 64}
TINY = torch.finfo(torch.float32).tiny
# In float16, the rows' weights are scaled to this sum. Their products with states and probabilities
# then neither vanish nor overflow: behind a LayerNorm, states stay below 60.
LIFTED = 1024.0


def predict(head: Head, states: Tensor, labels: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
    """Return the weighted sum of -log P(label | state), and each term -log P, without gradient [M].

    states: [M, D].
    """
    norm = head.norm
    states = head.activation(head.dense(states))
    states = functional.layer_norm(
        states.float(), norm.normalized_shape, norm.weight, norm.bias, norm.eps
    )
    return _CrossEntropy.apply(states, head.output.weight, head.output.bias, labels, weights)


class _CrossEntropy(torch.autograd.Function):
    """Loss and gradient in one pass; the bias is another column of the matrix.

    Adding the bias to the logits [m, V] would cost as much as the product.
    """

    @staticmethod
    def forward(
        ctx: Any, states: Tensor, matrix: Tensor, bias: Tensor, labels: Tensor, weights: Tensor
    ) -> Any:
        device = states.device.type
        product = product_type(states)
        words, width = matrix.shape
        probability = product
        shares = weights
        if product == torch.float16:
            probability = torch.float32  # float16 has none below 6e-8
            lift = LIFTED / weights.sum().clamp_min(1e-30)
            shares = weights * lift
        size = words + -words % ROWS[device]
        needs_gradient = any(ctx.needs_input_grad)
        losses = torch.empty_like(weights)
        of_states = torch.empty_like(states)
        of_matrix = states.new_zeros(width + ALIGNED, size)
        with torch.autocast(device, enabled=False):
            w = _widened(matrix, bias, product, size)
            # padding columns, without a word-piece: P = 0
            w[words:, width] = torch.finfo(product).min
            at_once = max(1, LOGITS_AT_ONCE[device] // size)
            for first in range(0, len(states), at_once):
                cut = slice(first, first + at_once)
                one = weights.new_ones(len(weights[cut]))
                logits = functional.linear(_widened(states[cut], one, product), w)
                p = logits.softmax(-1, dtype=probability)  # [m, V]
                flat = p.view(-1)
                index = labels[cut] + torch.arange(0, len(flat), size, device=flat.device)
                of_label = flat[index]
                # compute 1 - p as a sum, because bfloat16 rounds a p near 1 to 1
                others = flat.index_fill_(0, index, 0).view_as(p).sum(-1)
                losses[cut] = (others / of_label.float().clamp_min(TINY)).log1p()
                if needs_gradient:
                    # Except for the row's weight, p becomes d loss / d logits.
                    flat.index_copy_(0, index, -others)
                    p = p.to(product)
                    of_states[cut] = (p @ w)[:, :width] * weights[cut, None]
                    weighted = states[cut] * shares[cut, None]
                    of_matrix += _widened(weighted, shares[cut], product).t() @ p
        if product == torch.float16:
            of_matrix /= lift
        of_weights = of_matrix[:width, :words].t().contiguous()
        ctx.save_for_backward(of_states, of_weights, of_matrix[width, :words])
        ctx.mark_non_differentiable(losses)
        return torch.dot(losses, weights), losses

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
        return *(saved * gradient for saved in ctx.saved_tensors), None, None


def _widened(matrix: Tensor, column: Tensor, dtype: torch.dtype, rows: int = 0) -> Tensor:
    """Add a column to the matrix, then pad it with 0 to an aligned width and to `rows` rows."""
    count, width = matrix.shape
    wide = matrix.new_zeros(rows or count, width + ALIGNED, dtype=dtype)
    wide[:count, :width] = matrix
    wide[:count, width] = column
    return wide


def largest_logits(head: Head, states: Tensor, layout: Layout, skipped: Tensor) -> Tensor:
    """Return the largest logit of each word-piece over a passage's rows: [B, V].

    states: [S, D]. skipped: int64, rows that do not count; the logits of a passage without other
    rows are minus infinity. The result is computed for a few passages at a time. For the backward
    pass only the position of each maximum is kept, not the logits.
    """
    longest = layout.longest
    rows = Grid(layout, 1).sources
    seen = torch.zeros(len(rows), dtype=torch.bool, device=states.device)
    seen.index_fill_(0, layout.cells, True)
    seen.index_fill_(0, layout.cells.index_select(0, skipped), False)
    states = head.transform(states)
    at_once = max(1, LOGITS_AT_ONCE[states.device.type] // (longest * len(head.output.bias)))
    largest = []
    for first in range(0, len(layout), at_once):
        cut = slice(first * longest, (first + at_once) * longest)
        logits = functional.linear(
            states.index_select(0, rows[cut]), head.output.weight, head.output.bias
        )
        logits = logits.masked_fill(~seen[cut, None], -torch.inf)
        largest.append(logits.view(-1, longest, logits.shape[1]).max(dim=1).values)
    return torch.cat(largest)
