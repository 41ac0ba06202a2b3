"""Exact search by inner product: ours, which is faiss by blocks, beside faiss's flat index and a sort by numpy.

    python -m benchmarks.search                                     100,000 passages, 200 queries, half a minute
    python -m benchmarks.search --passages 1000000 --queries 1000

The matrix product alone is the floor for all of them. Every form finds the same passages, or the benchmark fails. Only
ours ranks ties by row and needs no more memory for more passages; what that costs is the difference to faiss.knn.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import faiss
import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.tables import table
from cdmae.retrieval.search import search

BLOCK = 8192


def product(queries: np.ndarray, passages: np.ndarray, depth: int) -> None:
    """All scores, thrown away."""
    for start in range(0, len(passages), BLOCK):
        queries @ passages[start : start + BLOCK].T


def argsort(queries: np.ndarray, passages: np.ndarray, depth: int) -> np.ndarray:
    """All scores of a query, sorted."""
    rows = [np.argsort(-(queries[i : i + 50] @ passages.T), axis=1)[:, :depth] for i in range(0, len(queries), 50)]
    return np.concatenate(rows)


def flat(queries: np.ndarray, passages: np.ndarray, depth: int) -> np.ndarray:
    """What faiss calls a flat index."""
    index = faiss.IndexFlatIP(passages.shape[1])
    index.add(passages)
    return index.search(queries, depth)[1]


def knn(queries: np.ndarray, passages: np.ndarray, depth: int) -> np.ndarray:
    """The same without a copy of the vectors."""
    return faiss.knn(queries, passages, depth, metric=faiss.METRIC_INNER_PRODUCT)[1]


def ours(queries: np.ndarray, passages: np.ndarray, depth: int, threads: int) -> np.ndarray:
    """Block by block, and the best of each scored again."""
    return search(queries, [passages], depth, threads=threads).passages.reshape(len(queries), -1)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--passages", type=int, default=100_000)
    parser.add_argument("--queries", type=int, default=200)
    parser.add_argument("--dimensions", type=int, default=768)
    parser.add_argument("--depth", type=int, default=1000)
    parser.add_argument("--threads", type=int, default=1)
    given = parser.parse_args()
    rng = np.random.default_rng(0)
    passages = rng.standard_normal((given.passages, given.dimensions), np.float32)
    queries = rng.standard_normal((given.queries, given.dimensions), np.float32)
    faiss.omp_set_num_threads(given.threads)
    forms: dict[str, Callable[[], Any]] = {
        "matrix product alone": lambda: product(queries, passages, given.depth),
        "numpy argsort": lambda: argsort(queries, passages, given.depth),
        "faiss.IndexFlatIP": lambda: flat(queries, passages, given.depth),
        "faiss.knn": lambda: knn(queries, passages, given.depth),
        "ours": lambda: ours(queries, passages, given.depth, given.threads),
    }
    rows, taken, found = [], {}, {}
    with threadpool_limits(given.threads, "blas"):
        for name, form in forms.items():
            wall, cpu = time.perf_counter(), time.process_time()
            found[name] = form()
            wall, taken[name] = time.perf_counter() - wall, time.process_time() - cpu
            rows.append({"": name, "seconds": f"{wall:.2f}", "cpu-s": f"{taken[name]:.2f}"})
    for name in list(forms)[1:]:  # products summed in another order may exchange neighbours, and those at the end
        same = np.mean([len(np.intersect1d(a, b)) for a, b in zip(found[name], found["ours"], strict=True)])
        assert same > 0.999 * min(given.depth, given.passages), (name, same)
    for row in rows:
        row["x ours"] = f"{taken[row['']] / taken['ours']:.1f}"
    print(
        f"{given.queries:,} queries, {given.passages:,} x {given.dimensions} passages, depth {given.depth:,}, ", end=""
    )
    print(f"{given.threads} threads\n{table(rows)}")


if __name__ == "__main__":
    main()
