"""The scores of pairs of multi-vectors: sum_i max_j q_i . d_j, or COIL's.

`cdmae.models.heads.multi` describes both.

A compiled function computes the score of one pair at a time, in float32, from vectors of passages
that were rounded to float16. The score does not depend on the other pairs.

    D dimensions, n pairs
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cdmae.compiled import compiled

if TYPE_CHECKING:
    from cdmae.retrieval.kinds.multi import MultiVectors


def score(
    queries: MultiVectors, passages: MultiVectors, query_of: np.ndarray, passage_of: np.ndarray
) -> np.ndarray:
    """Return the scores of pairs, float32 [n]; passages: float32, rounded to float16 before."""
    scores = np.empty(len(query_of), np.float32)
    function = _score_paired if queries.paired else _score
    function(
        np.ascontiguousarray(queries.values, np.float32),
        queries.starts,
        queries.pieces,
        passages.values,
        passages.starts,
        passages.pieces,
        query_of.astype(np.int64),
        passage_of.astype(np.int64),
        scores,
    )
    return scores


# Sums may be divided among the lanes of the processor, always in the same way.
LANES = {"reassoc", "contract", "nsz"}
LEAST = np.float32(np.finfo(np.float32).min)


@compiled(fastmath=LANES)
def _score(
    queries: np.ndarray,
    query_starts: np.ndarray,
    query_pieces: np.ndarray,
    values: np.ndarray,
    starts: np.ndarray,
    pieces: np.ndarray,
    query_of: np.ndarray,
    passage_of: np.ndarray,
    scores: np.ndarray,
) -> None:
    """Compute the scores of pairs; a step handles two passage vectors and four query vectors."""
    width = queries.shape[1]
    for pair in range(len(scores)):
        tokens = values[starts[passage_of[pair]] : starts[passage_of[pair] + 1]]
        count = len(tokens)
        first = query_starts[query_of[pair]]
        end = query_starts[query_of[pair] + 1]
        total = np.float32(0)
        for row in range(first, end, 4):
            row1 = min(row + 1, end - 1)
            row2 = min(row + 2, end - 1)
            row3 = min(row + 3, end - 1)
            best0 = best1 = best2 = best3 = np.float32(LEAST)
            for token in range(0, count, 2):
                other = min(token + 1, count - 1)
                a0 = a1 = a2 = a3 = np.float32(0)
                b0 = b1 = b2 = b3 = np.float32(0)
                for column in range(width):
                    a = tokens[token, column]
                    b = tokens[other, column]
                    a0 += a * queries[row, column]
                    a1 += a * queries[row1, column]
                    a2 += a * queries[row2, column]
                    a3 += a * queries[row3, column]
                    b0 += b * queries[row, column]
                    b1 += b * queries[row1, column]
                    b2 += b * queries[row2, column]
                    b3 += b * queries[row3, column]
                best0 = max(best0, a0, b0)
                best1 = max(best1, a1, b1)
                best2 = max(best2, a2, b2)
                best3 = max(best3, a3, b3)
            total += best0
            if row + 1 < end:
                total += best1
            if row + 2 < end:
                total += best2
            if row + 3 < end:
                total += best3
        scores[pair] = total


@compiled(fastmath=LANES)
def _score_paired(
    queries: np.ndarray,
    query_starts: np.ndarray,
    query_pieces: np.ndarray,
    values: np.ndarray,
    starts: np.ndarray,
    pieces: np.ndarray,
    query_of: np.ndarray,
    passage_of: np.ndarray,
    scores: np.ndarray,
) -> None:
    """Compute the scores of pairs when only vectors of the same word-piece are compared.

    A product below 0 counts as 0, except in the rows of [CLS] vectors, whose word-pieces are below
    0. They come first, in the same order for every text.
    """
    width = queries.shape[1]
    for pair in range(len(scores)):
        begin = starts[passage_of[pair]]
        end = starts[passage_of[pair] + 1]
        tokens = values[begin:end]
        total = np.float32(0)
        first = query_starts[query_of[pair]]
        for row in range(first, query_starts[query_of[pair] + 1]):
            if query_pieces[row] < 0:
                for column in range(width):
                    total += tokens[row - first, column] * queries[row, column]
                continue
            best = np.float32(0)
            for token in range(len(tokens)):
                if pieces[begin + token] == query_pieces[row]:
                    product = np.float32(0)
                    for column in range(width):
                        product += tokens[token, column] * queries[row, column]
                    best = max(best, product)
            total += best
        scores[pair] = total
