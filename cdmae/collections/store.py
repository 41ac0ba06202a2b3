"""Store collections: passages, and by split the queries and their judgments."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from cdmae.arrays import open_parquet, read_batches, read_frame, reading
from cdmae.collections import check_rows
from cdmae.errors import InputError
from cdmae.files import complete, write_json
from cdmae.log import say

if TYPE_CHECKING:
    import pandas as pd

PASSAGES = pa.schema([("passage_id", pa.string()), ("title", pa.string()), ("text", pa.string())])
QUERIES = pa.schema([("split", pa.string()), ("query_id", pa.string()), ("text", pa.string())])
QRELS = pa.schema(
    [("split", pa.string()), ("query", pa.int32()), ("passage", pa.int32()), ("grade", pa.int16())]
)
EXCLUDED = -100  # the grade of a passage that its query's runs and groups must not have (BRIGHT)
ROW_GROUP = 1 << 17  # passages that are written together, and read together at most


@dataclass(frozen=True)
class Collection:
    """A source's passages, and per split its queries and judgments, by the source's own ids.

    passages: (passage_id, title, text), P rows, as a table, or as a stream that can be read once;
    queries: split -> frame (query_id, text); qrels: split -> frame (query_id, passage_id, grade),
    only for splits with judgments, without an id if a judged passage is missing; about: facts worth
    recording (versions, counts, drops with their reasons), JSON values.
    """

    passages: pa.Table | pa.RecordBatchReader
    queries: dict[str, pd.DataFrame]
    qrels: dict[str, pd.DataFrame]
    about: dict[str, Any]


def write_collection(folder: Path | str, collection: Collection) -> int:
    """Write the four files of a collection with row numbers for ids; return the passages' number P.

    Raises `InputError` for a judgment that names an unknown id. A judgment without an id gets the
    row P, which no run can contain.
    """
    import pandas as pd  # late, because most jobs do not need it

    folder = Path(folder)
    named = {name for frame in collection.qrels.values() for name in frame["passage_id"].dropna()}
    count, rows = _write_passages(folder / "passages.parquet", collection.passages, sorted(named))
    queries, qrels = [], []
    for split, frame in collection.queries.items():
        queries.append(frame[["query_id", "text"]].assign(split=split))
        if split not in collection.qrels:
            continue
        judged = collection.qrels[split]
        check_rows(len(frame), f"queries of split {split}")
        query_rows = pd.Series(np.arange(len(frame), dtype=np.int32), index=frame["query_id"])
        query = judged["query_id"].map(query_rows)
        lost = judged["passage_id"].isna()
        if lost.any():
            say(
                f"{lost.sum():,} judgments of split {split} are of passages that are not there: "
                "every run misses them"
            )
        passage = judged["passage_id"].map(rows).where(~lost, count)
        unknown = judged[query.isna() | passage.isna()]
        if len(unknown):
            raise InputError(
                f"the qrels of split {split} name an unknown id: {unknown.iloc[0].to_dict()}"
            )
        rows_of = pd.DataFrame(
            {"split": split, "query": query, "passage": passage, "grade": judged["grade"]}
        )
        qrels.append(rows_of.sort_values(["query", "passage"], kind="stable"))
    for name, schema, frames in (("queries", QUERIES, queries), ("qrels", QRELS, qrels)):
        frame = pd.concat(frames) if frames else pd.DataFrame(columns=schema.names)
        with complete(folder / f"{name}.parquet") as aside:
            table = pa.Table.from_pandas(frame, schema=schema, preserve_index=False)
            pq.write_table(table, aside, write_page_checksum=True)
    write_json(folder / "about.json", collection.about)
    return count


def _write_passages(
    path: Path, passages: pa.Table | pa.RecordBatchReader, judged: list[str]
) -> tuple[int, pd.Series]:
    """Write the passages, a row group at a time; return their number and the judged passages' rows.

    The rows are a series: id -> int32.
    """
    import pandas as pd

    if isinstance(passages, pa.Table):
        passages = passages.cast(PASSAGES).combine_chunks().to_reader(ROW_GROUP)
    names = pa.array(judged, pa.string())
    rows = np.full(len(judged), -1, dtype=np.int32)
    done = 0
    with (
        complete(path) as aside,
        pq.ParquetWriter(aside, PASSAGES, write_page_checksum=True) as writer,
    ):
        for batch in passages:
            check_rows(done + len(batch), "passages")
            indices = pc.index_in(batch["passage_id"], names)
            here = np.flatnonzero(indices.is_valid().to_numpy(zero_copy_only=False))
            rows[indices.drop_null().to_numpy()] = done + here
            writer.write_batch(batch)
            done += len(batch)
    return done, pd.Series(rows, index=judged)[rows >= 0]


def count_passages(folder: Path | str) -> int:
    """Return the number of passages P of a collection."""
    return int(_passages(folder)[1][-1])


def read_passages(folder: Path | str, columns: list[str] | None = None) -> pa.Table:
    """Read all passages of a collection: a table (passage_id, title, text), P rows.

    The passages of MS MARCO take 4 GB.
    """
    file = _passages(folder)[0]
    with reading(Path(folder) / "passages.parquet"):
        return file.read(columns)


def stream_passages(
    folder: Path | str,
    columns: list[str] | None = None,
    *,
    rows: int = ROW_GROUP // 8,
    first: int = 0,
    last: int | None = None,
) -> Iterator[pa.Table]:
    """Yield the passages from row `first` up to `last` (None: the end) in tables of `rows` rows.

    The last table may be shorter. Memory holds one table and the row group that it is cut from.
    """
    file, edges = _passages(folder)
    last = int(edges[-1]) if last is None else last
    groups = np.flatnonzero((edges[:-1] < last) & (edges[1:] > first) & (first < last))
    begin = int(edges[groups[0]]) if len(groups) else 0
    table = file.schema_arrow.empty_table().select(columns or PASSAGES.names)
    for batch in read_batches(
        file, Path(folder) / "passages.parquet", rows, groups.tolist(), columns
    ):
        inside = batch.slice(max(0, first - begin), max(0, last - max(first, begin)))
        begin += len(batch)
        table = pa.concat_tables([table, pa.Table.from_batches([inside])])
        while len(table) >= rows:
            yield table.slice(0, rows)
            table = table.slice(rows)
    if len(table):
        yield table


def take_passages(folder: Path | str, rows: np.ndarray) -> pa.Table:
    """Read the passages of some rows, in their order; read each row group that holds them once."""
    file, edges = _passages(folder)
    rows = np.asarray(rows, dtype=np.int64)
    group = np.searchsorted(edges, rows, side="right") - 1
    order = np.argsort(group, kind="stable")
    with reading(Path(folder) / "passages.parquet"):
        parts = [
            file.read_row_group(number).take(rows[order][group[order] == number] - edges[number])
            for number in np.unique(group).tolist()
        ]
    table = pa.concat_tables([file.schema_arrow.empty_table(), *parts])
    return table.take(np.argsort(order))


def _passages(folder: Path | str) -> tuple[pq.ParquetFile, np.ndarray]:
    """Return the file of a collection's passages and the edges of its row groups.

    edges: int64 [groups + 1].
    """
    file = open_parquet(Path(folder) / "passages.parquet", PASSAGES)
    lengths = [file.metadata.row_group(group).num_rows for group in range(file.num_row_groups)]
    return file, np.cumsum([0, *lengths])


def read_queries(folder: Path | str, split: str) -> pd.DataFrame:
    """Read the queries of a split: a frame (query_id, text), Q rows.

    The row number is the internal id.
    """
    return _read_split(folder, "queries", "queries", QUERIES, split)


def read_qrels(folder: Path | str, split: str) -> pd.DataFrame:
    """Read the judgments of a split: a frame (query int32, passage int32, grade int16), sorted.

    query and passage are row numbers. The row P represents judged passages that are not in the
    collection: measures count them, everything else ignores them.
    """
    return _read_split(folder, "qrels", "judgments", QRELS, split)


def _read_split(
    folder: Path | str, file: str, rows: str, schema: pa.Schema, split: str
) -> pd.DataFrame:
    frame = read_frame(Path(folder) / f"{file}.parquet", schema)
    splits = frame["split"].unique().tolist()
    if split not in splits:
        raise InputError(f"{folder} has no {rows} for split {split!r}; it has {splits or 'none'}")
    return frame.loc[frame["split"] == split, schema.names[1:]].reset_index(drop=True)
