"""Exact search by inner product: faiss scans the passages block by block.

faiss's products come from matrix multiplication. Their last bits depend on the shape of the block,
and faiss breaks ties arbitrarily. Therefore, faiss only finds candidates: every passage of a block
that could be among a query's best K. Each candidate is scored again by faiss's product of one pair
of vectors, and ranked by that score, ties by row. The result depends neither on blocks, nor on
threads, nor on the device.

Which passages are candidates? The two scores of a pair differ by at most the slack (see
`cdmae.retrieval.products`). A passage is a candidate if its score from faiss is at least the lowest
possible score of the K-th best passage minus the slack. faiss first returns slightly more than K
passages. If the last of them is still a candidate, the search is repeated for four times as many,
because otherwise a tie could be missed. If nearly all scores are equal, as after a collapsed
training, this takes several scans instead of one.

On a CPU, NumPy with a minimum score per query needs less processor time: 0.8 s instead of 2.1 s for
200 queries, depth 1000 and 100,000 passages of 768 numbers. At depth 100 it is 4.5 times faster,
and for one query 1.6 times slower. faiss is used because it also runs on GPUs, so that one engine
serves all devices.

Memory is bounded by the result and one block, whatever the number of passages.

Q queries, P passages, D dimensions, K depth; b queries and n passages of a block.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import faiss
import numpy as np
from scipy import sparse

from cdmae.collections import check_rows
from cdmae.errors import InputError
from cdmae.log import Progress, say
from cdmae.models.ragged import starts_of
from cdmae.retrieval import dual, entries, impacts, products
from cdmae.retrieval.asking import Question, encode_question
from cdmae.retrieval.dual import DualVectors
from cdmae.retrieval.impacts import Impacts
from cdmae.retrieval.multivectors import MultiVectors
from cdmae.retrieval.vectors import Shard, Vectors, keep_vectors
from cdmae.runs import Run, read_run
from cdmae.threads import faiss_threads
from cdmae.training import setup

QUERIES, PASSAGES = 4096, 1 << 16  # queries and passages per block
GPU_MOST = 2048  # the maximum number of hits per query that faiss returns on a GPU

Shards = Sequence[np.ndarray | Shard]
# [b, D], [n, D], k -> two of [b, k]
Knn = Callable[[np.ndarray, np.ndarray, int], tuple[np.ndarray, np.ndarray]]


def search(
    queries: Vectors,
    shards: Shards | Impacts,
    depth: int,
    *,
    candidates: Run | None = None,
    threads: int = 1,
    device: str = "cpu",
) -> Run:
    """Find the `depth` passages with the greatest inner product for each query, ties by row.

    queries: [Q, D]. shards: arrays [p, D], which may be memory-mapped, computed when read, or in
    memory; or Lucene's index of sparse vectors. Rows are numbered across shards. Products are
    float32. Every query gets min(depth, P) passages; with sparse vectors, only passages with a
    product above 0. Raises `InputError` for vectors that are not finite or differ in width.

    candidates: for multi-vectors, a run with the passages to score for each query; None: all.
    """
    if depth < 1:
        raise InputError(f"the search depth is {depth}; allowed: from 1")
    widths = [shards.width] if isinstance(shards, Impacts) else [s.shape[1] for s in shards]
    for width in widths:
        if width != queries.shape[1]:
            raise InputError(
                f"the passage vectors have {width} dimensions and the query vectors "
                f"{queries.shape[1]}: they come from different models; encode both with one model"
            )
    if isinstance(shards, Impacts):
        return impacts.search(queries, shards, depth, threads)
    passages = sum(map(len, shards))
    check_rows(passages, "passages")
    if sparse.issparse(queries):
        return entries.search(queries, shards, depth)
    if isinstance(queries, DualVectors):
        return dual.search(queries, shards, depth)
    if isinstance(queries, MultiVectors):
        from cdmae.retrieval import maxsim  # it imports numba, which takes a second

        if candidates is None:
            return maxsim.search(queries, shards, depth, threads)
        if len(candidates) != len(queries):
            raise InputError(
                f"the candidates' run has {len(candidates)} queries instead of {len(queries)}; "
                "delete it and run again"
            )
        return maxsim.search_among(queries, shards, candidates, depth, threads)
    depth = min(depth, passages)
    starts = np.arange(len(queries) + 1, dtype=np.int64) * depth
    if not starts[-1]:
        return Run(np.empty(0, np.int32), np.empty(0, np.float32), starts)
    with faiss_threads(threads):
        best = _best(np.ascontiguousarray(queries, np.float32), shards, depth, _knn(device, depth))
    scores = best.D.ravel()
    scores += 0.0  # -0.0 becomes 0.0
    return Run((-2 - best.I.ravel()).astype(np.int32), scores, starts)


def _best(queries: np.ndarray, shards: Shards, depth: int, knn: Knn) -> faiss.ResultHeap:
    """Return each query's best passages, sorted: scores and ids (-2 minus the row), [Q, K]."""
    best = faiss.ResultHeap(len(queries), depth, keep_max=True)
    lengths = products.lengths(queries)
    first = 0
    if not np.isfinite(lengths).all():
        raise InputError(
            "some query vectors are not finite: the model's training diverged; train it again with "
            "a lower learning_rate"
        )
    with Progress(sum(map(len, shards)), unit="passages", label="search") as progress:
        for shard in shards:
            vectors = shard[:]
            for start in range(0, len(vectors), PASSAGES):
                block = np.ascontiguousarray(vectors[start : start + PASSAGES], np.float32)
                longest = products.lengths(block).max()
                if not np.isfinite(longest):
                    raise InputError(
                        f"the passage vectors from row {first + start} on are not finite: "
                        "delete the vectors and encode the passages again"
                    )
                slack = products.slack(queries.shape[1], lengths, longest)
                for begin in range(0, len(queries), QUERIES):
                    some = np.arange(begin, min(begin + QUERIES, len(queries)))
                    _merge(best, queries, some, block, first + start, slack, knn)
                progress.advance(len(block))
            first += len(shard)
    best.finalize()
    return best


