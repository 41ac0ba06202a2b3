"""Exact search by inner product: faiss scans the passages block by block, and a running best is kept.

faiss's products come from matrix multiplication, whose last bits depend on the shape of the block, and among equal
scores it keeps any. So faiss proposes and a fixed computation disposes: every passage of a block that could be among a
query's best K is scored again, by faiss's product of one pair of vectors, and ranked by that score, ties by row. What
is found depends neither on blocks nor on threads, nor on whether a CPU or a GPU searched.

Which passages could be? Summed in any order, a product of float32 vectors is off by at most g = D 2^-24 |q| |p|
[Higham, Accuracy and Stability of Numerical Algorithms, section 3.1], so the two scores of a pair differ by at most
2 g, the slack. A passage enters if its score by faiss is at most the slack below what the K-th best is sure to reach.
faiss is asked for some passages more than K, and for four times as many as long as the last one still enters: no tie is
missed. Where nearly all scores are equal, as after a collapsed training, that takes several scans instead of one.

On a CPU a scan by numpy with a floor per query took 0.8 s of the processor, not 2.1 s, for 200 queries, depth 1000 and
100,000 passages of 768 numbers: 2.6 times less, and 4.5 times at depth 100; for one query it took 1.6 times more. faiss
is here for the GPU and for being the same engine everywhere.

A score and its row make one int64 key, ``score bits << 32 | (2^32 - 1 - row)``: keys order by score and, at equal
scores, by row. Memory is bounded by the result and one block, whatever the number of passages.

Q queries, P passages, D dimensions, K depth; b queries and n passages of a block.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import faiss
import numpy as np

from cdmae.errors import InputError
from cdmae.log import Progress, say
from cdmae.retrieval.vectors import Made
from cdmae.runs import Run

EMPTY = -(1 << 63)  # the key of nothing, below all others
LOW = (1 << 32) - 1
KEPT = 1 << 27  # keys held at a time, 1 GB: more queries are searched in several passes
QUERIES, PASSAGES = 4096, 1 << 16  # of a block
GPU_MOST = 2048  # hits that faiss finds for a query on a GPU

Shards = Sequence[np.ndarray | Made]
Knn = Callable[[np.ndarray, np.ndarray, int], tuple[np.ndarray, np.ndarray]]  # [b, D], [n, D], k -> two of [b, k]


def search_together(
    queries: Sequence[np.ndarray], shards: Shards, depth: int, *, threads: int = 1, device: str = "cpu"
) -> list[Run]:
    """Search for several sets of queries [Q, D] in one go: a run for each, the same as if it were searched alone."""
    found = search(np.concatenate(queries), shards, depth, threads=threads, device=device)
    return found.split(map(len, queries))


def search(queries: np.ndarray, shards: Shards, depth: int, *, threads: int = 1, device: str = "cpu") -> Run:
    """The `depth` passages of `shards` with the greatest inner product for each of `queries`, ties by row.

    queries: [Q, D]; shards: [p, D] each, memory-mapped, made as they are read or in memory, rows counted through.
    Products are float32. Every query gets min(depth, P) passages. Raises `InputError` for vectors that do not fit
    together or are not finite.
    """
    total = sum(map(len, shards))
    _check(queries, shards, depth)
    depth = min(depth, total)
    run = Run(
        np.empty(len(queries) * depth, np.int32),
        np.empty(len(queries) * depth, np.float32),
        np.arange(len(queries) + 1, dtype=np.int64) * depth,
    )
    if not len(run.passages):
        return run
    queries, knn, step = np.ascontiguousarray(queries, np.float32), _knn(device, depth), max(1, KEPT // depth)
    passes = range(0, len(queries), step)
    with _threads(threads), Progress(total * len(passes), unit="passages", label="search") as progress:
        for start in passes:
            best = _best(queries[start : start + step], shards, depth, knn, progress)
            cut = slice(start * depth, start * depth + best.size)
            run.passages[cut] = LOW - (best & LOW).ravel()
            run.scores[cut] = _floats(best).ravel()
    return run


def _check(queries: np.ndarray, shards: Shards, depth: int) -> None:
    if depth < 1:
        raise InputError(f"the search depth is {depth}; allowed: from 1")
    for shard in shards:
        if shard.ndim != 2 or queries.ndim != 2 or shard.shape[1] != queries.shape[1]:
            raise InputError(
                f"the passages' vectors have the shape {list(shard.shape)} and the queries' {list(queries.shape)}:"
                " they are not from the same model"
            )


def _best(queries: np.ndarray, shards: Shards, depth: int, knn: Knn, progress: Progress) -> np.ndarray:
    """The keys of the best passages [Q, K], in order."""
    best = np.full((len(queries), depth), EMPTY)
    lengths = _lengths(queries)
    if not np.isfinite(lengths).all():
        raise InputError("the vectors of some queries are not finite: the model has diverged")
    for row, passages, longest in _blocks(shards):
        slack = 2.02 * queries.shape[1] * 2.0**-24 * lengths * longest  # .02 for the terms of higher order
        for start in range(0, len(queries), QUERIES):
            cut = slice(start, start + QUERIES)
            _merge(best[cut], queries[cut], passages, row, slack[cut], knn)
        progress.advance(len(passages))
    return np.sort(best, axis=1)[:, ::-1]


def _blocks(shards: Shards) -> Iterator[tuple[int, np.ndarray, float]]:
    """The first row, the vectors and the length of the longest, of each block."""
    first = 0
    for shard in shards:
        vectors = shard[:]
        for start in range(0, len(vectors), PASSAGES):
            block = np.ascontiguousarray(vectors[start : start + PASSAGES], np.float32)
            longest = _lengths(block).max()
            if not np.isfinite(longest):
                raise InputError(f"the vectors of passages from row {first + start} on are not finite: delete them")
            yield first + start, block, longest
        first += len(shard)


def _lengths(vectors: np.ndarray) -> np.ndarray:
    """At least the Euclidean lengths, float64 [n]: inf or nan where float32 cannot hold the square."""
    squares = np.empty(len(vectors), np.float32)
    faiss.fvec_norms_L2sqr(*map(faiss.swig_ptr, (squares, vectors)), vectors.shape[1], len(vectors))
    lost = vectors.shape[1] * np.finfo(np.float32).tiny  # squares below it count as 0
    return np.sqrt(squares.astype(np.float64) + lost)


def _merge(best: np.ndarray, queries: np.ndarray, passages: np.ndarray, row: int, slack: np.ndarray, knn: Knn) -> None:
    """Let a block's passages, the first of which is `row`, compete for the places in the keys `best` [b, K]."""
    depth = best.shape[1]
    lowest = best.min(1)
    sure = np.where(lowest == EMPTY, -np.inf, _floats(lowest))  # what the K-th best reaches at least
    left, count = np.arange(len(queries)), min(len(passages), _asked(depth))
    while len(left):
        scores, columns = knn(queries[left], passages, count)
        if count >= depth:
            sure[left] = np.maximum(sure[left], scores[:, depth - 1] - slack[left])
        enters = scores >= (sure - slack)[left, None]
        done = ~enters[:, -1] | (count == len(passages))
        columns = np.where(enters, columns, -1)[done, : enters[done].sum(1).max(initial=0)]  # scores descend
        keys = _keys(_products(queries[left[done]], passages, columns), row + columns)
        keys = np.concatenate([best[left[done]], np.where(columns < 0, EMPTY, keys)], axis=1)
        best[left[done]] = np.partition(keys, keys.shape[1] - depth, axis=1)[:, -depth:]
        left, count = left[~done], min(len(passages), 4 * count)


