"""Search sparse vectors with Lucene: an inverted index of whole numbers, through Anserini.

Weights are multiplied by 100 and rounded, as in SPLADE's and uniCOIL's published indexes; weights
that become 0 are left out. A score is the product of these numbers, and ties are ranked by row. The
passages are the same as by the exact product of the rounded vectors.
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

FOLDER = "lucene"  # next to the vectors
SCALE = 100
HOW = ("-impact", "-pretokenized")


@dataclass(frozen=True)
class Impacts:
    """An index in a folder, for vectors with `width` word-pieces."""

    folder: Path
    width: int


def rounded(vectors: sparse.csr_array) -> sparse.csr_array:
    """Return the vectors that the index holds: whole numbers, int64."""
    whole = sparse.csr_array(vectors * SCALE)
    whole.data = np.rint(whole.data).astype(np.int64)
    whole.eliminate_zeros()
    return whole


def build(shards: Sequence[Shard], folder: Path, threads: int = 1) -> None:
    """Index the passages of all shards in the folder `folder`, in one segment."""
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
    """Rank the best `depth` passages for each query, ties by row; scores are whole numbers."""
    count = queries.shape[0]
    # A word-piece counts as often as it is repeated. The full stop is not indexed: see
    # `bm25.search`.
    topics = (
        " ".join([*(f"{piece} " * weight for piece, weight in entries.items()), "."])
        for entries in _entries(rounded(queries))
    )
    with Progress(count, unit="queries", label="search Lucene") as progress:
        return lucene.search(index.folder, topics, count, depth, HOW, threads, progress)


def _entries(vectors: sparse.csr_array) -> Iterator[dict[str, int]]:
    """Yield the weight of each word-piece of a vector; the id stands for the word-piece."""
    for begin, end in zip(vectors.indptr[:-1], vectors.indptr[1:], strict=True):
        pieces = vectors.indices[begin:end].tolist()
        weights = vectors.data[begin:end].tolist()
        yield {f"w{piece}": weight for piece, weight in zip(pieces, weights, strict=True)}
