"""Read passages, queries and judgments from any source, and check that they are consistent.

Like evaluation tools, this module drops and counts passages without title and text. It also drops
and counts queries without a judgment if their split has judgments. Judgments of passages that are
dropped or absent are kept and counted: every system misses them, as in trec_eval and BEIR.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cdmae.collections import tables
from cdmae.errors import InputError
from cdmae.terminal import printable
from cdmae.tokens import scripts

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

    from cdmae.collections.store import Collection

# the share of judgments whose queries or passages a collection may lack, as published ones do
MOST_ABSENT = 0.1
_SHOWN = 100  # the most characters of an id in messages
_SAMPLE = 1000  # rows of each file from which the size of a collection is estimated


@dataclass(frozen=True)
class Rows:
    """Rows of files; messages name the first file.

    read: a function that yields (line, row) pairs of the files that it is given. A row is (id,
    title, text) of a passage, (id, text) of a query, or (query_id, passage_id, grade) of a
    judgment.
    """

    files: list[Any]
    read: Callable[[list[Any]], Iterator[tuple[int, tuple[Any, ...]]]]

    @classmethod
    def of(cls, files: list[Path], read: Callable[[Path], Iterator[Any]]) -> Rows:
        """Return the rows of files, each read by a function of its path."""
        return cls(files, lambda paths: chain.from_iterable(map(read, paths)))

    @property
    def path(self) -> Any:
        """Return the file that messages name."""
        return self.files[0]

    def rows(self) -> Iterator[tuple[int, tuple[Any, ...]]]:
        """Yield the line of each row, and the row."""
        return self.read(self.files)

    def size(self) -> tuple[int, float]:
        """Estimate the number of rows, and the words in the last column, from the first rows."""
        sample = [row for _, row in islice(self.rows(), _SAMPLE)]
        words = sum(len(scripts.words(str(row[-1]))) for row in sample) / max(1, len(sample))
        if len(sample) < _SAMPLE:
            return len(sample), words
        letters = sum(len(str(value).encode()) for row in sample for value in row)
        return round(tables.size(self.files) / letters * len(sample)), words


@dataclass(frozen=True)
class Parts:
    """Hold the inputs of a collection: its passages, and the queries and judgments of each split.

    Several splits may share their queries. Users cannot correct a `published` collection: any
    number of its judgments may be repeated, or be of unknown queries or passages.
    """

    passages: Rows
    queries: dict[str, Rows]
    qrels: dict[str, Rows]
    published: bool = False


def load(parts: Parts, about: dict[str, Any]) -> Collection:
    """Read and check all rows."""
    import pyarrow as pa
    import pyarrow.compute as pc

    from cdmae.collections.store import PASSAGES, table_of

    rows = ((*row, line) for line, row in parts.passages.rows())
    read = table_of(rows, PASSAGES.append(pa.field("line", pa.int64())))
    _check_unique(parts.passages, read.select(["passage_id", "line"]).to_pandas())
    whole = pc.binary_join_element_wise(read["title"], read["text"], "")
    table = read.filter(pc.not_equal(pc.utf8_trim_whitespace(whole), "")).select(PASSAGES.names)
    if not len(table):
        reason = ": no passage has any text" if len(read) else ""
        raise InputError(f"{parts.passages.path} holds no passages{reason}")
    about = {
        **about,
        "passages": len(table),
        "passages without text, dropped": len(read) - len(table),
    }
    return asked(parts, table, read["passage_id"].to_pandas(), about)


def asked(parts: Parts, table: pa.Table, every: pd.Series, about: dict[str, Any]) -> Collection:
    """Read and check the queries and judgments of passages.

    table: the passages. every: their ids, and those of passages without text.
    """
    from cdmae.collections.store import Collection

    about = {**about, "queries": {}}
    kept = table["passage_id"].to_pandas()
    by_path = {rows.path: _queries(rows) for rows in parts.queries.values()}
    queries = {}
    qrels = {}
    for split, rows in parts.queries.items():
        frame = by_path[rows.path]
        counts = {"read": len(frame)}
        if split in parts.qrels:
            qrels[split], found = _qrels(parts, split, frame, every, kept)
            frame = frame[frame["query_id"].isin(qrels[split]["query_id"])].reset_index(drop=True)
            counts |= {**found, "judged": len(frame), "judgments": len(qrels[split])}
        queries[split] = frame
        about["queries"][split] = counts
    return Collection(table, queries, qrels, about)


def _frame(rows: Rows, *columns: str) -> pd.DataFrame:
    """Return rows as a frame, with their lines."""
    import pandas as pd

    values = [(*row, line) for line, row in rows.rows()]
    return pd.DataFrame(values, columns=[*columns, "line"])


def _queries(rows: Rows) -> pd.DataFrame:
    frame = _frame(rows, "query_id", "text")
    if frame.empty:
        raise InputError(f"{rows.path} holds no queries; add queries or delete the file")
    _check_unique(rows, frame)
    return frame[["query_id", "text"]]


def _check_unique(rows: Rows, frame: pd.DataFrame) -> None:
    """Raise `InputError` for the first row with a repeated id, which is in the first column."""
    ids = frame.iloc[:, 0]
    repeated = ids.duplicated()
    if repeated.any():
        row = int(repeated.argmax())
        first = frame["line"][int((ids == ids[row]).argmax())]
        where = f"{rows.path}, line {frame['line'][row]}"
        raise InputError(f"{where}: the id {_short(ids[row])} is already on line {first}")


def _qrels(
    parts: Parts, split: str, queries: pd.DataFrame, every: pd.Series, kept: pd.Series
) -> tuple[pd.DataFrame, dict[str, int]]:
    """Return a split's judgments, and the number of irregular judgments of each kind.

    every, kept: the ids of all passages, and of those with text.
    """
    rows = parts.qrels[split]
    frame = _frame(rows, "query_id", "passage_id", "grade")
    highest = frame["grade"].max()
    if frame.empty:
        raise InputError(f"{rows.path} holds no judgments; delete it if the split has none")
    if highest < 1:
        raise InputError(
            f"{rows.path} marks no passage as relevant for split {split}: the highest grade is "
            f"{highest}; expected judgments with a grade of 1 or more, or a split without judgments"
        )
    has_text = frame["passage_id"].isin(kept)
    is_known = frame["passage_id"].isin(every)
    irregular = {
        "of unknown queries": ~frame["query_id"].isin(queries["query_id"]),
        "of unknown passages": ~is_known,
        "repeated": frame.duplicated(["query_id", "passage_id"]),
    }
    counts = {
        "judgments read": len(frame),
        "judgments of dropped passages": int((is_known & ~has_text).sum()),
    }
    for fault, mask in irregular.items():
        most = 1.0 if parts.published else 0.0 if fault == "repeated" else MOST_ABSENT
        if mask.mean() > most:
            query, passage, _, line = frame.iloc[int(mask.argmax())]
            reason = {
                "of unknown queries": f"the query is not in {parts.queries[split].path}",
                "of unknown passages": f"the passage is not in {parts.passages.path}",
                "repeated": "the judgment is repeated",
            }[fault]
            words = f"query {_short(query)}, passage {_short(passage)}: {reason}"
            raise InputError(f"{rows.path}, line {line}: {words}")
        if mask.any():
            counts[f"judgments {fault}"] = int(mask.sum())
    frame["passage_id"] = frame["passage_id"].where(has_text)
    kept_rows = ~(irregular["of unknown queries"] | irregular["repeated"])
    columns = ["query_id", "passage_id", "grade"]
    return frame.loc[kept_rows, columns].reset_index(drop=True), counts


def _short(value: str) -> str:
    """Shorten an id for a message."""
    return printable(value, _SHOWN)
