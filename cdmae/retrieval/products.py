"""Exact search by inner products that were computed quickly, but with rounding errors.

Matrix multiplication scores all passages of a block. The last bits of its products depend on the
shape of the block and on the device. Therefore, they only find candidates: every passage that could
be among a query's best K. Each candidate is scored again by faiss's product of one pair of vectors,
and ranked by that score, ties by row. The result depends neither on blocks, nor on threads, nor on
the device.

A float32 dot product, summed in any order, has an error of at most g = D 2^-24 |q| |p| (Higham,
Accuracy and Stability of Numerical Algorithms, section 3.1). Two products of the same pair,
computed in different ways, therefore differ by at most 2 g, the slack. A passage is a candidate if
its quick score is at least the lowest possible score of the K-th best passage minus the slack.

D dimensions; b queries, n passages, k columns, K depth.
"""

from __future__ import annotations

from collections.abc import Callable

import faiss
import numpy as np
import torch
from torch import Tensor

from cdmae.errors import InputError
from cdmae.retrieval.ranking import Best


def add_candidates(
    best: Best,
    begin: int,
    first: int,
    quick: Tensor,
    slack: np.ndarray,
    exact: Callable[[int, np.ndarray], np.ndarray],
) -> None:
    """Add the candidates of a block, which begins at row `first`, to queries from `begin` on.

    quick: the quick scores, float32 [b, n]. slack: the largest errors of the queries' scores [b].
    exact: a function that maps a query's row, 0 to b - 1, and columns [k] to exact scores [k].
    """
    least = best.least[begin : begin + len(quick)].astype(np.float64)
    if np.isneginf(least).any() and quick.shape[1] > best.depth:
        kth = quick.topk(best.depth, dim=1).values[:, -1].cpu().numpy()
        least = np.maximum(least, kth - slack)
    bound = np.nextafter((least - slack).astype(np.float32), -np.float32(np.inf))
    enters = quick >= torch.from_numpy(bound).to(quick.device)[:, None]
    rows, columns = (found.cpu().numpy() for found in enters.nonzero(as_tuple=True))
    edges = np.searchsorted(rows, np.arange(1, len(quick)))
    for row, own in enumerate(np.split(columns, edges)):
        if len(own):
            best.add(begin + row, first + own, exact(row, own))


def pairwise(
    queries: np.ndarray, passages: np.ndarray, row: int, columns: np.ndarray
) -> np.ndarray:
    """Multiply a query, a row of [b, D], by passages, `columns` [k] of [n, D], pair by pair."""
    scores = np.empty(len(columns), np.float32)
    arrays = map(faiss.swig_ptr, (scores, queries[row], passages, columns))
    faiss.fvec_inner_products_by_idx(*arrays, queries.shape[1], 1, len(columns))
    return scores


def slack(queries: np.ndarray, block: np.ndarray, first: int) -> np.ndarray:
    """Return the largest difference of two computations of a query's products, float64 [b].

    queries: [b, D]; block: passages [n, D], which begin at row `first`. Raises `InputError` for
    vectors that are not finite.
    """
    asked = _lengths(queries)
    if not np.isfinite(asked).all():
        raise InputError(
            "some query vectors are not finite: the model's training diverged; train it again with "
            "a lower learning_rate"
        )
    longest = _lengths(block).max(initial=0)
    if not np.isfinite(longest):
        raise InputError(
            f"the passage vectors from row {first} on are not finite: delete the vectors and "
            "encode the passages again"
        )
    # The 0.02 covers terms of higher order.
    return 2.02 * queries.shape[1] * 2.0**-24 * asked * longest


def _lengths(vectors: np.ndarray) -> np.ndarray:
    """Return upper bounds of the Euclidean norms, float64 [n]; inf or nan on float32 overflow."""
    squares = np.empty(len(vectors), np.float32)
    faiss.fvec_norms_L2sqr(*map(faiss.swig_ptr, (squares, vectors)), vectors.shape[1], len(vectors))
    lost = vectors.shape[1] * np.finfo(np.float32).tiny  # squares below it count as 0
    return np.sqrt(squares.astype(np.float64) + lost)
