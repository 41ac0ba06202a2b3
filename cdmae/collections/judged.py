"""Read passages, queries and judgments from any source, and check that they are consistent.

The passages are read twice: once to check everything, and once to be written in batches. The first
pass keeps only their ids. Errors are therefore known before anything is written, and 8.8 M passages
need less than 1 GB of memory.

Like evaluation tools, this module drops and counts passages without title and text. It also drops
and counts queries without a judgment if their split has judgments. Judgments of a dropped passage
are kept and counted: every system misses them, as in trec_eval. All other faults are errors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cdmae.collections import tables
from cdmae.errors import InputError
from cdmae.log import Progress
from cdmae.terminal import printable
from cdmae.tokens import scripts

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    import pyarrow as pa

    from cdmae.collections.store import Collection

# the share of judgments whose passages a collection may lack, as published ones do
MOST_ABSENT = 0.1
_SHOWN = 100  # the most characters of an id in messages
_SAMPLE = 1000  # rows of each file from which the size of a collection is estimated


@dataclass(frozen=True)
class Rows:
    """Rows of files that can be read more than once; messages name the first file.

    read: a function that yields (line, row) pairs of the files that it is given. A row is (id,
    title, text) of a passage, (id, text) of a query, or (query_id, passage_id, grade) of a
    judgment.
    """

    files: list[Any]
    read: Callable[[list[Any]], Iterator[tuple[int, tuple[Any, ...]]]]

    @classmethod
    def of(cls, file: Path, read: Callable[..., Iterator[Any]], *arguments: Any) -> Rows:
        """Return the rows of a single file."""
        return cls([file], lambda files: read(*files, *arguments))

    @property
    def path(self) -> Any:
        """Return the file that messages name."""
        return self.files[0]

    def rows(self) -> Iterator[tuple[int, tuple[Any, ...]]]:
        """Yield the line of each row, and the row."""
        return self.read(self.files)

    def size(self) -> tuple[int, float, int]:
        """Estimate the rows, the words per last column, and the values in the first column.

        The numbers in the first rows of each file are scaled up to the lines of the file.
        """
        number = 0.0
        values = 0.0
        words = 0
        rows = 0
        for file in self.files:
            sample = list(islice(self.read([file]), _SAMPLE))
            last = max((line for line, _ in sample), default=1)
            times = 1.0
            if len(sample) == _SAMPLE:
                times = max(1.0, tables.estimated_lines(file, last) / last)
            rows += len(sample)
            words += sum(len(scripts.words(str(row[-1]))) for _, row in sample)
            number += times * len(sample)
            values += times * len({row[0] for _, row in sample})
        return round(number), words / max(1, rows), round(values)


@dataclass(frozen=True)
class Parts:
    """Hold the inputs of a collection: its passages, and the queries and judgments of each split.

    Several splits may share their queries. Judgments of a few unknown passages are counted and
    kept. Users cannot correct a `published` collection: it may have more of them, and its repeated
    judgments and its judgments of unknown queries are counted and dropped.
    """

    passages: Rows
    queries: dict[str, Rows]
    qrels: dict[str, Rows]
    published: bool = False


def load(parts: Parts, about: dict[str, Any]) -> Collection:
    """Read and check all rows; the passages are read a second time while they are written."""
    import pyarrow as pa

    from cdmae.collections.store import PASSAGES, Collection

    ids, has_text = _passage_ids(parts.passages)
    count = int(has_text.sum())
    about = {
        **about,
        "passages": count,
        "passages without text, dropped": len(ids) - count,
        "queries": {},
    }
    by_path = {rows.path: _queries(rows) for rows in parts.queries.values()}
    queries = {}
    qrels = {}
    for split, rows in parts.queries.items():
        frame = by_path[rows.path]
        counts = {"read": len(frame)}
        if split in parts.qrels:
            qrels[split], found = _qrels(parts, split, frame, ids, has_text)
            frame = frame[frame["query_id"].isin(qrels[split]["query_id"])].reset_index(drop=True)
            counts |= {**found, "judged": len(frame), "judgments": len(qrels[split])}
        queries[split] = frame
        about["queries"][split] = counts

    stream = _passages(parts.passages, ids.filter(pa.array(has_text)))
    reader = pa.RecordBatchReader.from_batches(PASSAGES, stream)
    return Collection(reader, queries, qrels, about)


# --- passages -------------------------------------------------------------------------------------


def _passage_ids(passages: Rows) -> tuple[pa.ChunkedArray, np.ndarray]:
    """Return the ids of all passages, [P], and a mask of those with title or text, bool [P]."""
    import pyarrow as pa

    rows = ((row[0], _has_text(row)) for _, row in passages.rows())
    table = _table(rows, passage_id=pa.string(), has_text=pa.bool_())
    ids = table["passage_id"]
    has_text = table["has_text"].to_numpy()
    if not has_text.any():
        reason = ": no passage has any text" if len(ids) else ""
        raise InputError(f"{passages.path} holds no passages{reason}")
    _check_unique(passages, ids)
    return ids, has_text


def _passages(passages: Rows, ids: pa.ChunkedArray) -> Iterator[pa.RecordBatch]:
    """Yield the passages with title or text in batches; raise `InputError` if `ids` differ."""
    import pyarrow as pa

    from cdmae.collections.store import PASSAGES

    changed = InputError(
        f"{passages.path} changed while the collection was made from it: the second reading found "
        "other passages than the first; wait until it is complete and run again"
    )
    rows = (row for _, row in passages.rows() if _has_text(row))
    with Progress(len(ids), unit="passages", label="collection") as progress:
        for batch in batches(rows, PASSAGES):
            expected = ids.slice(progress.done, len(batch))
            if expected != pa.chunked_array([batch["passage_id"]]):
                raise changed
            yield batch
            progress.advance(len(batch))
        if progress.done < len(ids):
            raise changed


def _has_text(passage: tuple[str, str, str]) -> bool:
    _, title, text = passage
    return bool(text.strip() or title.strip())


# --- queries and judgments ------------------------------------------------------------------------


def _queries(queries: Rows) -> pd.DataFrame:
    import pyarrow as pa

    table = _table((row for _, row in queries.rows()), query_id=pa.string(), text=pa.string())
    if not len(table):
        raise InputError(f"{queries.path} holds no queries; add queries or delete the file")
    _check_unique(queries, table["query_id"])
    return table.to_pandas()


def _qrels(
    parts: Parts, split: str, queries: pd.DataFrame, ids: pa.ChunkedArray, has_text: np.ndarray
) -> tuple[pd.DataFrame, dict[str, int]]:
    """Return a split's judgments, and the number of irregular judgments of each kind."""
    import pyarrow as pa
    import pyarrow.compute as pc

    rows = (row for _, row in parts.qrels[split].rows())
    types = {"query_id": pa.string(), "passage_id": pa.string(), "grade": pa.int16()}
    table = _table(rows, **types)
    frame = table.to_pandas()
    _check_relevant(parts.qrels[split], split, frame)
    judged = pc.is_in(ids, value_set=table["passage_id"]).to_numpy()
    known = ids.filter(pa.array(judged)).to_pandas()
    dropped = ids.filter(pa.array(judged & ~has_text)).to_pandas()
    irregular = {
        "of unknown queries": ~frame["query_id"].isin(queries["query_id"]),
        "of unknown passages": ~frame["passage_id"].isin(known),
        "repeated": frame.duplicated(["query_id", "passage_id"]),
    }
    without_text = frame["passage_id"].isin(dropped)
    counts = {
        "judgments read": len(frame),
        "judgments of dropped passages": int(without_text.sum()),
    }
    for fault, mask in irregular.items():
        if not mask.any():
            continue
        is_rare = fault == "of unknown passages" and mask.mean() <= MOST_ABSENT
        if not (parts.published or is_rare):
            raise _irregular(parts, split, fault, frame, int(mask.argmax()))
        counts[f"judgments {fault}"] = int(mask.sum())
    frame["passage_id"] = frame["passage_id"].mask(without_text | irregular["of unknown passages"])
    kept = ~(irregular["of unknown queries"] | irregular["repeated"])
    return frame[kept].reset_index(drop=True), counts


