"""Compare exact search by inner product with faiss, and MaxSim with sentence-transformers.

    python -m benchmarks.search        100,000 passages, 200 queries, a minute
    python -m benchmarks.search --multi --passages 5000 --queries 20 --dimensions 128
        MaxSim of multi-vectors with 1,000 candidates per query

Ours is faiss by blocks. Only ours ranks ties by row and needs no more memory for more passages; the
difference to faiss.knn is the cost of both. Fails unless every form finds the same scores.

With ``--multi``, a query has 32 vectors and a passage 20 to 120. The peer is sentence-transformers'
`maxsim`, with each query's candidates as a list, or as rows of a padded tensor of all passages,
which is made before the time is taken.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import faiss
import numpy as np
import torch
from torch.nn.utils.rnn import pad_sequence

from benchmarks import forms
from cdmae.models.ragged import starts_of
from cdmae.retrieval.kinds.multi import MultiVectors
from cdmae.retrieval.search import search
from cdmae.retrieval.shards import Shard
from cdmae.runs import Run

FORMS = {
    "knn": "faiss.knn",
    "flat": "faiss.IndexFlatIP",
    "ours": "ours: blocks, ties by row",
}
MULTI = {
    "lists": "sentence-transformers' maxsim of lists",
    "padded": "sentence-transformers' maxsim of a padded tensor",
    "ours": "ours",
}


def start(form: str, given: argparse.Namespace) -> Callable[[], np.ndarray]:
    """Return a form's search, which returns the best scores [Q, depth]."""
    rng = np.random.default_rng(0)
    passages = rng.standard_normal((given.passages, given.dimensions), np.float32)
    queries = rng.standard_normal((given.queries, given.dimensions), np.float32)
    faiss.omp_set_num_threads(given.threads)

    def knn() -> np.ndarray:
        return faiss.knn(queries, passages, given.depth, metric=faiss.METRIC_INNER_PRODUCT)[0]

    def flat() -> np.ndarray:
        index = faiss.IndexFlatIP(passages.shape[1])
        index.add(passages)
        return index.search(queries, given.depth)[0]

    def ours() -> np.ndarray:
        run = search(queries, [passages], given.depth, threads=given.threads)
        return run.scores.reshape(len(queries), -1)

    return {"knn": knn, "flat": flat, "ours": ours}[form]


def drawn(count: int, shortest: int, longest: int, width: int, seed: int) -> MultiVectors:
    """Draw texts with vectors of length 1."""
    rng = np.random.default_rng(seed)
    starts = starts_of(rng.integers(shortest, longest + 1, count))
    values = rng.standard_normal((starts[-1], width), np.float32)
    values /= np.linalg.norm(values, axis=1, keepdims=True)
    return MultiVectors(values, starts, np.zeros(starts[-1], np.int32))


def start_multi(form: str, given: argparse.Namespace) -> Callable[[], np.ndarray]:
    """Return a form of MaxSim, which returns the scores of the candidates [Q, n]."""
    from sentence_transformers.util import maxsim

    queries = drawn(given.queries, 32, 32, given.dimensions, seed=1)
    passages = drawn(given.passages, 20, 120, given.dimensions, seed=2).rounded()
    rng = np.random.default_rng(3)
    depth = min(given.depth, given.passages)
    chosen = [rng.choice(given.passages, depth, replace=False) for _ in range(given.queries)]
    candidates = np.stack(chosen)
    counts = np.diff(passages.starts).tolist()
    texts = list(torch.from_numpy(passages.values.astype(np.float32)).split(counts))
    asked = torch.from_numpy(queries.values).view(given.queries, -1, given.dimensions)
    table = pad_sequence(texts, batch_first=True)
    mask = torch.arange(table.shape[1]) < torch.tensor(counts)[:, None]

    def lists() -> np.ndarray:
        pairs = zip(asked, candidates.tolist(), strict=True)
        scores = [maxsim(query[None], [texts[row] for row in rows])[0] for query, rows in pairs]
        return torch.stack(scores).numpy()

    def padded() -> np.ndarray:
        pairs = zip(asked, torch.from_numpy(candidates), strict=True)
        scores = [maxsim(query[None], table[rows], b_mask=mask[rows])[0] for query, rows in pairs]
        return torch.stack(scores).numpy()

    def ours() -> np.ndarray:
        ranked = Run.of(list(candidates), [np.zeros(depth, np.float32)] * len(candidates))
        shards = [Shard(len(passages), lambda: passages)]
        found = search(queries, shards, depth, candidates=ranked, threads=given.threads)
        scores = np.empty((len(candidates), len(passages)), np.float32)
        scores[np.repeat(np.arange(len(candidates)), depth), found.passages] = found.scores
        return np.take_along_axis(scores, candidates, axis=1)

    return {"lists": lists, "padded": padded, "ours": ours}[form]


def main() -> None:
    """Measure every form of search on random vectors, and print the table."""
    parser = forms.parser(__doc__, rounds=3, depth=1000)
    parser.add_argument("--multi", action="store_true", help="score multi-vectors by MaxSim")
    parser.add_argument("--passages", type=int)
    parser.add_argument("--queries", type=int)
    parser.add_argument("--dimensions", type=int)
    given = parser.parse_args()
    sizes = (5000, 20, 128) if given.multi else (100_000, 200, 768)
    given.passages = given.passages or sizes[0]
    given.queries = given.queries or sizes[1]
    given.dimensions = given.dimensions or sizes[2]
    work = f"{given.queries:,} queries, {given.passages:,} passages x {given.dimensions}"
    if given.multi:
        forms.compare(start_multi, MULTI, given, f"MaxSim of {given.depth:,} passages", work=work)
    else:
        forms.compare(start, FORMS, given, f"exact search to depth {given.depth:,}", work=work)


if __name__ == "__main__":
    main()
