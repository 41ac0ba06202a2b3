"""Storing sparse vectors, and searching them exactly.

A shard is a SciPy matrix in a file of ``scipy.sparse.save_npz``, with checksums. The search
multiplies sparse matrices: for each query it walks the postings of the query's word-pieces, as an
inverted index does. A score is summed over the query's word-pieces in ascending order. The result
therefore depends neither on blocks nor on threads.

Q queries, P passages, V word-pieces, K depth.
"""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse

from cdmae.errors import InputError
from cdmae.files import complete, remedy
from cdmae.log import Progress
from cdmae.runs import Run

if TYPE_CHECKING:
    from cdmae.retrieval.vectors import Shard

SUFFIX = ".npz"
QUERIES = 256  # queries per block; their scores for all passages of a shard are in memory
DAMAGED = (zipfile.BadZipFile, ValueError, KeyError, EOFError)


# --- on disk --------------------------------------------------------------------------------------


def write(path: Path, vectors: sparse.csr_array) -> None:
    """Write a sparse matrix to a file."""
    with complete(path) as aside, open(aside, "wb") as file:
        sparse.save_npz(file, vectors, compressed=False)


def read(path: Path) -> sparse.csr_array:
    """Read a sparse matrix; raise `InputError` if its file is damaged."""
    try:
        return sparse.csr_array(sparse.load_npz(path))
    except DAMAGED as error:
        raise InputError(f"{path} is not a complete matrix ({error}); {remedy(path)}") from None


def shape(path: Path) -> tuple[int, int]:
    """Return the shape of a stored matrix without reading its entries."""
    try:
        with np.load(path) as parts:
            passages, words = parts["shape"].tolist()
    except DAMAGED as error:
        raise InputError(f"{path} is not a complete matrix ({error}); {remedy(path)}") from None
    return passages, words


# --- search ---------------------------------------------------------------------------------------


def search(queries: sparse.csr_array, shards: Sequence[Shard], depth: int) -> Run:
    """Find the `depth` passages with the greatest inner product for each query, ties by row.

    queries: [Q, V]; shards: [p, V] each, with rows numbered across shards. A passage that shares no
    word-piece with a query is not ranked, as in BM25.
    """
    passages = [np.empty(0, np.int32)] * queries.shape[0]
    scores = [np.empty(0, np.float32)] * queries.shape[0]
    first = 0
    with Progress(sum(map(len, shards)), unit="passages", label="search") as progress:
        for shard in shards:
            postings = shard[:].T.tocsr()  # [V, p]
            for begin in range(0, len(passages), QUERIES):
                found = (queries[begin : begin + QUERIES] @ postings).tocsr()
                for row in range(found.shape[0]):
                    query = begin + row
                    cut = slice(found.indptr[row], found.indptr[row + 1])
                    passages[query], scores[query] = best_of(
                        np.concatenate([passages[query], first + found.indices[cut]]),
                        np.concatenate([scores[query], found.data[cut]]),
                        depth,
                    )
            first += len(shard)
            progress.advance(len(shard))
    return Run.of(passages, scores)


def best_of(passages: np.ndarray, scores: np.ndarray, depth: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the `depth` best passages by score, ties by row, and the scores of these passages."""
    if len(scores) > depth:
        least = np.partition(scores, -depth)[-depth]
        candidates = scores >= least
        passages = passages[candidates]
        scores = scores[candidates]
    order = np.lexsort((passages, -scores))[:depth]
    return passages[order].astype(np.int32), scores[order]
