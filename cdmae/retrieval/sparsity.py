"""Measuring the sparsity of a system's vectors, and the cost of a search among them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from scipy.sparse import csr_array

from cdmae.retrieval.impacts import FOLDER
from cdmae.retrieval.kinds import read_shards, sparse


def measure(queries: csr_array, vectors: Path) -> dict[str, float]:
    """Return statistics of a split's queries [Q, V] and of a folder of passage vectors.

    flops: the mean number of non-zero products of a query and a passage (SPLADE, section 4).
    megabytes: of Lucene's index, or else of the vectors.
    """
    shards = read_shards(vectors)
    counts = sum(_texts_with(shard[:]) for shard in shards)
    in_passages = counts / max(1, sum(map(len, shards)))
    in_queries = _texts_with(queries) / max(1, queries.shape[0])
    index = vectors / FOLDER
    files = index.iterdir() if index.is_dir() else vectors.glob(f"*{sparse.SUFFIX}")
    return {
        "passage_entries": float(in_passages.sum()),
        "flops": float(in_queries @ in_passages),
        "megabytes": sum(path.stat().st_size for path in files) / 1e6,
    }


def _texts_with(vectors: csr_array) -> np.ndarray:
    """Count the texts in which each word-piece has a weight, int64 [V]."""
    return np.bincount(vectors.indices, minlength=vectors.shape[1])
