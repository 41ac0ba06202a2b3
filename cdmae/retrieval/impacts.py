"""Searching sparse vectors with Lucene, in an inverted index of integers, through Anserini.

Weights are multiplied by 100 and rounded, as in the published indexes of SPLADE, uniCOIL and
DeepCT; weights that become 0 are omitted. Equal scores are ranked by row. There are two indexes:

- Of impacts: a score is the inner product of the rounded vectors. Exact search of the rounded
  vectors gives the same ranking.
- Of term frequencies (DeepCT): a score is BM25's, where a passage contains a word-piece as often as
  its rounded weight.

Any vocabulary fits: a word-piece is written as its id.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from cdmae.files import read_json, write_json
from cdmae.log import say
from cdmae.retrieval import lucene
from cdmae.retrieval.kinds import read_shards
from cdmae.runs import Run

if TYPE_CHECKING:
    from cdmae.retrieval.shards import Shard

FOLDER = "lucene"  # the index's folder, in the folder of the vectors
SCALE = 100
BM25 = "bm25.json"  # next to the vectors whose index has term frequencies: k1 and b
OF_IMPACTS = ("-impact", "-pretokenized")
OF_FREQUENCIES = ("-pretokenized",)


@dataclass(frozen=True)
class Impacts:
    """An index of sparse vectors, stored in `folder`; k1, b: of an index of term frequencies."""

    folder: Path
    k1: float | None = None
    b: float | None = None

    @classmethod
    def read(cls, vectors: Path) -> Impacts | None:
        """Open the index in a folder of vectors; return None if the folder has no index."""
        path = vectors / BM25
        bm25 = read_json(path) if path.exists() else {}
        index = vectors / FOLDER
        return cls(index, **bm25) if index.is_dir() else None


def rounded(vectors: sparse.csr_array) -> sparse.csr_array:
    """Return the vectors as the index stores them: integers, int64."""
    whole = sparse.csr_array(vectors * SCALE)
    whole.data = np.rint(whole.data).astype(np.int64)
    whole.eliminate_zeros()
    return whole


def add(vectors: Path, engine: str, k1: float, b: float, threads: int = 1) -> None:
    """Add an index to a folder of vectors.

    engine: `lucene`, for impacts, or `bm25`, for term frequencies, which are searched with k1 and
    b.
    """
    shards = read_shards(vectors)
    build(shards, vectors / FOLDER, threads, frequencies=engine == "bm25")
    if engine == "bm25":
        write_json(vectors / BM25, {"k1": k1, "b": b})


def build(
    shards: Sequence[Shard], folder: Path, threads: int = 1, *, frequencies: bool = False
) -> None:
    """Index the passages of all shards in `folder`, as one segment.

    frequencies: index the rounded weights as term frequencies instead of impacts.
    """
    count = sum(map(len, shards))
    files = (_documents(shard[:], frequencies) for shard in shards)
    kind = "JsonCollection" if frequencies else "JsonVectorCollection"
    how = OF_FREQUENCIES if frequencies else OF_IMPACTS
    say(f"Lucene indexes {count:,} passages")
    lucene.build(folder, files, count, kind, threads, *how)


def _documents(vectors: sparse.csr_array, frequencies: bool) -> Iterator[dict[str, Any]]:
    """Yield the passages of a shard for Anserini."""
    for entries in _entries(rounded(vectors)):
        if frequencies:
            yield {"contents": _repeated(entries)}
        else:
            yield {"contents": "", "vector": entries}


def search(queries: sparse.csr_array, index: Impacts, depth: int, threads: int = 1) -> Run:
    """Rank the best `depth` passages for each query, ties by row.

    In an index of impacts, scores are integers. In an index of term frequencies, the weights of
    queries are counts.
    """
    whole = rounded(queries) if index.k1 is None else queries.astype(np.int64)
    topics = [_repeated(entries) for entries in _entries(whole)]
    return lucene.search((index.folder, index.k1, index.b), topics, depth, threads)


def _repeated(entries: dict[str, int]) -> str:
    """Repeat each word-piece as often as its weight."""
    return " ".join(f"{piece} " * weight for piece, weight in entries.items())


def _entries(vectors: sparse.csr_array) -> Iterator[dict[str, int]]:
    """Yield, for each vector, a mapping from word-piece ids (as text) to weights."""
    for begin, end in zip(vectors.indptr[:-1], vectors.indptr[1:], strict=True):
        pieces = vectors.indices[begin:end].tolist()
        weights = vectors.data[begin:end].tolist()
        yield {f"w{piece}": weight for piece, weight in zip(pieces, weights, strict=True)}
