"""Gradient caching (Gao et al. 2021): the gradient of a large batch with the memory of one chunk.

The inputs of a loss are computed twice. The first pass, without gradients, computes all of them,
and then the gradient of the loss with respect to each. The second pass propagates these gradients
to the weights, chunk by chunk. The last chunk keeps its graph and is not computed again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from cdmae.training.ranks import Ranks
from cdmae.training.setup import UNSCALED, Scaler


@dataclass(frozen=True)
class Cached:
    """An input of a loss, [count, D], which a network computes in chunks.

    encode: a function that returns the rows of chunk i, the same at each call. cuts: the rows of
    each chunk; the chunks of all processes together cover 0 to `count` - 1.
    """

    encode: Callable[[int], Tensor]
    cuts: Sequence[Tensor]
    count: int


def cached_backward(
    inputs: Sequence[Cached],
    loss: Callable[..., tuple[Tensor, dict[str, Tensor]]],
    group: Ranks,
    scaler: Scaler = UNSCALED,
) -> dict[str, Tensor]:
    """Back-propagate the scaled loss of the inputs to the weights; return the loss's numbers.

    loss: a function that maps the inputs, one argument each, to the loss and numbers for the curve.
    The caller adds up the gradients of the processes.
    """
    wholes = []
    kept = []  # the last chunk of each input, with its graph
    for each in inputs:
        last = len(each.cuts) - 1
        parts = []
        for chunk in range(len(each.cuts)):
            with torch.set_grad_enabled(chunk == last):
                parts.append(each.encode(chunk))
        whole = parts[last].new_zeros(each.count, parts[last].shape[1])
        for rows, part in zip(each.cuts, parts, strict=True):
            whole[rows] = part.detach()
        group.add_up([whole])  # each row is 0 in every process but one
        wholes.append(whole.requires_grad_())
        kept.append(parts[last])
        del parts
    value, numbers = loss(*wholes)
    gradients = torch.autograd.grad(scaler.scale(value), wholes)
    for each, gradient in zip(inputs, gradients, strict=True):
        kept.pop(0).backward(gradient[each.cuts[-1]])  # frees the graph before the next is built
        for chunk in range(len(each.cuts) - 1):
            each.encode(chunk).backward(gradient[each.cuts[chunk]])
    return numbers