def _check_relevant(qrels: Rows, split: str, frame: pd.DataFrame) -> None:
    """Raise `InputError` for judgments that mark no passage as relevant."""
    if frame.empty:
        raise InputError(f"{qrels.path} holds no judgments; delete it if the split has none")
    highest = frame["grade"].max()
    if highest < 1:
        raise InputError(
            f"{qrels.path} marks no passage as relevant for split {split}: the highest grade is "
            f"{highest}; expected judgments with a grade of 1 or more, or a split without judgments"
        )


def _irregular(parts: Parts, split: str, fault: str, frame: pd.DataFrame, index: int) -> InputError:
    """Return the error for the judgment in row `index` of `frame`."""
    query = _short(frame["query_id"][index])
    passage = _short(frame["passage_id"][index])
    reasons = {
        "of unknown queries": f"the query {query} is not in {parts.queries[split].path}",
        "of unknown passages": f"the passage {passage} is not in {parts.passages.path}",
        "repeated": f"the judgment of query {query}, passage {passage} is repeated",
    }
    return InputError(f"{_where(parts.qrels[split], index)}: {reasons[fault]}")


# --- rows -----------------------------------------------------------------------------------------


def _table(rows: Iterable[tuple[Any, ...]], **types: pa.DataType) -> pa.Table:
    """Convert rows to a table with one column per type."""
    import pyarrow as pa

    schema = pa.schema(types.items())
    return pa.Table.from_batches(batches(rows, schema), schema)


def batches(rows: Iterable[tuple[Any, ...]], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Convert rows to record batches of the size of a row group."""
    import pyarrow as pa

    from cdmae.collections import store

    rows = iter(rows)
    while batch := list(islice(rows, store.ROW_GROUP)):
        values = zip(*batch, strict=True)
        columns = [
            pa.array(column, dtype) for column, dtype in zip(values, schema.types, strict=True)
        ]
        yield pa.record_batch(columns, schema=schema)


def _check_unique(rows: Rows, ids: pa.ChunkedArray) -> None:
    """Raise `InputError` for the first row with a repeated id."""
    import pyarrow.compute as pc

    if pc.count_distinct(ids).as_py() == len(ids):
        return
    names = ids.to_pandas()
    repeated = int(names.duplicated().argmax())
    name = names[repeated]
    first = _line(rows, int((names == name).argmax()))
    raise InputError(f"{_where(rows, repeated)}: the id {_short(name)} is already on line {first}")


def _short(value: str) -> str:
    """Shorten an id for a message."""
    return printable(value, _SHOWN)


def _where(rows: Rows, index: int) -> str:
    return f"{rows.path}, line {_line(rows, index)}"


def _line(rows: Rows, index: int) -> int:
    """Return the line number of a row, given its index, which starts at 0 after any header."""
    number, _ = next(islice(rows.rows(), index, None))
    return number
