"""Passages, queries and judgments, read row by row and checked against each other, whatever they come from.

The passages are read twice: once to check everything, with 8 bytes kept of each id, and once to be written, in
batches. So what is wrong is known before anything is written, and 8.8 M passages need no more memory than a batch.

Counted and dropped, as evaluation tools do: passages without title and text, and the queries of a judged split that
have no judgment. A judgment of such a passage is counted and kept: every system misses what nobody can find, as in
trec_eval. Everything else that is wrong is an error.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, Protocol

from cdmae import collections
from cdmae.errors import InputError
from cdmae.log import Progress

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    import pyarrow as pa

    from cdmae.collections.store import Collection


class Rows(Protocol):
    """Rows that can be read more than once, from one file or something like it.

    (id, title, text) for passages, (id, text) for queries, (query_id, passage_id, grade) for judgments.
    """

    @property
    def path(self) -> Any:
        """What messages name, and what tells equal rows of several splits."""

    def rows(self) -> Iterator[tuple[int, tuple[Any, ...]]]:
        """Yield the number of each row, from 1, and what it holds."""


@dataclass(frozen=True)
class Parts:
    """What a collection is read from: queries and judgments by split; several splits may share their queries.

    In `published` collections, which nobody can mend, judgments of unknown passages are counted and kept, too, those of
    unknown queries and repeated ones counted and dropped.
    """

    passages: Rows
    queries: dict[str, Rows]
    qrels: dict[str, Rows]
    published: bool = False


# --- a whole collection ----------------------------------------------------------------------------------------------


def check(parts: Parts) -> dict[str, int]:
    """Read everything and keep no passages; raises `InputError` for the first fault. Returns `datasets.relevant`."""
    return collections.relevant(_read(parts)[2])


def load(parts: Parts, about: dict[str, Any]) -> Collection:
    """Read and check everything; the passages are read a second time as they are written."""
    from cdmae.collections.store import Collection

    passages, queries, qrels, counts = _read(parts)
    return Collection(_stream(parts.passages, passages), queries, qrels, {**about, **counts})


def _read(parts: Parts) -> tuple[int, dict[str, pd.DataFrame], dict[str, pd.DataFrame], dict[str, Any]]:
    """The number of passages with text, queries and judgments by split, and what was counted and dropped."""
    known, empty = _ids(parts.passages)
    passages = len(known) - len(empty)
    about = {"passages": passages, "passages without text, dropped": len(empty), "queries": {}}
    by_path = {rows.path: _queries(rows) for rows in parts.queries.values()}
    kept_queries, kept_qrels = {}, {}
    for split, rows in parts.queries.items():
        frame = by_path[rows.path]
        counts: dict[str, int] = {"read": len(frame)}
        if split in parts.qrels:
            judged, odd = _qrels(parts, split, frame, known, empty)
            frame = frame[frame["query_id"].isin(judged["query_id"])].reset_index(drop=True)
            counts |= {**odd, "judged": len(frame), "judgments": len(judged)}
            kept_qrels[split] = judged
        kept_queries[split] = frame
        about["queries"][split] = counts
    return passages, kept_queries, kept_qrels, about


def _ids(passages: Rows) -> tuple[Ids, Ids]:
    """The ids of all passages, and of those without title and text."""
    known, empty = Ids(), Ids()
    for _, (passage_id, title, text) in passages.rows():
        known.add(passage_id)
        if not _has_text(title, text):
            empty.add(passage_id)
    if len(known) == len(empty):
        raise InputError(f"{passages.path} holds no passages" + (": all are without text" if len(known) else ""))
    _check_unique(passages, known)
    return known, empty


def _has_text(title: str, text: str) -> bool:
    return bool(text.strip() or title.strip())


def _stream(passages: Rows, total: int) -> pa.RecordBatchReader:
    """The passages with text, batch by batch."""
    import pyarrow as pa

    from cdmae.collections.store import PASSAGES, ROW_GROUP

    def batches() -> Iterator[pa.RecordBatch]:
        kept = (row for _, row in passages.rows() if _has_text(*row[1:]))
        with Progress(total, unit="passages", label="collection") as progress:
            while batch := list(islice(kept, ROW_GROUP)):
                columns = [pa.array(column, pa.string()) for column in zip(*batch, strict=True)]
                yield pa.record_batch(columns, schema=PASSAGES)
                progress.advance(len(batch))

    return pa.RecordBatchReader.from_batches(PASSAGES, batches())


def _queries(queries: Rows) -> pd.DataFrame:
    import pandas as pd

    ids, texts, known = [], [], Ids()
    for number, (query_id, text) in queries.rows():
        if not text.strip():
            raise InputError(f"{queries.path}, line {number}: the query {query_id} has no text")
        known.add(query_id)
        ids.append(query_id)
        texts.append(text)
    if not ids:
        raise InputError(f"{queries.path} holds no queries")
    _check_unique(queries, known)
    return pd.DataFrame({"query_id": ids, "text": texts}, dtype="str")


def _qrels(
    parts: Parts, split: str, queries: pd.DataFrame, known: Ids, empty: Ids
) -> tuple[pd.DataFrame, dict[str, int]]:
    """The judgments of a split, without an id where the passage is not there, and how many are odd and why."""
    import numpy as np
    import pandas as pd

    qrels = parts.qrels[split]
    numbers, judged, hashes = array("q"), ([], [], array("h")), Ids()
    for number, row in qrels.rows():
        if not -(2**15) <= row[2] < 2**15:
            raise InputError(f"{qrels.path}, line {number}: the grade is {row[2]}; allowed: a small whole number")
        numbers.append(number)
        hashes.add(row[1])
        for column, value in zip(judged, row, strict=True):
            column.append(value)
    if not numbers:
        raise InputError(f"{qrels.path} holds no judgments; delete it if the split has none")
    frame = pd.DataFrame({"query_id": judged[0], "passage_id": judged[1]}, dtype="str").assign(
        grade=np.array(judged[2])
    )
    wrong = {
        "of unknown queries": ~frame["query_id"].isin(queries["query_id"]).to_numpy(),
        "of unknown passages": ~known.hold(hashes),
        "repeated": frame.duplicated(["query_id", "passage_id"]).to_numpy(),
    }
    lost = empty.hold(hashes)
    counts = {"judgments read": len(frame), "judgments of dropped passages": int(lost.sum())}
    for fault, rows in wrong.items():
        if not rows.any():
            continue
        if not parts.published:
            at = int(np.argmax(rows))
            raise _fault(
                fault, f"{qrels.path}, line {numbers[at]}", frame.iloc[at], parts.queries[split], parts.passages
            )
        counts[f"judgments {fault}"] = int(rows.sum())
    frame["passage_id"] = frame["passage_id"].mask(lost | wrong["of unknown passages"])
    dropped = wrong["of unknown queries"] | wrong["repeated"]
    return frame[~dropped].reset_index(drop=True), counts


def _fault(fault: str, where: str, row: pd.Series, queries: Rows, passages: Rows) -> InputError:
    if fault == "repeated":
        return InputError(f"{where} judges query {row['query_id']}, passage {row['passage_id']} a second time")
    name, known = ("query", queries) if fault == "of unknown queries" else ("passage", passages)
    return InputError(f"{where}: the {name} {row[f'{name}_id']} is not in {known.path}")


# --- ids -------------------------------------------------------------------------------------------------------------


class Ids:
    """The ids of a file as 64-bit hashes: 8 bytes each, where a set of strings takes about 120."""

    def __init__(self) -> None:
        """Begin without ids."""
        self._hashes = array("q")

    def __len__(self) -> int:
        """The number of ids, repeated ones included."""
        return len(self._hashes)

    def add(self, name: str) -> None:
        """Add an id."""
        self._hashes.append(hash(name))

    def array(self) -> np.ndarray:
        """The hashes in the order in which they came: int64."""
        import numpy as np

        return np.array(self._hashes, dtype=np.int64)

    def hold(self, others: Ids) -> np.ndarray:
        """Which of the other ids are among these: bool."""
        import numpy as np

        return np.isin(others.array(), self.array())

    def repeated(self) -> set[int]:
        """The hashes that came more than once."""
        import numpy as np

        found = np.sort(self.array())
        return set(found[1:][found[1:] == found[:-1]].tolist())


def _check_unique(rows: Rows, ids: Ids) -> None:
    """Raise for the first line whose id came before; reads the file again only if two hashes were equal."""
    repeated = ids.repeated()
    first: dict[str, int] = {}
    for number, row in rows.rows() if repeated else ():
        if hash(row[0]) in repeated and first.setdefault(row[0], number) != number:
            raise InputError(f"{rows.path}, line {number}: the id {row[0]} came already in line {first[row[0]]}")
