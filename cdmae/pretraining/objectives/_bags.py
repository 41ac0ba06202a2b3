"""Bags of words: which word-pieces a passage has, whatever their order and number, and the loss of predicting them.

B passages, V word-pieces
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from cdmae.pretraining.batches import View
from cdmae.pretraining.objectives._parts import passages_of


def bags(view: View, size: int) -> tuple[Tensor, Tensor]:
    """Tell which of `size` word-pieces each passage has, float32 0 or 1 [B, V], and how many it has in all [B, 1].

    view: the passages as they are; special tokens are in no bag. A passage without word-pieces counts as one.
    """
    passages, real = len(view.inputs), view.weights > 0
    of = torch.where(real, passages_of(view).index_select(0, view.masked), passages)  # filler into a row of its own
    bag = torch.zeros(passages + 1, size, device=of.device)
    bag[of, view.labels] = 1
    number = torch.zeros(passages + 1, device=of.device).index_add(0, of, real.float())
    return bag[:-1], number[:-1, None].clamp_min(1)


def loss(logits: Tensor, weights: Tensor) -> Tensor:
    """Sum over the bag -weight x log softmax(logits), for each passage: [B]; logits and weights [B, V]."""
    return -(weights * functional.log_softmax(logits.float(), dim=1)).sum(1)
