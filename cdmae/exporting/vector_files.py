"""A collection's passages with their vectors, for vector databases and search engines.

``passages.parquet`` has the columns docid, vector and text, one row per passage in the order of the
collection:

dense           vector: float32 [D]
sparse          indices and values instead: the word-pieces with a weight, and their weights
multi-vector    vectors instead: float16 [t, D], one per word-piece

text is the model's input: the title, a space and the text. ``passages.faiss`` is an exact index of
dense vectors by inner product; its ids are the rows of the Parquet file. ``passages.jsonl`` has the
impacts of sparse vectors, weights x 100 as whole numbers, in the format of Anserini's
JsonVectorCollection.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from scipy import sparse

from cdmae.collections.store import count_passages, stream_passages
from cdmae.errors import InputError
from cdmae.log import Progress
from cdmae.retrieval.impacts import rounded
from cdmae.retrieval.kinds.dual import DualVectors
from cdmae.retrieval.kinds.multi import MultiVectors

if TYPE_CHECKING:
    from cdmae.retrieval.shards import Shard, Vectors

TABLE = "passages.parquet"
INDEX = "passages.faiss"
IMPACTS = "passages.jsonl"
BATCH = 4096  # passages that are written together


def write(
    folder: Path, collection: Path | str, shards: Sequence[Shard], pieces: Sequence[str]
) -> list[str]:
    """Write the passages of a collection and their vectors; return the names of the files.

    shards: the vectors of all passages, in the collection's order. pieces: the word-pieces of the
    vocabulary, which impacts name. A faiss index is held in memory until it is written.

    Raises `InputError` if there is not one vector per passage.
    """
    passages = count_passages(collection)
    vectors = sum(map(len, shards))
    if passages != vectors:
        raise InputError(
            f"{collection} has {passages:,} passages, but the run has vectors of {vectors:,}; "
            "./run with the same config files updates the vectors"
        )
    files: list[Rows | Index | Impacts] = []
    with Progress(passages, unit="passages", label="export") as progress:
        for table, batch in _batches(collection, shards):
            files = files or _files(folder, batch, pieces)
            for file in files:
                file.add(table, batch)
            progress.advance(len(table))
    for file in files:
        file.close()
    return [file.name for file in files]


def _batches(collection: Path | str, shards: Sequence[Shard]) -> Iterator[tuple[pa.Table, Vectors]]:
    """Yield batches of passages (docid, text) with their vectors."""
    first = 0
    for shard in shards:
        vectors = shard[:]
        last = first + len(shard)
        begin = 0
        for passages in stream_passages(collection, rows=BATCH, first=first, last=last):
            title = passages["title"]
            text = passages["text"]
            whole = pc.if_else(
                pc.equal(title, ""), text, pc.binary_join_element_wise(title, text, " ")
            )
            end = begin + len(text)
            named = pa.table({"docid": passages["passage_id"], "text": whole})
            yield named, vectors[begin:end]
            begin = end
        first = last


def _files(folder: Path, vectors: Vectors, pieces: Sequence[str]) -> list[Rows | Index | Impacts]:
    """Open the files that suit a kind of vectors for writing."""
    rows = Rows(folder)
    if isinstance(vectors, MultiVectors | DualVectors):
        return [rows]
    return [rows, Impacts(folder, pieces) if sparse.issparse(vectors) else Index(folder, vectors)]


class Rows:
    """The Parquet file of passages and vectors."""

    name = TABLE

    def __init__(self, folder: Path) -> None:
        """Choose the path; the first batch determines the columns, so the file is opened then."""
        self.path = folder / TABLE
        self.writer: pq.ParquetWriter | None = None

    def add(self, passages: pa.Table, vectors: Vectors) -> None:
        """Write a batch of passages and their vectors."""
        table = pa.table(
            {"docid": passages["docid"], **_columns(vectors), "text": passages["text"]}
        )
        if self.writer is None:
            self.writer = pq.ParquetWriter(self.path, table.schema)
        self.writer.write_table(table)

    def close(self) -> None:
        """Finish the file."""
        if self.writer is not None:
            self.writer.close()


def _columns(vectors: Vectors) -> dict[str, pa.Array]:
    """Convert vectors to columns of a Parquet file."""
    if isinstance(vectors, MultiVectors):
        width = vectors.values.shape[1]
        values = np.ascontiguousarray(vectors.values).ravel()
        flat = pa.FixedSizeListArray.from_arrays(pa.array(values), width)
        return {"vectors": pa.ListArray.from_arrays(vectors.starts.astype(np.int32), flat)}
    if isinstance(vectors, DualVectors):
        return _columns(vectors.sparse) | _columns(vectors.dense)
    if sparse.issparse(vectors):
        starts = pa.array(vectors.indptr.astype(np.int32))
        indices = pa.array(vectors.indices.astype(np.int32))
        return {
            "indices": pa.ListArray.from_arrays(starts, indices),
            "values": pa.ListArray.from_arrays(starts, pa.array(vectors.data)),
        }
    flat = pa.array(np.ascontiguousarray(vectors).ravel())
    return {"vector": pa.FixedSizeListArray.from_arrays(flat, vectors.shape[1])}


class Index:
    """The exact faiss index of dense vectors."""

    name = INDEX

    def __init__(self, folder: Path, vectors: np.ndarray) -> None:
        """Make an empty index for vectors of this width."""
        import faiss

        self.path = folder / INDEX
        self.index = faiss.IndexFlatIP(vectors.shape[1])

    def add(self, passages: pa.Table, vectors: np.ndarray) -> None:
        """Add the vectors of a batch."""
        del passages  # the ids are the rows
        self.index.add(np.ascontiguousarray(vectors))

    def close(self) -> None:
        """Write the file."""
        import faiss

        faiss.write_index(self.index, str(self.path))


class Impacts:
    """The JSON lines that Anserini indexes."""

    name = IMPACTS

    def __init__(self, folder: Path, pieces: Sequence[str]) -> None:
        """Open the file."""
        self.pieces = pieces
        self.file = open(folder / IMPACTS, "w", encoding="utf-8")  # noqa: SIM115

    def add(self, passages: pa.Table, vectors: sparse.csr_array) -> None:
        """Write one line per passage."""
        whole = rounded(vectors)
        names = passages["docid"].to_pylist()
        texts = passages["text"].to_pylist()
        for row, (name, text) in enumerate(zip(names, texts, strict=True)):
            own = slice(whole.indptr[row], whole.indptr[row + 1])
            weights = whole.data[own].tolist()
            pieces = [self.pieces[piece] for piece in whole.indices[own].tolist()]
            vector = dict(zip(pieces, weights, strict=True))
            line = {"id": name, "contents": text, "vector": vector}
            self.file.write(json.dumps(line, ensure_ascii=False) + "\n")

    def close(self) -> None:
        """Finish the file."""
        self.file.close()
