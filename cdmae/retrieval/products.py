"""Inner products of single pairs of vectors, and a bound on the error of other summations.

A float32 dot product, summed in any order, has an error of at most g = D 2^-24 |q| |p| (Higham,
Accuracy and Stability of Numerical Algorithms, section 3.1). Two products of the same pair,
computed in different ways, therefore differ by at most 2 g, the slack.

D dimensions; b queries, n passages, k columns.
"""

from __future__ import annotations

import faiss
import numpy as np

from cdmae.errors import InputError


def pairwise(queries: np.ndarray, passages: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Multiply each query by its passages `columns` [b, k], pair by pair; -1 means no passage."""
    scores = np.empty(columns.shape, np.float32)
    columns = np.ascontiguousarray(columns)
    arrays = map(faiss.swig_ptr, (scores, queries, passages, columns))
    faiss.fvec_inner_products_by_idx(*arrays, queries.shape[1], *columns.shape)
    return scores


def lengths_of_queries(vectors: np.ndarray) -> np.ndarray:
    """Return upper bounds of the Euclidean norms of queries, float64 [b]."""
    found = _lengths(vectors)
    if not np.isfinite(found).all():
        raise InputError(
            "some query vectors are not finite: the model's training diverged; train it again with "
            "a lower learning_rate"
        )
    return found


def longest(vectors: np.ndarray, first: int) -> float:
    """Return an upper bound of the norms of a block of passages, which begins at row `first`."""
    found = float(_lengths(vectors).max())
    if not np.isfinite(found):
        raise InputError(
            f"the passage vectors from row {first} on are not finite: delete the vectors and "
            "encode the passages again"
        )
    return found


def _lengths(vectors: np.ndarray) -> np.ndarray:
    """Return upper bounds of the Euclidean norms, float64 [n]; inf or nan on float32 overflow."""
    squares = np.empty(len(vectors), np.float32)
    faiss.fvec_norms_L2sqr(*map(faiss.swig_ptr, (squares, vectors)), vectors.shape[1], len(vectors))
    lost = vectors.shape[1] * np.finfo(np.float32).tiny  # squares below it count as 0
    return np.sqrt(squares.astype(np.float64) + lost)


def slack(dimensions: int, queries: np.ndarray, longest: float) -> np.ndarray:
    """Return the largest difference of two computations of a pair's product, float64 [b].

    queries: the norms of queries [b]; longest: the norm of the longest passage vector.
    """
    # The 0.02 covers terms of higher order.
    return 2.02 * dimensions * 2.0**-24 * queries * longest
