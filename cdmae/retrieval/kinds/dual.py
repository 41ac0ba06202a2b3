"""Vectors of unified retrievers: a dense and a sparse one per text, searched by their sum.

A shard is two files. ``dense-00000.npy`` has the dense vectors, float32 [p, D]; ``00000.npz`` has
the sparse ones, a CSR matrix [p, V].

The score of a query and a passage is s + w d: s is the product of their sparse vectors, d the
product of their dense vectors, and w the model's weight of the dense head. The search is exact:
matrix multiplication of a block finds every passage that could be among the best K. These passages
are scored again pair by pair, as in `dense`. The result therefore depends neither on blocks nor on
threads.

    Q queries, P passages, D dimensions, V word-pieces, K depth
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from cdmae.models.checkpoint import Model
from cdmae.models.heads import sparse as sparse_head
from cdmae.models.ragged import Ragged
from cdmae.retrieval import products
from cdmae.retrieval.kinds import dense, sparse
from cdmae.retrieval.ranking import Best
from cdmae.retrieval.shards import Shards, blocks
from cdmae.runs import Run

DENSE = "dense-"  # begins the names of the files with dense vectors
SUFFIX = sparse.SUFFIX
MARK = f"{DENSE}*"
QUERIES = 256  # queries per block
PASSAGES = 1 << 14  # passages per block: 2 x 16 MB of scores
ROUNDING = 2.0**-21  # relative error of a sum in float32, with a margin


@dataclass(frozen=True)
class DualVectors:
    """The vectors of n texts: dense [n, D], float32; sparse [n, V]; weight: the factor w."""

    dense: np.ndarray
    sparse: csr_array
    weight: float = 1.0

    def __len__(self) -> int:
        """Return the number of texts n."""
        return len(self.dense)

    def __getitem__(self, texts: slice) -> DualVectors:
        """Return the vectors of some texts."""
        return replace(self, dense=self.dense[texts], sparse=self.sparse[texts])

    def head(self, name: str) -> np.ndarray | csr_array:
        """Return the vectors of one head, `dense` or `sparse`."""
        return self.dense if name == "dense" else self.sparse


TYPE = DualVectors


def gathered(
    model: Model, read: Ragged, chunks: Iterable[tuple[np.ndarray, np.ndarray]]
) -> DualVectors:
    """Return the vectors of sequences; a chunk has V weights, followed by D numbers."""
    words = sparse_head.width(model.network)
    of_dense = []

    def of_sparse() -> Iterable[tuple[np.ndarray, np.ndarray]]:
        for rows, vectors in chunks:
            of_dense.append((rows, vectors[:, words:]))
            yield rows, vectors[:, :words]

    weights = sparse.gathered(model, read, of_sparse())
    return DualVectors(dense.gathered(model, read, of_dense), weights, model.dense_weight)


def joined(parts: Sequence[DualVectors]) -> DualVectors:
    """Concatenate the vectors of several lists of texts."""
    return replace(
        parts[0],
        dense=dense.joined([part.dense for part in parts]),
        sparse=sparse.joined([part.sparse for part in parts]),
    )


# --- on disk --------------------------------------------------------------------------------------


def write(folder: Path, name: str, vectors: DualVectors) -> None:
    """Write a shard's two files; the sparse vectors come last, because they mark completion."""
    dense.write(folder, f"{DENSE}{name}", vectors.dense)
    sparse.write(folder, name, vectors.sparse)


def read(path: Path) -> DualVectors:
    """Read a shard, and check it against its checksums; path: the file of its sparse vectors."""
    file = path.with_name(f"{DENSE}{path.stem}{dense.SUFFIX}")
    return DualVectors(dense.read(file), sparse.read(path))


def count(path: Path) -> int:
    """Return the number of passages of a shard without reading its vectors."""
    return sparse.count(path)


# --- search ---------------------------------------------------------------------------------------


def search(
    queries: DualVectors,
    shards: Shards,
    depth: int,
    **_: Any,
) -> Run:
    """Find the `depth` passages with the greatest sum for each query, ties by row."""
    best = Best(len(queries), depth)
    lengths = products.lengths_of_queries(queries.dense)
    for first, block in blocks(shards, PASSAGES):
        block = replace(block, dense=np.ascontiguousarray(block.dense, np.float32))
        longest = products.longest(block.dense, first)
        slack = products.slack(queries.dense.shape[1], lengths, longest)
        for begin in range(0, len(queries), QUERIES):
            some = slice(begin, begin + QUERIES)
            _add(best, queries[some], begin, block, first, slack[some])
    return best.run()


def _add(
    best: Best,
    queries: DualVectors,
    begin: int,
    block: DualVectors,
    first: int,
    slack: np.ndarray,
) -> None:
    """Add the candidates of a block, which begins at row `first`, to queries from `begin` on.

    slack: of the products of dense vectors, [b].
    """
    weight = queries.weight
    depth = best.depth
    by_sparse = (queries.sparse @ block.sparse.T).toarray()  # exact, [b, n]
    by_dense = weight * (queries.dense @ block.dense.T)
    near = by_dense + by_sparse
    slack = weight * slack
    slack += ROUNDING * (np.abs(by_dense).max(1, initial=0) + by_sparse.max(1, initial=0))
    for row in range(len(queries)):
        least = best.least[begin + row]
        if near.shape[1] > depth:
            kth = np.partition(near[row], -depth)[-depth]
            least = max(least, kth - slack[row])
        columns = np.flatnonzero(near[row] >= least - slack[row])
        query = queries.dense[row : row + 1]
        by_pairs = products.pairwise(query, block.dense, columns[None])[0].astype(np.float64)
        exact = (weight * by_pairs + by_sparse[row, columns]).astype(np.float32)
        best.add(begin + row, first + columns, exact)