def _merge(
    best: faiss.ResultHeap,
    queries: np.ndarray,
    left: np.ndarray,
    block: np.ndarray,
    row: int,
    slack: np.ndarray,
    knn: Knn,
) -> None:
    """Merge a block's passages, which begin at row `row`, into the best hits of the queries `left`.

    Among equal scores, the heap keeps the passage that was added first, and otherwise drops the
    lowest id. Therefore, passages are added in the order of rows, and their ids decrease from -2.
    In faiss, the id -1 means no passage.
    """
    depth = best.k
    count = min(len(block), _asked(depth))
    while len(left):
        scores, columns = knn(queries[left], block, count)
        sure = best.D[left, 0].astype(np.float64)  # the K-th best score so far, or the lowest float
        if count >= depth:
            sure = np.maximum(sure, scores[:, depth - 1] - slack[left])
        enters = scores >= (sure - slack[left])[:, None]
        done = ~enters[:, -1] | (count == len(block))
        most = enters[done].sum(1).max(initial=0)  # scores descend
        columns = np.where(enters, columns, -1)[done, :most]
        columns = np.sort(columns, axis=1)
        scores = np.where(
            columns < 0, -np.inf, products.pairwise(queries[left[done]], block, columns)
        )
        best.add_result_subset(left[done], scores, -2 - (row + columns))
        left = left[~done]
        count = min(len(block), 4 * count)


def _asked(depth: int) -> int:
    return depth + depth // 8 + 32


def _knn(device: str, depth: int) -> Knn:
    """Return the search of faiss on `device` (cpu, cuda, cuda:1); log a fallback to the CPU."""
    on_cpu = partial(faiss.knn, metric=faiss.METRIC_INNER_PRODUCT)
    kind, _, number = device.partition(":")
    if kind == "cpu":
        return on_cpu
    if kind != "cuda" or not hasattr(faiss, "StandardGpuResources") or not faiss.get_num_gpus():
        say(
            f"search: faiss {faiss.__version__} found no usable GPU (GPUs need faiss-gpu); "
            "searching on the CPU"
        )
        return on_cpu
    if _asked(depth) > GPU_MOST:
        say(
            f"search: on a GPU, faiss returns at most {GPU_MOST:,} hits, too few for depth "
            f"{depth:,}; searching on the CPU"
        )
        return on_cpu
    resources = faiss.StandardGpuResources()
    index = int(number or 0)
    on_gpu = partial(faiss.knn_gpu, resources, metric=faiss.METRIC_INNER_PRODUCT, device=index)

    def on_both(queries: np.ndarray, block: np.ndarray, count: int) -> tuple:
        # With many near-ties, more hits are needed than a GPU returns.
        knn = on_gpu if count <= GPU_MOST else on_cpu
        return knn(queries, block, count)

    return on_both


def read_candidates(paths: Sequence[Path], depth: int) -> Run | None:
    """Read the best `depth` passages of each run in turn; None without runs."""
    runs = [read_run(path).best(depth) for path in paths]
    if not runs:
        return None
    lengths = np.concatenate([np.diff(run.starts) for run in runs])
    passages = np.concatenate([run.passages for run in runs])
    return Run(passages, np.concatenate([run.scores for run in runs]), starts_of(lengths))


def answer(system: dict[str, Any], question: Question) -> Run:
    """Search for a user's query; `system` has an encoder and the `vectors` of passages."""
    query = encode_question(system, question)
    shards = question.load(keep_vectors, system["vectors"])
    device = str(setup.device())
    candidates = None
    if question.parts:
        candidates = question.parts[0].best(system["candidates_depth"])
    return search(
        query,
        shards,
        question.depth,
        candidates=candidates,
        threads=question.threads,
        device=device,
    )
