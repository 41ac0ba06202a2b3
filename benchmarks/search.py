"""Compare exact search by inner product with faiss's flat index and a sort by numpy.

    python -m benchmarks.search        100,000 passages, 200 queries, half a minute
    python -m benchmarks.search --passages 1000000 --queries 1000

Ours is faiss by blocks. The matrix product alone is the lower bound for all. Every form finds the
same passages, or the benchmark fails. Only ours ranks ties by row and needs no more memory for more
passages; the difference to faiss.knn is the cost of both.
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
    """Compute all scores and discard them."""
    for start in range(0, len(passages), BLOCK):
        queries @ passages[start : start + BLOCK].T


def argsort(queries: np.ndarray, passages: np.ndarray, depth: int) -> np.ndarray:
    """Sort all scores of each query."""
    rows = [
        np.argsort(-(queries[i : i + 50] @ passages.T), axis=1)[:, :depth]
        for i in range(0, len(queries), 50)
    ]
    return np.concatenate(rows)


def flat(queries: np.ndarray, passages: np.ndarray, depth: int) -> np.ndarray:
    """Search faiss's flat index."""
    index = faiss.IndexFlatIP(passages.shape[1])
    index.add(passages)
    return index.search(queries, depth)[1]


def knn(queries: np.ndarray, passages: np.ndarray, depth: int) -> np.ndarray:
    """Search with faiss.knn, which does not copy the vectors."""
    return faiss.knn(queries, passages, depth, metric=faiss.METRIC_INNER_PRODUCT)[1]


def ours(queries: np.ndarray, passages: np.ndarray, depth: int, threads: int) -> np.ndarray:
    """Search block by block, and score the best passages of each block again."""
    return search(queries, [passages], depth, threads=threads).passages.reshape(len(queries), -1)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--passages", type=int, default=100_000)
    parser.add_argument("--queries", type=int, default=200)
    parser.add_argument("--dimensions", type=int, default=768)
    parser.add_argument("--depth", type=int, default=1000)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    rng = np.random.default_rng(0)
    passages = rng.standard_normal((options.passages, options.dimensions), np.float32)
    queries = rng.standard_normal((options.queries, options.dimensions), np.float32)
    faiss.omp_set_num_threads(options.threads)
    forms: dict[str, Callable[[], Any]] = {
        "matrix product alone": lambda: product(queries, passages, options.depth),
        "numpy argsort": lambda: argsort(queries, passages, options.depth),
        "faiss.IndexFlatIP": lambda: flat(queries, passages, options.depth),
        "faiss.knn": lambda: knn(queries, passages, options.depth),
        "ours": lambda: ours(queries, passages, options.depth, options.threads),
    }
    rows = []
    seconds = {}
    passages_of = {}
    with threadpool_limits(options.threads, "blas"):
        for name, form in forms.items():
            wall = time.perf_counter()
            cpu = time.process_time()
            passages_of[name] = form()
            wall = time.perf_counter() - wall
            seconds[name] = time.process_time() - cpu
            rows.append({"": name, "seconds": f"{wall:.2f}", "cpu-s": f"{seconds[name]:.2f}"})
    for name in list(forms)[
        1:
    ]:  # products summed in another order may exchange neighbours, and those at the end
        same = np.mean(
            [
                len(np.intersect1d(a, b))
                for a, b in zip(passages_of[name], passages_of["ours"], strict=True)
            ]
        )
        assert same > 0.999 * min(options.depth, options.passages), (name, same)
    for row in rows:
        row["x ours"] = f"{seconds[row['']] / seconds['ours']:.1f}"
    size = (
        f"{options.passages:,} x {options.dimensions} passages, "
        f"depth {options.depth:,}, {options.threads} threads"
    )
    print(f"{options.queries:,} queries, {size}\n{table(rows)}")


if __name__ == "__main__":
    main()
