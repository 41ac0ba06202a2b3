"""Exact search with multi-vectors: among all passages, or among another system's best.

The score of a query and a passage is sum_i max_j q_i . d_j (`cdmae.models.heads.multi`). One
compiled function computes it for one pair at a time, in float32, from vectors of passages that were
rounded to float16. The result therefore depends neither on blocks nor on threads. A search among
candidates that include the best passages has the same result as a search among all passages.

    Q queries, P passages, D dimensions, K depth, n pairs
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from cdmae.compiled import compiled
from cdmae.config.kinds._system import MOST_EXHAUSTIVE
from cdmae.errors import InputError
from cdmae.log import Progress
from cdmae.models.ragged import indices, starts_of
from cdmae.retrieval.entries import best_of
from cdmae.retrieval.multivectors import MultiVectors
from cdmae.runs import Run
from cdmae.threads import Threads

if TYPE_CHECKING:
    from cdmae.retrieval.vectors import Shard

QUERIES = 1024  # queries per block; memory holds their scores for all passages of a shard
PAIRS = 1 << 14  # pairs per call of the compiled function


# --- search ---------------------------------------------------------------------------------------


def search(queries: MultiVectors, shards: Sequence[Shard], depth: int, threads: int = 1) -> Run:
    """Find the `depth` passages with the greatest score for each query, ties by row."""
    count = sum(map(len, shards))
    if count > MOST_EXHAUSTIVE:
        raise InputError(
            f"{count:,} passages with a vector per word-piece are too many to score all; "
            f"allowed: up to {MOST_EXHAUSTIVE:,}, or candidates: SYSTEM, to score only its best"
        )
    passages = [np.empty(0, np.int32)] * len(queries)
    best = [np.empty(0, np.float32)] * len(queries)
    first = 0
    with (
        Threads(threads) as pool,
        Progress(count, unit="passages", label="search") as progress,
    ):
        for shard in shards:
            vectors = shard[:]
            rows = np.arange(first, first + len(vectors), dtype=np.int32)
            for begin in range(0, len(queries), QUERIES):
                some = queries[begin : begin + QUERIES]
                found = _every(some, vectors, pool)
                for query, own in enumerate(found, begin):
                    passages[query], best[query] = best_of(
                        np.concatenate([passages[query], rows]),
                        np.concatenate([best[query], own]),
                        depth,
                    )
            first += len(vectors)
            progress.advance(len(vectors))
    return Run.of(passages, best)


def _every(queries: MultiVectors, vectors: MultiVectors, pool: Threads) -> np.ndarray:
    """Score every query with every passage of a shard: float32 [Q, p]."""
    at_once = max(1, PAIRS // max(1, len(queries)))
    edges = [*range(0, len(vectors), at_once), len(vectors)]

    def block(first: int, last: int) -> np.ndarray:
        passage_of = np.repeat(np.arange(first, last), len(queries))
        query_of = np.tile(np.arange(len(queries)), last - first)
        return score(queries, vectors, query_of, passage_of).reshape(last - first, -1)

    found = pool.run(block, edges[:-1], edges[1:])
    return np.concatenate([np.empty((0, len(queries)), np.float32), *found]).T


def search_among(
    queries: MultiVectors,
    shards: Sequence[Shard],
    candidates: Run,
    depth: int,
    threads: int = 1,
) -> Run:
    """Rank the candidates of each query, ties by row, and keep the best `depth`."""
    query_of = np.repeat(np.arange(len(candidates)), np.diff(candidates.starts))
    order = np.argsort(candidates.passages, kind="stable")
    passage_of = candidates.passages[order].astype(np.int64)
    query_of = query_of[order]
    scores = np.empty(len(order), np.float32)
    edges = starts_of([len(shard) for shard in shards])
    cuts = np.searchsorted(passage_of, edges)
    with (
        Threads(threads) as pool,
        Progress(int(edges[-1]), unit="passages", label="score candidates") as progress,
    ):
        for shard, begin, (low, high) in zip(shards, edges, pairwise(cuts), strict=False):
            if low < high:
                vectors = shard[:]
                own = passage_of[low:high] - begin
                scores[low:high] = _pairs(queries, vectors, query_of[low:high], own, pool)
            progress.advance(len(shard))
    inside = slice(cuts[0], cuts[-1])
    return _ranked(query_of[inside], passage_of[inside], scores[inside], len(candidates), depth)


def _pairs(
    queries: MultiVectors,
    vectors: MultiVectors,
    query_of: np.ndarray,
    passage_of: np.ndarray,
    pool: Threads,
) -> np.ndarray:
    """Score pairs in all threads; see `score`."""
    edges = [*range(0, len(query_of), PAIRS), len(query_of)]

    def block(begin: int, end: int) -> np.ndarray:
        return score(queries, vectors, query_of[begin:end], passage_of[begin:end])

    return np.concatenate(pool.run(block, edges[:-1], edges[1:]))


def _ranked(
    query_of: np.ndarray, passages: np.ndarray, scores: np.ndarray, count: int, depth: int
) -> Run:
    """Rank scored pairs as a run over `count` queries."""
    order = np.lexsort([passages, -scores, query_of])
    lengths = np.bincount(query_of, minlength=count)
    kept = indices(starts_of(lengths)[:-1], np.minimum(lengths, depth))
    order = order[kept]
    starts = starts_of(np.minimum(lengths, depth))
    return Run(passages[order].astype(np.int32), scores[order], starts)


# --- pairs ----------------------------------------------------------------------------------------


def score(
    queries: MultiVectors, passages: MultiVectors, query_of: np.ndarray, passage_of: np.ndarray
) -> np.ndarray:
    """Return the scores of pairs, float32 [n].

    passage_of: the rows of passages, with equal rows next to each other, because each passage is
    then read only once.
    """
    scores = np.empty(len(query_of), np.float32)
    longest = int(np.diff(passages.starts).max(initial=0))
    function = _score_paired if queries.paired else _score
    function(
        np.ascontiguousarray(queries.values, np.float32),
        queries.starts,
        queries.pieces,
        passages.values.view(np.uint16),
        passages.starts,
        passages.pieces,
        query_of.astype(np.int64),
        passage_of.astype(np.int64),
        np.empty(longest * passages.values.shape[1], np.uint32),
        scores,
    )
    return scores


# Sums may be divided among the lanes of the processor, always in the same way.
LANES = {"reassoc", "contract", "nsz"}
LEAST = np.float32(np.finfo(np.float32).min)
HALF = np.float32(2.0**112)  # the ratio of a float16 to the float32 with its shifted bits


@compiled
def _widen(values: np.ndarray, first: int, last: int, memory: np.ndarray) -> None:
    """Convert rows of float16, given as uint16, to float32: [last - first, D] in `memory`."""
    width = values.shape[1]
    for row in range(first, last):
        start = (row - first) * width
        for column in range(width):
            bits = np.uint32(values[row, column])
            memory[start + column] = (bits & 0x7FFF) << 13 | (bits & 0x8000) << 16
    floats = memory[: (last - first) * width].view(np.float32)
    for index in range(len(floats)):
        floats[index] *= HALF


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
    memory: np.ndarray,
    scores: np.ndarray,
) -> None:
    """Compute the scores of pairs; a step handles two passage vectors and four query vectors."""
    width = queries.shape[1]
    passage = -1
    count = 0
    tokens = memory.view(np.float32).reshape(-1, width)
    for pair in range(len(scores)):
        if passage_of[pair] != passage:
            passage = passage_of[pair]
            count = starts[passage + 1] - starts[passage]
            _widen(values, starts[passage], starts[passage + 1], memory)
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
    memory: np.ndarray,
    scores: np.ndarray,
) -> None:
    """Compute the scores of pairs when only vectors of the same word-piece are compared."""
    width = queries.shape[1]
    passage = -1
    count = 0
    begin = 0
    tokens = memory.view(np.float32).reshape(-1, width)
    for pair in range(len(scores)):
        if passage_of[pair] != passage:
            passage = passage_of[pair]
            begin = starts[passage]
            count = starts[passage + 1] - begin
            _widen(values, begin, begin + count, memory)
        total = np.float32(0)
        for row in range(query_starts[query_of[pair]], query_starts[query_of[pair] + 1]):
            best = np.float32(LEAST)
            for token in range(count):
                if pieces[begin + token] == query_pieces[row]:
                    product = np.float32(0)
                    for column in range(width):
                        product += tokens[token, column] * queries[row, column]
                    best = max(best, product)
            if best > LEAST:
                total += best
        scores[pair] = total
