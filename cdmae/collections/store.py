"""Store collections: their passages, and the queries and judgments of each split."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

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
# the grade of a passage that must not appear in its query's runs and groups (BRIGHT)
EXCLUDED = -100
ROW_GROUP = 1 << 17  # the most passages that are written or read together


@dataclass(frozen=True)
class Collection:
    """Hold passages, and the queries and judgments of each split, with the source's own ids.

    passages: a table (passage_id, title, text), P rows, of which MS MARCO's take 4 GB. queries: for
    each split, a frame (query_id, text). qrels: for each split with judgments, a frame (query_id,
    passage_id, grade); passage_id is missing if the passage is not in the collection. about: facts
    to record as JSON values, such as versions, and the numbers of dropped rows. shared: the
    folder of another collection that has the same passages, which are linked instead of written.
    """

    passages: pa.Table
    queries: dict[str, pd.DataFrame]
    qrels: dict[str, pd.DataFrame]
    about: dict[str, Any]
    shared: Path | None = None

    def rows(self) -> Iterator[tuple[str, str, str]]:
        """Yield the (id, title, text) of every passage."""
        for batch in self.passages.to_batches(ROW_GROUP):
            columns = (batch[name].to_pylist() for name in PASSAGES.names)
            yield from zip(*columns, strict=True)


def table_of(rows: Iterable[tuple[Any, ...]], schema: pa.Schema = PASSAGES) -> pa.Table:
    """Convert rows, by default passages (id, title, text), to a table."""
    rows = iter(rows)
    parts = [schema.empty_table()]
    while True:
        part = list(islice(rows, ROW_GROUP))
        if not part:
            return pa.concat_tables(parts)
        columns = [list(column) for column in zip(*part, strict=True)]
        parts.append(pa.table(columns, schema=schema))


def write_collection(folder: Path | str, collection: Collection) -> int:
    """Write the four files of a collection, with row numbers as ids; return the passage count P.

    A judgment without a passage id gets the row P, which no run can contain.
    """
    import pandas as pd  # imported late, because most jobs do not need it

    folder = Path(folder)
    passages = collection.passages.cast(PASSAGES)
    queries = []
    qrels = []
    for split, frame in collection.queries.items():
        queries.append(frame[["query_id", "text"]].assign(split=split))
        if split in collection.qrels:
            query_rows = pd.Series(np.arange(len(frame), dtype=np.int32), index=frame["query_id"])
            judgments = collection.qrels[split]
            qrels.append(_numbered(split, judgments, query_rows, passages["passage_id"]))
    with complete(folder / "passages.parquet") as aside:
        if collection.shared:
            aside.symlink_to(Path(os.path.relpath(collection.shared, folder), "passages.parquet"))
        else:
            _say_repeated(passages)
            pq.write_table(passages, aside, row_group_size=ROW_GROUP, write_page_checksum=True)
    _write_frames(folder / "queries.parquet", QUERIES, queries)
    _write_frames(folder / "qrels.parquet", QRELS, qrels)
    counts = {
        "passages": len(passages),
        "queries": {split: len(frame) for split, frame in collection.queries.items()},
        "judgments": {split: len(frame) for split, frame in collection.qrels.items()},
    }
    write_json(folder / "about.json", collection.about | counts)
    return len(passages)


def _say_repeated(passages: pa.Table) -> None:
    """Say how many passages repeat an earlier one: a judged passage competes with its copies."""
    import pandas as pd

    texts = passages.select(["title", "text"]).to_batches(ROW_GROUP)
    hashes = [pd.util.hash_pandas_object(part.to_pandas(), index=False) for part in texts]
    repeated = int(pd.concat(hashes).duplicated().sum()) if hashes else 0
    if repeated:
        say(
            f"{repeated:,} of {len(passages):,} passages repeat the title and text of another: a "
            "copy of a relevant passage counts as not relevant"
        )


def _numbered(
    split: str, judgments: pd.DataFrame, query_rows: pd.Series, ids: pa.ChunkedArray
) -> pd.DataFrame:
    """Replace the ids in a split's judgments with row numbers, and sort the judgments.

    query_rows: the row of each query. ids: of all passages.
    """
    import pandas as pd

    lost = judgments["passage_id"].isna()
    if lost.any():
        say(
            f"{lost.sum():,} judgments of split {split} are for passages that do not exist: they "
            "count as relevant, and every run misses them"
        )
    judged = pa.array(judgments["passage_id"], pa.string())
    passage = pc.index_in(judged, ids.combine_chunks()).fill_null(len(ids))
    rows = pd.DataFrame(
        {
            "split": split,
            "query": judgments["query_id"].map(query_rows).to_numpy(),
            "passage": passage.to_numpy(),
            "grade": judgments["grade"].to_numpy(),
        }
    )
    return rows.sort_values(["query", "passage"], kind="stable")


def _write_frames(path: Path, schema: pa.Schema, frames: list[pd.DataFrame]) -> None:
    """Write the rows of all splits into one file."""
    import pandas as pd

    frame = pd.concat(frames) if frames else pd.DataFrame(columns=schema.names)
    with complete(path) as aside:
        frame.to_parquet(aside, index=False, schema=schema, write_page_checksum=True)


def count_passages(folder: Path | str) -> int:
    """Return the number of passages P of a collection."""
    return int(_passages(folder)[1][-1])


def read_passages(folder: Path | str, columns: list[str] | None = None) -> pa.Table:
    """Read all passages of a collection: a table (passage_id, title, text), P rows.

    The passages of MS MARCO take 4 GB.
    """
    return _passages(folder)[0].read(columns)


def stream_passages(
    folder: Path | str,
    columns: list[str] | None = None,
    *,
    rows: int = ROW_GROUP // 8,
    first: int = 0,
    last: int | None = None,
) -> Iterator[pa.Table]:
    """Yield the passages from row `first` up to `last` (None: the end) in tables of up to `rows`.

    Memory holds one row group of the file.
    """
    file, edges = _passages(folder)
    last = int(edges[-1]) if last is None else last
    for group, (begin, end) in enumerate(pairwise(edges.tolist())):
        if begin < last and end > first:
            table = file.read_row_group(group, columns)
            inside = range(max(first, begin) - begin, min(last, end) - begin, rows)
            for row in inside:
                yield table.slice(row, min(rows, inside.stop - row))


def take_passages(folder: Path | str, rows: np.ndarray) -> pa.Table:
    """Read the passages of `rows`, in their order; each row group is read at most once."""
    file, edges = _passages(folder)
    rows = np.asarray(rows, dtype=np.int64)
    group_of = np.searchsorted(edges, rows, side="right") - 1
    parts = [file.schema_arrow.empty_table()]
    for group in np.unique(group_of).tolist():
        inside = rows[group_of == group] - edges[group]
        parts.append(file.read_row_group(group).take(inside))
    by_group = np.argsort(group_of, kind="stable")
    return pa.concat_tables(parts).take(np.argsort(by_group))


def _passages(folder: Path | str) -> tuple[pq.ParquetFile, np.ndarray]:
    """Open the passages of a collection; also return the first row of each of its row groups.

    The first rows are int64 [groups + 1]; the last value is the number of passages.
    """
    file = pq.ParquetFile(Path(folder) / "passages.parquet", page_checksum_verification=True)
    lengths = [file.metadata.row_group(group).num_rows for group in range(file.num_row_groups)]
    return file, np.cumsum([0, *lengths])


def read_queries(folder: Path | str, split: str) -> pd.DataFrame:
    """Read the queries of a split: a frame (query_id, text), Q rows.

    The row number is the internal id.
    """
    return _read_split(folder, "queries", QUERIES, split)


def read_qrels(folder: Path | str, split: str) -> pd.DataFrame:
    """Read the judgments of a split: a frame (query int32, passage int32, grade int16), sorted.

    query and passage are row numbers. The row P represents judged passages that are not in the
    collection: measures count them, everything else ignores them.
    """
    return _read_split(folder, "qrels", QRELS, split)


def _read_split(folder: Path | str, name: str, schema: pa.Schema, split: str) -> pd.DataFrame:
    file = pq.ParquetFile(Path(folder) / f"{name}.parquet", page_checksum_verification=True)
    frame = file.read().to_pandas()
    splits = frame["split"].unique().tolist()
    if split not in splits:
        raise InputError(f"{folder} has no {name} for split {split!r}; it has {splits or 'none'}")
    return frame.loc[frame["split"] == split, schema.names[1:]].reset_index(drop=True)
