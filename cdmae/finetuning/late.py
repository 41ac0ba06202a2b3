"""Scores of multi-vector retrievers in training: late interaction, with its own backward pass.

s(q, d) = sum_i max_j q_i . d_j (ColBERT, equation 3). With match equal, the maximum is over
vectors of the same word-piece, and at least 0, its value where a passage lacks the word-piece. The
rows of a [CLS] vector meet the same rows of the passage's, and their products are added as they are
(COIL, `cdmae.models.heads.multi`).

The products of all pairs of vectors are never held together: they are computed for some passages at
a time, and only the largest product and its row are kept. Its derivative has one entry per query
vector and passage, so the backward pass costs a fraction of the forward pass.

    T  vectors of all queries        U  vectors of all passages        D  dimensions
    B  queries        P  passages        n  vectors of the longest passage of a block
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional

from cdmae.models import sequences
from cdmae.models.largest import largest
from cdmae.models.packed import put
from cdmae.models.ragged import Ragged

# products computed at a time: fits the CPU's cache, or keeps a GPU busy
PRODUCTS_AT_ONCE = {"cpu": 1 << 18, "cuda": 1 << 27}


@dataclass(frozen=True)
class Texts:
    """The vectors of texts, [T, D], and their word-pieces, which are ragged."""

    vectors: Tensor
    pieces: Ragged

    def divided(self, count: int) -> tuple[Texts, Texts]:
        """Return the first `count` texts, and the others."""
        border = self.pieces.starts[count]
        first = self.pieces.cut(slice(0, count))
        others = self.pieces.cut(slice(count, len(self.pieces)))
        return Texts(self.vectors[:border], first), Texts(self.vectors[border:], others)


def scores(queries: Texts, passages: Texts, match: str) -> Tensor:
    """Return the score of each query with each passage, [B, P]."""
    device = queries.vectors.device
    blocks = list(_blocks(queries.pieces, passages.pieces, device, match))
    is_piece = put(queries.pieces.values >= 0, device)
    floor = torch.where(is_piece & (match == "equal"), 0.0, -torch.inf)
    maxima = _Maxima.apply(queries.vectors, passages.vectors, blocks, floor)  # [T, P]
    lengths = put(queries.pieces.lengths, device)
    return torch.segment_reduce(maxima, "sum", lengths=lengths, axis=0, unsafe=True)


@dataclass(frozen=True)
class _Block:
    """A block of passages with nearly equal lengths.

    columns: the passages' numbers [b]. rows: the rows of the passages' vectors, int64 [b, n]; a
    shorter passage repeats its last row. apart: bool [b, n, T], pairs of different word-pieces;
    None if all pairs count.
    """

    columns: Tensor
    rows: Tensor
    apart: Tensor | None


def _blocks(
    queries: Ragged, passages: Ragged, device: torch.device, match: str
) -> Iterator[_Block]:
    budget = PRODUCTS_AT_ONCE[device.type] // max(1, len(queries.values))
    lengths = passages.lengths
    for columns in sequences.chunks(lengths, budget):
        positions = np.arange(lengths[columns].max())
        last = lengths[columns][:, None] - 1
        rows = passages.starts[columns][:, None] + np.minimum(positions, last)
        apart = None
        if match == "equal":
            apart = put(passages.values[rows][..., None] != queries.values, device)
        yield _Block(put(columns, device), put(rows, device), apart)


class _Maxima(torch.autograd.Function):
    """The largest product of each query vector with the vectors of each passage, [T, P].

    floor: [T], for each query vector the product below which the result is 0.
    """

    @staticmethod
    def forward(
        ctx: Any, queries: Tensor, passages: Tensor, blocks: list[_Block], floor: Tensor
    ) -> Tensor:
        count = sum(len(block.columns) for block in blocks)
        maxima = queries.new_empty(count, len(queries))
        best = torch.empty(count, len(queries), dtype=torch.int64, device=queries.device)
        for block in blocks:
            tokens = passages[block.rows]  # [b, n, D]
            products = tokens.flatten(0, 1) @ queries.T
            products = products.view(*block.rows.shape, len(queries))  # [b, n, T]
            if block.apart is not None:
                products.masked_fill_(block.apart, -torch.inf)
            found, position = largest(products)
            maxima[block.columns] = found
            best[block.columns] = block.rows.gather(1, position.long())
        met = maxima > floor
        maxima = torch.where(met, maxima, 0)
        ctx.save_for_backward(queries, passages, best, met)
        return maxima.T.contiguous()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, None, None]:
        queries, passages, best, met = ctx.saved_tensors
        slopes = torch.where(met.T, gradient, 0)  # [T, P]
        of_queries = functional.embedding_bag(
            best.T.contiguous(), passages, per_sample_weights=slopes, mode="sum"
        )
        # The entries of each passage vector, one after another.
        rows, order = best.flatten().sort(stable=True)
        offsets = torch.searchsorted(rows, torch.arange(len(passages), device=rows.device))
        of_passages = functional.embedding_bag(
            order % len(queries),
            queries,
            offsets,
            per_sample_weights=slopes.T.flatten()[order],
            mode="sum",
        )
        return of_queries, of_passages, None, None
