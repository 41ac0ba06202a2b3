"""Vector pseudo-relevance feedback for dense retrievers (Li et al. 2021, arXiv:2108.11044).

Rocchio's formula: q' = alpha q + beta mean(p_1 .. p_k), where p_1 to p_k are the vectors of the k
best passages of a first search. A second search uses q'.

Shapes: `Q` queries, `P` passages, `D` dimensions.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cdmae.retrieval.asking import Question, encode_question
from cdmae.retrieval.shards import Shards
from cdmae.runs import Run
from cdmae.training import setup


def refined(
    queries: np.ndarray, shards: Shards, first: Run, *, depth: int, alpha: float, beta: float
) -> np.ndarray:
    """Move query vectors [Q, D] towards the mean of their best passages' vectors: float32 [Q, D].

    first: the run of the first search; the vectors of its best `depth` passages are averaged. A
    query without passages in this run keeps its direction.
    """
    best = [first.ranked(row)[0][:depth] for row in range(len(first))]
    counts = np.array([len(passages) for passages in best], np.int64)
    passages = np.concatenate([np.empty(0, np.int64), *best]).astype(np.int64)
    query_of = np.repeat(np.arange(len(first)), counts)
    sums = np.zeros(queries.shape, np.float64)
    begin = 0
    for shard in shards:
        here = (begin <= passages) & (passages < begin + len(shard))
        if here.any():
            vectors = shard[:][passages[here] - begin]
            np.add.at(sums, query_of[here], vectors)
        begin += len(shard)
    means = sums / np.maximum(counts, 1)[:, None]
    return (alpha * queries + beta * means).astype(np.float32)


def answer(system: dict[str, Any], question: Question) -> Run:
    """Answer a user's query; `system` holds `depth`, `alpha`, `beta` and its dense part."""
    from cdmae.retrieval.search import search  # which imports this module
    from cdmae.retrieval.vectors import keep_vectors

    (dense,) = system["parts"]
    query = encode_question(dense, question)
    shards = question.load(keep_vectors, dense["vectors"])
    weights = {key: system[key] for key in ("depth", "alpha", "beta")}
    moved = refined(query, shards, question.parts[0], **weights)
    device = str(setup.device())
    return search(moved, shards, question.depth, threads=question.threads, device=device)
