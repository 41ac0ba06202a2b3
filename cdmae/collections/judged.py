"""Read passages, queries and judgments from any source, and check that they are consistent.

Like evaluation tools, this module drops and counts passages without title and text. It also drops
and counts queries without a judgment if their split has judgments. Judgments of passages that are
dropped or absent are kept and counted: every system misses them, as in trec_eval and BEIR.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cdmae.collections import tables
from cdmae.errors import InputError
from cdmae.formats import plural
from cdmae.languages import scripts
from cdmae.log import say
from cdmae.terminal import printable

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

    from cdmae.collections.store import Collection

# the share of judgments whose queries or passages a collection may lack, as published ones do;
# wrong ids are usually wrong in all of them
MOST_ABSENT = 0.5
JUDGED = ("split", "query_id", "text", "passage_id", "grade")
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

    Several splits may share their queries.
    """

    passages: Rows
    queries: dict[str, Rows]
    qrels: dict[str, Rows]


def collected(
    passages: pa.Table, judged: pd.DataFrame, splits: Mapping[str, bool], about: dict[str, Any]
) -> Collection:
    """Make a collection from a frame with the columns `JUDGED`, which has a row per judgment.

    Of repeated judgments, the highest grade counts. splits: whether each keeps its judgments.
    """
    from cdmae.collections.store import Collection

    keys = ["split", "query_id", "passage_id"]
    judged["grade"] = judged.groupby(keys)["grade"].transform("max")
    judged = judged.drop_duplicates(keys)
    queries = {}
    qrels = {}
    for split, has_judgments in splits.items():
        rows = judged[judged["split"] == split]
        asked = rows[["query_id", "text"]]
        queries[split] = asked.drop_duplicates("query_id", ignore_index=True)
        if has_judgments:
            qrels[split] = rows[["query_id", "passage_id", "grade"]].reset_index(drop=True)
    return Collection(passages, queries, qrels, about)


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
        raise InputError(f"{parts.passages.path} holds no passages with text")
    return asked(parts, table, about | {"passages without text, dropped": len(read) - len(table)})


def asked(parts: Parts, table: pa.Table, about: dict[str, Any]) -> Collection:
    """Read and check the queries and judgments of the passages in a table."""
    from cdmae.collections.store import Collection

    ids = table["passage_id"].to_pandas()
    by_path = {rows.path: _queries(rows) for rows in parts.queries.values()}
    queries = {}
    qrels = {}
    read = {}
    for split, rows in parts.queries.items():
        frame = by_path[rows.path]
        read[split] = {"queries": len(frame)}
        if split in parts.qrels:
            qrels[split], found = _qrels(parts, split, frame["query_id"], ids)
            read[split] |= found
            frame = frame[frame["query_id"].isin(qrels[split]["query_id"])].reset_index(drop=True)
        queries[split] = frame
    return Collection(table, queries, qrels, about | {"read": read})


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
    repeated = frame[frame.iloc[:, 0].duplicated()]
    if len(repeated):
        where = f"{rows.path}, line {repeated['line'].iloc[0]}"
        raise InputError(f"{where}: the id {printable(repeated.iloc[0, 0])} is repeated")


def _qrels(
    parts: Parts, split: str, queries: pd.Series, passages: pd.Series
) -> tuple[pd.DataFrame, dict[str, int]]:
    """Return a split's judgments, and the number of irregular judgments of each kind.

    queries, passages: the ids of those that the collection has. Of repeated judgments, the highest
    grade counts.
    """
    rows = parts.qrels[split]
    frame = _frame(rows, "query_id", "passage_id", "grade")
    if frame.empty or frame["grade"].max() < 1:
        raise InputError(
            f"{rows.path} marks no passage as relevant for split {split}; expected judgments with "
            "a grade of 1 or more, or a split without judgments"
        )
    is_known = frame["passage_id"].isin(passages)
    is_asked = frame["query_id"].isin(queries)
    pair = ["query_id", "passage_id"]
    is_repeated = frame.duplicated(pair)
    if is_repeated.any():
        frame["grade"] = frame.groupby(pair)["grade"].transform("max")
        repeated = plural(int(is_repeated.sum()), "judgment")
        say(f"{rows.path} repeats {repeated}; the highest grade of a pair counts")
    for is_present, file in ((is_asked, parts.queries[split]), (is_known, parts.passages)):
        if 1 - is_present.mean() > MOST_ABSENT:
            query, passage, _, line = frame.iloc[int(is_present.argmin())]
            raise InputError(
                f"{rows.path}, line {line}: query {printable(query)}, passage "
                f"{printable(passage)}: not in {file.path}, like most others"
            )
    counts = {
        "judgments": len(frame),
        "judgments of unknown queries": int((~is_asked).sum()),
        "judgments of passages that are unknown or without text": int((~is_known).sum()),
        "judgments repeated": int(is_repeated.sum()),
    }
    frame["passage_id"] = frame["passage_id"].where(is_known)
    columns = ["query_id", "passage_id", "grade"]
    return frame.loc[is_asked & ~is_repeated, columns].reset_index(drop=True), counts
