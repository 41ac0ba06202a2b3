"""Sparse vectors: a CSR matrix, float32 [n, V], searched exactly by its products.

A shard is a file of ``scipy.sparse.save_npz``, which has checksums. The search multiplies sparse
matrices: for each query it walks the postings of the query's word-pieces, as an inverted index
does. A score is summed over the query's word-pieces in ascending order. The result therefore
depends neither on blocks nor on threads.

Q queries, P passages, V word-pieces, K depth.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from cdmae.files import complete
from cdmae.models.checkpoint import Model
from cdmae.models.heads import sparse as head
from cdmae.models.ragged import Ragged
from cdmae.retrieval.ranking import Best
from cdmae.retrieval.shards import Shards, blocks
from cdmae.runs import Run

TYPE = sparse.sparray
SUFFIX = ".npz"
MARK = "[0-9]*.npz"
# queries and passages per block, whose scores are in memory together
QUERIES, PASSAGES = 256, 1 << 15


def gathered(
    model: Model, read: Ragged, chunks: Iterable[tuple[np.ndarray, np.ndarray]]
) -> sparse.csr_array:
    """Return the vectors of sequences, [n, V]."""
    order = [np.empty(0, np.int64)]
    parts = [sparse.csr_array((0, head.width(model.network)), dtype=np.float32)]
    for rows, vectors in chunks:
        order.append(rows)
        parts.append(sparse.csr_array(vectors))
    return joined(parts)[np.argsort(np.concatenate(order))]


def joined(parts: Sequence[sparse.csr_array]) -> sparse.csr_array:
    """Concatenate the vectors of several lists of texts."""
    return sparse.vstack(parts, format="csr")


# --- on disk --------------------------------------------------------------------------------------


def write(folder: Path, name: str, vectors: sparse.csr_array) -> None:
    """Write a shard."""
    with complete(folder / f"{name}{SUFFIX}") as aside, open(aside, "wb") as file:
        sparse.save_npz(file, vectors, compressed=False)


def read(path: Path) -> sparse.csr_array:
    """Read a shard."""
    return sparse.csr_array(sparse.load_npz(path))


def count(path: Path) -> int:
    """Return the number of passages of a shard without reading its entries."""
    with np.load(path) as parts:
        return int(parts["shape"][0])


# --- search ---------------------------------------------------------------------------------------


def search(
    queries: sparse.csr_array,
    shards: Shards,
    depth: int,
    **_: Any,
) -> Run:
    """Find the `depth` passages with the greatest inner product for each query, ties by row.

    A passage that shares no word-piece with a query is not ranked, as in BM25.
    """
    best = Best(queries.shape[0], depth)
    for first, block in blocks(shards, PASSAGES):
        postings = block.T.tocsr()  # [V, p]
        for begin in range(0, queries.shape[0], QUERIES):
            found = (queries[begin : begin + QUERIES] @ postings).tocsr()
            for row in range(found.shape[0]):
                cut = slice(found.indptr[row], found.indptr[row + 1])
                best.add(begin + row, first + found.indices[cut], found.data[cut])
    return best.run()
