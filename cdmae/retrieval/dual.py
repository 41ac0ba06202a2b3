"""Vectors of unified retrievers: a dense and a sparse one per text, searched by their sum.

A shard is two files. ``dense-00000.npy`` has the dense vectors, float32 [p, D]; ``00000.npz`` has
the sparse ones, a CSR matrix [p, V]. `write_head` gives the vectors of one head a folder of their
own, without copying them.

The score of a query and a passage is s + w d: s is the product of their sparse vectors, d the
product of their dense vectors, and w the model's weight of the dense head. The search is exact:
matrix multiplication of a block finds every passage that could be among the best K. These passages
are scored again pair by pair, as in `cdmae.retrieval.search`. The result therefore depends neither
on blocks nor on threads.

    Q queries, P passages, D dimensions, V word-pieces, K depth
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse

from cdmae.arrays import read_array, write_array
from cdmae.errors import InputError
from cdmae.files import complete, link
from cdmae.log import Progress
from cdmae.retrieval import entries, products
from cdmae.retrieval.entries import best_of
from cdmae.runs import Run

if TYPE_CHECKING:
    from cdmae.retrieval.vectors import Shard

DENSE = "dense-"  # begins the names of the files with dense vectors
QUERIES = 256  # queries per block
PASSAGES = 1 << 14  # passages per block: 2 x 16 MB of scores
ROUNDING = 2.0**-21  # relative error of a sum in float32, with a margin


@dataclass(frozen=True)
class DualVectors:
    """The vectors of n texts: dense [n, D], float32; sparse [n, V]; weight: the factor w."""

    dense: np.ndarray
    sparse: sparse.csr_array
    weight: float = 1.0

    def __len__(self) -> int:
        """Return the number of texts n."""
        return len(self.dense)

    @property
    def shape(self) -> tuple[int, int]:
        """Return the number of texts, and the sum of both widths, V + D."""
        return len(self), self.sparse.shape[1] + self.dense.shape[1]

    def __getitem__(self, texts: slice) -> DualVectors:
        """Return the vectors of some texts."""
        return replace(self, dense=self.dense[texts], sparse=self.sparse[texts])

    def head(self, name: str) -> np.ndarray | sparse.csr_array:
        """Return the vectors of one head, `dense` or `sparse`."""
        return self.dense if name == "dense" else self.sparse


def joined(parts: Sequence[DualVectors]) -> DualVectors:
    """Concatenate the vectors of several lists of texts."""
    dense = np.concatenate([part.dense for part in parts])
    return replace(
        parts[0], dense=dense, sparse=sparse.vstack([part.sparse for part in parts], format="csr")
    )


# --- on disk --------------------------------------------------------------------------------------


def write(folder: Path, name: str, vectors: DualVectors) -> None:
    """Write a shard's two files; the sparse vectors come last, because they mark completion."""
    with complete(folder / f"{DENSE}{name}.npy") as aside:
        write_array(aside, vectors.dense)
    entries.write(folder / f"{name}{entries.SUFFIX}", vectors.sparse)


def read(path: Path) -> DualVectors:
    """Read a shard, and check it against its checksums; path: the file of its sparse vectors."""
    return DualVectors(read_array(_dense_of(path)), entries.read(path))


def shape(path: Path) -> tuple[int, int]:
    """Return the shape of a shard without reading its vectors."""
    passages, words = entries.shape(path)
    dense = np.load(_dense_of(path), mmap_mode="r")
    return passages, words + dense.shape[1]


def _dense_of(path: Path) -> Path:
    return path.with_name(f"{DENSE}{path.stem}.npy")


def link_head(source: Path, folder: Path, head: str) -> None:
    """Link the vectors of one head into a folder, as shards of a dense or sparse retriever.

    head: `dense` or `sparse`.
    """
    paths = sorted(source.glob(f"[0-9]*{entries.SUFFIX}"))
    if not paths or not _dense_of(paths[0]).exists():
        raise InputError(f"{source} does not contain vectors of two heads; delete it and run again")
    for path in paths:
        if head == "dense":
            link(_dense_of(path), folder / f"{path.stem}.npy")
        else:
            link(path, folder / path.name)


# --- search ---------------------------------------------------------------------------------------


def search(queries: DualVectors, shards: Sequence[Shard], depth: int) -> Run:
    """Find the `depth` passages with the greatest sum for each query, ties by row.

    shards: [p, V + D] each, with rows numbered across shards.
    """
    best = [(np.empty(0, np.int32), np.empty(0, np.float32))] * len(queries)
    if not np.isfinite(products.lengths(queries.dense)).all():
        raise InputError(
            "some query vectors are not finite: the model's training diverged; train it again with "
            "a lower learning_rate"
        )
    first = 0
    with Progress(sum(map(len, shards)), unit="passages", label="search") as progress:
        for shard in shards:
            vectors = shard[:]
            for start in range(0, len(vectors), PASSAGES):
                block = vectors[start : start + PASSAGES]
                block = replace(block, dense=np.ascontiguousarray(block.dense, np.float32))
                longest = products.lengths(block.dense).max()
                if not np.isfinite(longest):
                    raise InputError(
                        f"the passage vectors from row {first + start} on are not finite: "
                        "delete the vectors and encode the passages again"
                    )
                for begin in range(0, len(queries), QUERIES):
                    some = queries[begin : begin + QUERIES]
                    cut = slice(begin, begin + len(some))
                    best[cut] = _merged(best[cut], some, block, longest, first + start, depth)
                progress.advance(len(block))
            first += len(shard)
    return Run.of(*map(list, zip(*best, strict=True))) if best else Run.of([], [])


def _merged(
    best: list[tuple[np.ndarray, np.ndarray]],
    queries: DualVectors,
    block: DualVectors,
    longest: float,
    first: int,
    depth: int,
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Merge a block's passages, which begin at row `first`, into the best of each query.

    longest: an upper bound of the norms of the block's dense vectors.
    """
    weight = queries.weight
    by_sparse = (queries.sparse @ block.sparse.T).toarray()  # exact, [b, n]
    by_dense = weight * (queries.dense @ block.dense.T)
    near = by_dense + by_sparse
    slack = weight * products.slack(
        queries.dense.shape[1], products.lengths(queries.dense), longest
    )
    slack += ROUNDING * (np.abs(by_dense).max(1, initial=0) + by_sparse.max(1, initial=0))
    merged = []
    for row, (passages, scores) in enumerate(best):
        least = scores[-1] if len(scores) == depth else -np.inf
        if near.shape[1] > depth:
            kth = np.partition(near[row], -depth)[-depth]
            least = max(least, kth - slack[row])
        columns = np.flatnonzero(near[row] >= least - slack[row])
        query = queries.dense[row : row + 1]
        dense = products.pairwise(query, block.dense, columns[None])[0].astype(np.float64)
        exact = (weight * dense + by_sparse[row, columns]).astype(np.float32)
        listed = np.concatenate([passages, first + columns])
        merged.append(best_of(listed, np.concatenate([scores, exact]), depth))
    return merged
