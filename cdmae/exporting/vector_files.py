"""A collection's passages with their vectors, for vector databases and search engines.

``passages.parquet`` has the columns docid, vector and text, one row per passage in the order of the
collection:

dense           vector: float32 [D]
sparse          indices and values instead: the word-pieces with a weight, and their weights
multi-vector    vectors instead: float16 [t, D], one per word-piece

text is the model's input: the title, a space and the text. ``passages.faiss`` is an exact index of
dense vectors by inner product; its ids are the rows of the Parquet file.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import faiss
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from scipy import sparse

from cdmae.collections.store import count_passages, stream_passages
from cdmae.errors import InputError
from cdmae.log import Progress
from cdmae.retrieval.kinds.dual import DualVectors
from cdmae.retrieval.kinds.multi import MultiVectors

if TYPE_CHECKING:
    from cdmae.retrieval.shards import Shard, Vectors

TABLE = "passages.parquet"
INDEX = "passages.faiss"


def write(folder: Path, collection: Path | str, shards: Sequence[Shard]) -> None:
    """Write the passages of a collection and their vectors, in the collection's order.

    A faiss index is held in memory until it is written. Raises `InputError` if there is not one
    vector per passage.
    """
    passages = count_passages(collection)
    vectors = sum(map(len, shards))
    if passages != vectors:
        raise InputError(
            f"{collection} has {passages:,} passages, but the run has vectors of {vectors:,}; "
            "./run with the same config files updates the vectors"
        )
    writer = None
    index = None
    first = 0
    with Progress(passages, unit="passages", label="export") as progress:
        for shard in shards:
            batch = shard[:]
            docids, texts = _texts(collection, first, first + len(shard))
            table = pa.table({"docid": docids, **_columns(batch), "text": texts})
            writer = writer or pq.ParquetWriter(folder / TABLE, table.schema)
            writer.write_table(table)
            if isinstance(batch, np.ndarray):
                index = index or faiss.IndexFlatIP(batch.shape[1])
                index.add(np.ascontiguousarray(batch))
            first += len(shard)
            progress.advance(len(shard))
    if writer:
        writer.close()
    if index:
        faiss.write_index(index, str(folder / INDEX))


def _texts(collection: Path | str, first: int, last: int) -> tuple[pa.Array, pa.Array]:
    """Return the ids of some passages, and their texts as models read them."""
    passages = pa.concat_tables(stream_passages(collection, first=first, last=last))
    title = passages["title"]
    text = passages["text"]
    both = pc.binary_join_element_wise(title, text, " ")
    return passages["passage_id"], pc.if_else(pc.equal(title, ""), text, both)


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
