"""Exact search by inner product: every query against every passage, block by block, with a running best.

A block's scores are one matrix product; only the few above the floor, the lowest score that is still among a query's
best, are looked at again, so that the scan costs little more than the products. faiss spends five times that on a depth
of 1000. Memory is bounded by the result and one block, whatever the number of passages.

A score and its row make one int64 key, ``score bits << 32 | (2^32 - 1 - row)``: keys order by score and, at equal
scores, by row, so that ties need no care, not even where the depth cuts them. The same lines run with numpy on a CPU
and with torch on a GPU.

Q queries, P passages, D dimensions, K depth; b queries and n passages of a block.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from cdmae.errors import InputError
from cdmae.files import Run
from cdmae.progress import Progress

EMPTY = -(1 << 63)  # the key of nothing, below all others
LOW = (1 << 32) - 1
KEPT = 1 << 27  # keys held at a time, 1 GB: more queries are searched in several passes


def search(queries: np.ndarray, shards: list[np.ndarray], depth: int, *, threads: int = 1, device: str = "cpu") -> Run:
    """The `depth` passages of `shards` with the greatest inner product for each of `queries`, ties by row.

    queries: [Q, D]; shards: [p, D] each, memory-mapped or not, rows counted through. Products are float32 (on a GPU,
    too: no TF32). Every query gets min(depth, P) passages. Raises `InputError` for vectors that do not fit together or
    are not finite.
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
    engine = _Numpy(threads, len(queries)) if str(device) == "cpu" else _Torch(device)
    step = max(engine.queries, KEPT // depth)
    passes = range(0, len(queries), step)
    with Progress(total * len(passes), unit="passages", label="search") as progress, engine:
        for start in passes:
            best = _best(queries[start : start + step], shards, depth, engine, progress)
            cut = slice(start * depth, start * depth + best.size)
            run.passages[cut] = LOW - (best & LOW).ravel()
            run.scores[cut] = _floats(np, best).ravel()
    return run


def _check(queries: np.ndarray, shards: list[np.ndarray], depth: int) -> None:
    if depth < 1:
        raise InputError(f"the search depth is {depth}; allowed: from 1")
    for shard in shards:
        if shard.ndim != 2 or queries.ndim != 2 or shard.shape[1] != queries.shape[1]:
            raise InputError(
                f"the passages' vectors have the shape {list(shard.shape)} and the queries' {list(queries.shape)}:"
                " they are not from the same model"
            )
    if not np.isfinite(queries).all():
        raise InputError("the vectors of some queries are not finite: the model has diverged")


def _best(queries: np.ndarray, shards: list[np.ndarray], depth: int, engine: Any, progress: Progress) -> np.ndarray:
    """The keys of the best passages [Q, K], in order."""
    placed = engine.place(queries)
    cuts = [slice(a, a + engine.queries) for a in range(0, len(queries), engine.queries)]
    best = engine.xp.full((len(queries), depth), EMPTY)
    floor = engine.place(np.full((len(queries), 1), -np.inf))
    for row, block in _blocks(shards, engine.passages):
        passages = engine.place(block)

        def merge(cut: slice, row: int = row, passages: Any = passages) -> None:
            """Let the block's passages compete for the places of the queries in `cut`."""
            _merge(best[cut], floor[cut], engine.product(placed[cut], passages), row, engine)

        engine.each(merge, cuts)
        progress.advance(len(block))
    return engine.ordered(best)


def _blocks(shards: list[np.ndarray], size: int) -> Iterator[tuple[int, np.ndarray]]:
    first = 0
    for shard in shards:
        for start in range(0, len(shard), size):
            block = shard[start : start + size]
            if not np.isfinite(block).all():
                raise InputError(f"the vectors of passages from row {first + start} on are not finite: delete them")
            yield first + start, block
        first += len(shard)


def _merge(best: Any, floor: Any, scores: Any, row: int, engine: Any) -> None:
    """Update the keys `best` [b, K] and the lowest score that would still enter, `floor` [b, 1], by `scores` [b, n]."""
    xp, (queries, count), depth = engine.xp, scores.shape, best.shape[1]
    if row == 0 and count > depth:
        floor[:] = engine.least(engine.largest(scores, depth))
    hits = xp.where((scores >= floor).reshape(-1))[0]
    if not len(hits):
        return
    query, column = hits // count, hits % count
    counts = xp.bincount(query, minlength=queries)
    before = xp.cumsum(counts, 0) - counts
    entering = xp.full((queries, int(counts.max())), EMPTY)
    entering[query, xp.arange(len(hits)) - before[query]] = _keys(xp, scores.reshape(-1)[hits], row + column)
    best[:] = engine.largest(xp.concatenate([best, entering], 1), depth)
    lowest = engine.least(best)
    above = xp.nextafter(_floats(xp, lowest), xp.full_like(floor, np.inf))  # rows ascend: an equal score comes too late
    floor[:] = xp.where(lowest == EMPTY, -np.inf, above)


def _keys(xp: Any, scores: Any, rows: Any) -> Any:
    bits = xp.asarray((scores + 0.0).view(xp.int32), dtype=xp.int64)  # + 0.0 turns -0.0 into 0.0
    bits = xp.where(bits < 0, bits ^ 0x7FFFFFFF, bits)  # floats order like their bits, negative ones the other way
    return bits * (LOW + 1) + (LOW - rows)


def _floats(xp: Any, keys: Any) -> Any:
    bits = keys >> 32
    bits = xp.where(bits < 0, bits ^ 0x7FFFFFFF, bits)
    return xp.asarray(bits, dtype=xp.int32).view(xp.float32)


# --- where it runs ---------------------------------------------------------------------------------------------------


class _Numpy:
    """Blocks on the CPU: one thread per block of queries, or the threads of the matrix product if queries are few."""

    xp = np
    queries, passages = 256, 8192  # 8 MB of scores: they stay in the cache between product and comparison

    def __init__(self, threads: int, queries: int) -> None:
        self._threads, self._spread = threads, queries >= threads * self.queries

    def __enter__(self) -> None:
        from threadpoolctl import threadpool_limits

        self._limits = threadpool_limits(1 if self._spread else self._threads, "blas")
        self._pool = ThreadPoolExecutor(self._threads)

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown(cancel_futures=True)
        self._limits.restore_original_limits()

    def each(self, function: Any, cuts: list[slice]) -> None:
        for _ in self._pool.map(function, cuts) if self._spread else map(function, cuts):
            pass

    @staticmethod
    def place(array: np.ndarray) -> np.ndarray:
        return np.ascontiguousarray(array, np.float32)

    @staticmethod
    def product(queries: np.ndarray, passages: np.ndarray) -> np.ndarray:
        return queries @ passages.T

    @staticmethod
    def largest(values: np.ndarray, count: int) -> np.ndarray:
        return np.partition(values, values.shape[1] - count, axis=1)[:, -count:]

    @staticmethod
    def least(values: np.ndarray) -> np.ndarray:
        return values.min(1, keepdims=True)

    @staticmethod
    def ordered(values: np.ndarray) -> np.ndarray:
        return np.sort(values, axis=1)[:, ::-1]


class _Torch:
    """Blocks on a GPU."""

    queries, passages = 2048, 1 << 17  # 1 GB of scores

    def __init__(self, device: Any) -> None:
        import torch

        self.xp, self._device = torch, torch.device(device)

    def __enter__(self) -> None:
        self._precision = self.xp.get_float32_matmul_precision()
        self.xp.set_float32_matmul_precision("highest")
        self._device.__enter__()

    def __exit__(self, *error: Any) -> None:
        self._device.__exit__(*error)
        self.xp.set_float32_matmul_precision(self._precision)

    @staticmethod
    def each(function: Any, cuts: list[slice]) -> None:
        for cut in cuts:
            function(cut)

    def place(self, array: np.ndarray) -> Any:
        return self.xp.from_numpy(np.array(array, np.float32)).to(self._device)

    @staticmethod
    def product(queries: Any, passages: Any) -> Any:
        return queries @ passages.T

    @staticmethod
    def largest(values: Any, count: int) -> Any:
        return values.topk(count, sorted=False).values

    def least(self, values: Any) -> Any:
        return self.xp.amin(values, 1, keepdim=True)

    @staticmethod
    def ordered(values: Any) -> np.ndarray:
        return values.sort(descending=True).values.cpu().numpy()
