"""Compare exact search by inner product with faiss's flat index and a sort by numpy.

    python -m benchmarks.search        100,000 passages, 200 queries, half a minute
    python -m benchmarks.search --passages 1000000 --queries 1000
    python -m benchmarks.search --multi --passages 5000 --queries 20 --dimensions 128
        MaxSim of multi-vectors with 1,000 candidates per query

Ours is faiss by blocks. The matrix product alone is the lower bound for all. Every form finds the
same passages, or the benchmark fails. Only ours ranks ties by row and needs no more memory for more
passages; the difference to faiss.knn is the cost of both.

With ``--multi``, a query has 32 vectors and a passage 20 to 120. The peer is sentence-transformers'
`maxsim`, with each query's candidates as a list, or as rows of a padded tensor of all passages,
which is made before the time is taken. Every form computes the same scores to 1e-5, or the
benchmark fails.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import faiss
import numpy as np
import torch
from sentence_transformers.util import maxsim
from threadpoolctl import threadpool_limits
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from benchmarks.tables import table
from cdmae.models.ragged import starts_of
from cdmae.retrieval.kinds.multi import MultiVectors
from cdmae.retrieval.search import search
from cdmae.retrieval.shards import Shard
from cdmae.runs import Run

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


def drawn(count: int, shortest: int, longest: int, width: int, seed: int) -> MultiVectors:
    """Draw texts with vectors of length 1."""
    rng = np.random.default_rng(seed)
    starts = starts_of(rng.integers(shortest, longest + 1, count))
    values = rng.standard_normal((starts[-1], width), np.float32)
    values /= np.linalg.norm(values, axis=1, keepdims=True)
    return MultiVectors(values, starts, np.zeros(starts[-1], np.int32))


def maxsim_of_lists(queries: Tensor, texts: list[Tensor], candidates: np.ndarray) -> np.ndarray:
    """Score candidates [Q, n] with sentence-transformers, from lists of vectors."""
    scores = [
        maxsim(query[None], [texts[row] for row in rows])[0]
        for query, rows in zip(queries, candidates.tolist(), strict=True)
    ]
    return torch.stack(scores).numpy()


def maxsim_of_padded(
    queries: Tensor, texts: Tensor, mask: Tensor, candidates: np.ndarray
) -> np.ndarray:
    """Score candidates [Q, n] with sentence-transformers, from a padded tensor [P, n, D]."""
    scores = [
        maxsim(query[None], texts[rows], b_mask=mask[rows])[0]
        for query, rows in zip(queries, torch.from_numpy(candidates), strict=True)
    ]
    return torch.stack(scores).numpy()


def maxsim_of_ours(
    queries: MultiVectors, passages: MultiVectors, candidates: np.ndarray, threads: int
) -> np.ndarray:
    """Score and rank candidates [Q, n]; return the scores in the order of the candidates."""
    count = candidates.shape[1]
    given = Run.of(list(candidates), [np.zeros(count, np.float32)] * len(candidates))
    shards = [Shard(passages.shape, lambda: passages)]
    found = search(queries, shards, count, candidates=given, threads=threads)
    scores = np.empty((len(candidates), len(passages)), np.float32)
    scores[np.repeat(np.arange(len(candidates)), count), found.passages] = found.scores
    return np.take_along_axis(scores, candidates, axis=1)


def multi_vectors(options: argparse.Namespace) -> None:
    """Print the table of MaxSim."""
    width = options.dimensions
    queries = drawn(options.queries, 32, 32, width, seed=1)
    passages = drawn(options.passages, 20, 120, width, seed=2).rounded()
    lengths = np.diff(passages.starts).tolist()
    texts = torch.from_numpy(passages.values.astype(np.float32)).split(lengths)
    padded = pad_sequence(texts, batch_first=True)
    mask = torch.arange(padded.shape[1]) < torch.tensor(lengths)[:, None]
    asked = torch.from_numpy(queries.values).view(options.queries, -1, width)
    rng = np.random.default_rng(3)
    depth = min(options.depth, options.passages)
    chosen = [rng.choice(options.passages, depth, replace=False) for _ in range(options.queries)]
    candidates = np.stack(chosen)
    torch.set_num_threads(options.threads)
    maxsim_of_ours(queries, passages, candidates[:, :1], options.threads)  # compiles
    forms: dict[str, Callable[[], np.ndarray]] = {
        "sentence-transformers' maxsim": lambda: maxsim_of_lists(asked, list(texts), candidates),
        "... of a padded tensor": lambda: maxsim_of_padded(asked, padded, mask, candidates),
        "ours": lambda: maxsim_of_ours(queries, passages, candidates, options.threads),
    }
    seconds = {}
    scores = {}
    for name, form in forms.items():
        begun = time.process_time()
        scores[name] = form()
        seconds[name] = time.process_time() - begun
    for found in scores.values():
        np.testing.assert_allclose(found, scores["ours"], rtol=1e-5)
    rows = [
        {"": name, "cpu-s": f"{taken:.2f}", "x ours": f"{taken / seconds['ours']:.1f}"}
        for name, taken in seconds.items()
    ]
    size = f"{depth:,} candidates of {options.passages:,} passages x {width}"
    print(f"{options.queries:,} queries, {size}, {options.threads} threads\n{table(rows)}")


def main() -> None:
    """Measure every form of search on random vectors, and print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--passages", type=int, default=100_000)
    parser.add_argument("--queries", type=int, default=200)
    parser.add_argument("--dimensions", type=int, default=768)
    parser.add_argument("--depth", type=int, default=1000)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--multi", action="store_true", help="score multi-vectors by MaxSim")
    options = parser.parse_args()
    if options.multi:
        multi_vectors(options)
        return
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