def _asked(depth: int) -> int:
    return depth + depth // 8 + 32


def _products(queries: np.ndarray, passages: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """The inner product of each query and its passages `columns` [b, k], pair by pair; -1 stands for none."""
    scores = np.empty(columns.shape, np.float32)
    columns = np.ascontiguousarray(columns)
    arrays = map(faiss.swig_ptr, (scores, queries, passages, columns))
    faiss.fvec_inner_products_by_idx(*arrays, queries.shape[1], *columns.shape)
    return scores


def _keys(scores: np.ndarray, rows: np.ndarray) -> np.ndarray:
    bits = (scores + 0.0).view(np.int32).astype(np.int64)  # + 0.0 turns -0.0 into 0.0
    bits = np.where(bits < 0, bits ^ 0x7FFFFFFF, bits)  # floats order like their bits, negative ones the other way
    return bits * (LOW + 1) + (LOW - rows)


def _floats(keys: np.ndarray) -> np.ndarray:
    bits = keys >> 32
    return np.where(bits < 0, bits ^ 0x7FFFFFFF, bits).astype(np.int32).view(np.float32)


# --- where faiss runs ------------------------------------------------------------------------------------------------


def _knn(device: str, depth: int) -> Knn:
    """The search of a block by faiss on `device` (cpu, cuda, cuda:1); on the CPU where it cannot, which is said."""

    def on_cpu(queries: np.ndarray, passages: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
        return faiss.knn(queries, passages, count, metric=faiss.METRIC_INNER_PRODUCT)

    def on_gpu(queries: np.ndarray, passages: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
        if count > GPU_MOST:  # many near-ties
            return on_cpu(queries, passages, count)
        metric = faiss.METRIC_INNER_PRODUCT
        return faiss.knn_gpu(resources, queries, passages, count, metric=metric, device=number)

    kind, _, index = device.partition(":")
    if kind == "cpu":
        return on_cpu
    if kind != "cuda" or not hasattr(faiss, "StandardGpuResources") or not faiss.get_num_gpus():
        say(f"search: faiss {faiss.__version__} finds no GPU that it can use (faiss-gpu does); the CPU searches")
        return on_cpu
    if _asked(depth) > GPU_MOST:
        say(f"search: on a GPU faiss finds {GPU_MOST:,} hits at most, too few for depth {depth:,}; the CPU searches")
        return on_cpu
    resources, number = faiss.StandardGpuResources(), int(index or 0)
    return on_gpu


@contextmanager
def _threads(count: int) -> Iterator[None]:
    before = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(count)
    try:
        yield
    finally:
        faiss.omp_set_num_threads(before)
