"""Dense vectors: an array, float32 [n, D], searched exactly by inner product with faiss.

faiss scans the passages block by block. Its products come from matrix multiplication. Their last
bits depend on the shape of the block, and faiss breaks ties arbitrarily. Therefore, faiss only
finds candidates: every passage of a block that could be among a query's best K. Each candidate is
scored again by faiss's product of one pair of vectors, and ranked by that score, ties by row. The
result depends neither on blocks, nor on threads, nor on the device.

Which passages are candidates? The two scores of a pair differ by at most the slack (see
`cdmae.retrieval.products`). A passage is a candidate if its score from faiss is at least the lowest
possible score of the K-th best passage minus the slack. faiss first returns slightly more than K
passages. If the last of them is still a candidate, the search is repeated for four times as many,
because otherwise a tie could be missed. If nearly all scores are equal, as after a collapsed
training, this takes several scans instead of one.

Memory is bounded by the result and one block, whatever the number of passages.

Q queries, P passages, D dimensions, K depth; b queries and n passages of a block.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import faiss
import numpy as np

from cdmae.arrays import write_array
from cdmae.files import complete
from cdmae.log import say
from cdmae.models.checkpoint import Model
from cdmae.models.heads import dense as head
from cdmae.models.ragged import Ragged
from cdmae.retrieval import products
from cdmae.retrieval.ranking import Best
from cdmae.retrieval.shards import Shards, blocks
from cdmae.runs import Run

TYPE = np.ndarray
SUFFIX = ".npy"
MARK = "[0-9]*.npy"
QUERIES, PASSAGES = 4096, 1 << 16  # queries and passages per block
GPU_MOST = 2048  # the maximum number of hits per query that faiss returns on a GPU

# [b, D], [n, D], k -> two of [b, k]
Knn = Callable[[np.ndarray, np.ndarray, int], tuple[np.ndarray, np.ndarray]]


def gathered(
    model: Model, read: Ragged, chunks: Iterable[tuple[np.ndarray, np.ndarray]]
) -> np.ndarray:
    """Return the vectors of sequences, float32 [n, D]."""
    found = np.empty((len(read), head.width(model.network)), dtype=np.float32)
    for rows, vectors in chunks:
        found[rows] = vectors
    return found


def joined(parts: Sequence[np.ndarray]) -> np.ndarray:
    """Concatenate the vectors of several lists of texts."""
    return np.concatenate(parts)


# --- on disk --------------------------------------------------------------------------------------


def write(folder: Path, name: str, vectors: np.ndarray) -> None:
    """Write a shard."""
    with complete(folder / f"{name}{SUFFIX}") as aside:
        write_array(aside, vectors)


def read(path: Path) -> np.ndarray:
    """Memory-map a shard."""
    return np.load(path, mmap_mode="r")


def count(path: Path) -> int:
    """Return the number of passages of a shard without reading its vectors."""
    return len(np.load(path, mmap_mode="r"))


# --- search ---------------------------------------------------------------------------------------


def search(
    queries: np.ndarray,
    shards: Shards,
    depth: int,
    *,
    threads: int = 1,
    device: str = "cpu",
    **_: Any,
) -> Run:
    """Find the `depth` passages with the greatest inner product for each query, ties by row.

    Every query gets min(depth, P) passages. Raises `InputError` for vectors that are not finite.
    """
    depth = min(depth, sum(map(len, shards)))
    best = Best(len(queries), depth)
    if len(queries) and depth:
        queries = np.ascontiguousarray(queries, np.float32)
        lengths = products.lengths_of_queries(queries)
        knn = _knn(device)
        before = faiss.omp_get_max_threads()
        faiss.omp_set_num_threads(threads)
        for first, vectors in blocks(shards, PASSAGES):
            block = np.ascontiguousarray(vectors, np.float32)
            longest = products.longest(block, first)
            slack = products.slack(queries.shape[1], lengths, longest)
            for begin in range(0, len(queries), QUERIES):
                some = np.arange(begin, min(begin + QUERIES, len(queries)))
                _add(best, queries, some, block, first, slack, knn)
        faiss.omp_set_num_threads(before)
    run = best.run()
    run.scores[:] += 0.0  # -0.0 becomes 0.0
    return run


def _add(
    best: Best,
    queries: np.ndarray,
    left: np.ndarray,
    block: np.ndarray,
    first: int,
    slack: np.ndarray,
    knn: Knn,
) -> None:
    """Add the candidates of a block, which begins at row `first`, to the queries `left`."""
    depth = best.depth
    count = min(len(block), depth + depth // 8 + 32)
    while len(left):
        scores, columns = knn(queries[left], block, count)
        sure = best.least[left].astype(np.float64)
        if count >= depth:
            sure = np.maximum(sure, scores[:, depth - 1] - slack[left])
        enters = scores >= (sure - slack[left])[:, None]
        done = ~enters[:, -1] | (count == len(block))
        most = enters[done].sum(1).max(initial=0)  # scores descend
        columns = np.where(enters, columns, -1)[done, :most]
        exact = products.pairwise(queries[left[done]], block, columns)
        for query, own, values in zip(left[done].tolist(), columns, exact, strict=True):
            found = own >= 0
            best.add(query, first + own[found], values[found])
        left = left[~done]
        count = min(len(block), 4 * count)


def _knn(device: str) -> Knn:
    """Return the search of faiss on `device` (cpu, cuda, cuda:1); log a fallback to the CPU."""
    on_cpu = partial(faiss.knn, metric=faiss.METRIC_INNER_PRODUCT)
    kind, _, number = device.partition(":")
    if kind == "cpu":
        return on_cpu
    if not hasattr(faiss, "StandardGpuResources") or not faiss.get_num_gpus():
        say(
            f"search: faiss {faiss.__version__} found no usable GPU (GPUs need faiss-gpu); "
            "searching on the CPU"
        )
        return on_cpu
    resources = faiss.StandardGpuResources()
    index = int(number or 0)
    on_gpu = partial(faiss.knn_gpu, resources, metric=faiss.METRIC_INNER_PRODUCT, device=index)

    def on_both(queries: np.ndarray, block: np.ndarray, count: int) -> tuple:
        # A great depth, or many near-ties, need more hits than a GPU returns.
        knn = on_gpu if count <= GPU_MOST else on_cpu
        return knn(queries, block, count)

    return on_both
