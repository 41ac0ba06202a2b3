"""Dense vectors: an array, float32 [n, D], searched exactly by inner product.

`cdmae.retrieval.products` has the method. Memory is bounded by the result and one block, whatever
the number of passages.

Q queries, P passages, D dimensions, K depth; b queries and n passages of a block.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import torch

from cdmae.arrays import read_array, write_array
from cdmae.files import complete
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
QUERIES, PASSAGES = 256, 1 << 15  # queries and passages per block, whose scores are 32 MB


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
    """Check a shard against its checksum, and memory-map it."""
    return read_array(path)


def count(path: Path) -> int:
    """Return the number of passages of a shard without reading its vectors."""
    return len(read_array(path))


# --- search ---------------------------------------------------------------------------------------


def search(
    queries: np.ndarray,
    shards: Shards,
    depth: int,
    *,
    candidates: None = None,
    threads: int = 1,
    device: str = "cpu",
) -> Run:
    """Find the `depth` passages with the greatest inner product for each query, ties by row.

    Every query gets min(depth, P) passages. Raises `InputError` for vectors that are not finite.
    """
    best = Best(len(queries), depth)
    queries = np.ascontiguousarray(queries, np.float32)
    asked = torch.from_numpy(queries).to(device)
    for first, vectors in blocks(shards, PASSAGES):
        block = np.require(vectors, np.float32, ["C", "W"])  # torch warns of read-only arrays
        slack = products.slack(queries, block, first)
        passages = torch.from_numpy(block).to(device).T
        for begin in range(0, len(queries), QUERIES):
            some = slice(begin, begin + QUERIES)
            quick = asked[some] @ passages
            exact = partial(products.pairwise, queries[some], block)
            products.add_candidates(best, begin, first, quick, slack[some], exact)
    run = best.run()
    run.scores[:] += 0.0  # -0.0 becomes 0.0
    return run
