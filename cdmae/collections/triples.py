"""Published training triples (query id, positive id, negative id) as a run: the official negatives of MS MARCO.

The file of 397,768,673 lines is read in blocks. A query's lines stand together there, one for every pair of a positive
and a negative, so that negatives repeat; the order in which they stand is kept, best first, and is all that is known of
their rank. Ids are numbers. Shapes: `Q` queries of the split, `P` passages of the collection.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
from pyarrow import csv

from cdmae.errors import InputError
from cdmae.files import check_file
from cdmae.log import Progress
from cdmae.runs import Run

BLOCK = 1 << 26  # bytes of text at a time
_COLUMNS = ("query", "positive", "negative")


def read(path: Path | str, queries: pa.Array, passages: pa.Array, depth: int) -> Run:
    """Read the first `depth` distinct negatives of every query; queries and passages are the ids, string [Q] and [P].

    Raises `InputError` for a file of another form, and for one of another collection: an unknown passage.
    """
    query_rows, passage_rows = _index(queries), _index(passages)
    negatives_of: list[list[np.ndarray]] = [[] for _ in range(len(queries))]
    with Progress(0, unit="triples", label="negatives") as progress:
        for batch in _batches(path):
            negative = passage_rows.get_indexer(batch["negative"].to_numpy()).astype(np.int32)
            if (negative < 0).any():
                unknown = batch["negative"][int(np.argmax(negative < 0))]
                raise InputError(f"{path} names the passage {unknown}, which is not in the collection")
            numbers = batch["query"].to_numpy()
            begins = np.flatnonzero(np.diff(numbers, prepend=numbers[0] - 1))
            ends = [*begins[1:], len(numbers)]
            for query, begin, end in zip(query_rows.get_indexer(numbers[begins]), begins, ends, strict=True):
                if query >= 0:  # those without judgments are not in the split
                    negatives_of[query].append(_distinct(negative[begin:end]))
            progress.advance(len(numbers))
    ranked = [_distinct(np.concatenate(parts))[:depth] if parts else np.empty(0, np.int32) for parts in negatives_of]
    if not any(map(len, ranked)):
        raise InputError(f"{path} has none of the {len(queries):,} queries of the split")
    return Run.of(ranked, [-np.arange(len(rows), dtype=np.float32) for rows in ranked])


def _batches(path: Path | str) -> Iterator[pa.RecordBatch]:
    check_file(path)
    try:
        with pa.input_stream(str(path), compression="gzip" if str(path).endswith(".gz") else None) as stream:
            yield from csv.open_csv(
                stream,
                read_options=csv.ReadOptions(column_names=_COLUMNS, block_size=BLOCK),
                parse_options=csv.ParseOptions(delimiter="\t", quote_char=False),
                convert_options=csv.ConvertOptions(column_types=dict.fromkeys(_COLUMNS, pa.int64())),
            )
    except (pa.ArrowInvalid, OSError) as error:
        raise InputError(f"{path} is damaged, or its lines are not query, positive and negative id: {error}") from None


def _index(ids: pa.Array) -> pd.Index:
    """Return the ids as numbers, in the order of their rows."""
    try:
        return pd.Index(ids.cast(pa.int64()).to_numpy(zero_copy_only=False))
    except pa.ArrowInvalid as error:
        raise InputError(
            f"triples name queries and passages by numbers, and the collection does not: {error}"
        ) from None


def _distinct(rows: np.ndarray) -> np.ndarray:
    """Each row once, in the order of their first appearance."""
    return rows[np.sort(np.unique(rows, return_index=True)[1])]
