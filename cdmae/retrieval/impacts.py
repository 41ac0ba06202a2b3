"""Searching sparse vectors with Lucene, in an inverted index of integers, through Anserini.

Weights are multiplied by 100 and rounded, as in the published indexes of SPLADE and uniCOIL;
weights that become 0 are omitted. A score is the inner product of the rounded vectors, and equal
scores are ranked by row. Exact search among the rounded vectors gives the same ranking.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse

from cdmae.files import complete
from cdmae.log import Progress, say
from cdmae.retrieval import lucene
from cdmae.runs import Run

if TYPE_CHECKING:
    from cdmae.retrieval.vectors import Shard

FOLDER = "lucene"  # the index's folder, in the folder of the vectors
SCALE = 100
HOW = ("-impact", "-pretokenized")


@dataclass(frozen=True)
class Impacts:
    """An index of vectors of `width` word-pieces, stored in `folder`."""

    folder: Path
    width: int


def rounded(vectors: sparse.csr_array) -> sparse.csr_array:
    """Return the vectors as the index stores them: integers, int64."""
    whole = sparse.csr_array(vectors * SCALE)
    whole.data = np.rint(whole.data).astype(np.int64)
    whole.eliminate_zeros()
    return whole


def build(shards: Sequence[Shard], folder: Path, threads: int = 1) -> None:
    """Index the passages of all shards in `folder`, as one segment."""
    count = sum(map(len, shards))
    with complete(folder) as aside:
        lines = aside / "vectors"
        lines.mkdir(parents=True)
        first = 0
        with Progress(count, unit="passages", label="write for Lucene") as progress:
            for number, shard in enumerate(shards):
                with open(lines / f"{number}.jsonl", "w", encoding="utf-8") as file:
                    for row, entries in enumerate(_entries(rounded(shard[:])), first):
                        passage = {"id": f"{row:010}", "contents": "", "vector": entries}
                        file.write(json.dumps(passage) + "\n")
                first += len(shard)
                progress.advance(len(shard))
        say(f"Lucene indexes {count:,} passages")
        lucene.anserini(
            "index.IndexCollection",
            folder,
            *("-collection", "JsonVectorCollection"),
            *("-generator", "DefaultLuceneDocumentGenerator"),
            *("-input", lines),
            *("-index", aside),
            *("-threads", threads),
            *("-memoryBuffer", lucene.BUFFER),
            *HOW,
            "-optimize",
        )
        shutil.rmtree(lines)
        (aside / "write.lock").unlink(missing_ok=True)


def search(queries: sparse.csr_array, index: Impacts, depth: int, threads: int = 1) -> Run:
    """Rank the best `depth` passages for each query, ties by row; scores are integers."""
    count = queries.shape[0]
    # A word-piece is repeated as often as its weight. For the full stop, see `bm25.search`.
    topics = (
        " ".join([*(f"{piece} " * weight for piece, weight in entries.items()), "."])
        for entries in _entries(rounded(queries))
    )
    with Progress(count, unit="queries", label="search Lucene") as progress:
        return lucene.search(index.folder, topics, count, depth, HOW, threads, progress)


def _entries(vectors: sparse.csr_array) -> Iterator[dict[str, int]]:
    """Yield, for each vector, a mapping from word-piece ids (as text) to weights."""
    for begin, end in zip(vectors.indptr[:-1], vectors.indptr[1:], strict=True):
        pieces = vectors.indices[begin:end].tolist()
        weights = vectors.data[begin:end].tolist()
        yield {f"w{piece}": weight for piece, weight in zip(pieces, weights, strict=True)}
