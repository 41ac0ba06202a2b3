"""Measuring the sparsity of a system's vectors, and the cost of a search among them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from cdmae.collections.store import read_queries
from cdmae.files import write_json
from cdmae.retrieval import asking
from cdmae.retrieval.impacts import FOLDER
from cdmae.retrieval.kinds import read_shards, sparse


def measure(
    *,
    encoder: dict[str, Any],
    model: Path | None = None,
    vectors: list[Path],
    collections: list[Path],
    splits: list[str],
    lengths: list[int],
    output: Path,
    threads: int = 1,
) -> None:
    """Measure the sparsity of a sparse system on each split, and write a list of rows as JSON.

    encoder: the system's settings for encoding queries, with `encoded_by`
    (`retrieval.asking.encoder`). model: the system's folder, if it was trained here. vectors: one
    folder per distinct collection; the other lists have one item per split.
    """
    system = encoder | ({"model": model} if model else {})
    kept = dict(zip(dict.fromkeys(collections), vectors, strict=True))
    passages = {collection: _passages(folder) for collection, folder in kept.items()}
    rows = []
    for collection, split, length in zip(collections, splits, lengths, strict=True):
        texts = read_queries(collection, split)["text"].tolist()
        queries = asking.encoder(system, length, threads).queries(texts)
        found = sparsity(queries, *passages[collection])
        rows.append({"collection": collection.name, "split": split, **found})
    write_json(output, rows)


def _passages(folder: Path) -> tuple[np.ndarray, float]:
    """Measure stored passage vectors.

    Returns, for each word-piece, the share of passages in which it has a weight, [V], and the size
    of the vectors in bytes.
    """
    shards = read_shards(folder)
    counts = sum(texts_with(shard[:]) for shard in shards)
    index = folder / FOLDER
    files = index.iterdir() if index.is_dir() else folder.glob(f"*{sparse.SUFFIX}")
    size = sum(path.stat().st_size for path in files)
    return counts / max(1, sum(map(len, shards))), size


def sparsity(queries: csr_array, in_passages: np.ndarray, size: float) -> dict[str, float]:
    """Return statistics of a split's queries [Q, V] and of the passages.

    in_passages: for each word-piece, the share of passages in which it has a weight, [V]. size: the
    bytes of the passage vectors. The result's flops is the mean number of non-zero products of a
    query and a passage (SPLADE, section 4).
    """
    in_queries = texts_with(queries) / max(1, queries.shape[0])
    return {
        "query_entries": float(in_queries.sum()),
        "passage_entries": float(in_passages.sum()),
        "flops": float(in_queries @ in_passages),
        "megabytes": size / 1e6,
    }


def texts_with(vectors: csr_array) -> np.ndarray:
    """Count the texts in which each word-piece has a weight, int64 [V]."""
    return np.bincount(vectors.indices, minlength=vectors.shape[1])
