"""Passages, queries and judgments in text files: read line by line, every fault named with its file and line.

What a line means is the business of the layout (`beir`, `msmarco`), which gives each file its parser. Ids are kept as
hashes of 8 bytes and texts in Arrow buffers, so that 8.8 M passages take about the size of their text.

Counted and dropped, as evaluation tools do: passages without title and text, and the queries of a judged split that
have no judgment. Everything else that is wrong is an error.
"""

from __future__ import annotations

import gzip
import zlib
from array import array
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cdmae.errors import InputError

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    import pyarrow as pa

    from cdmae import files

_BATCH = 1 << 16  # passages per Arrow batch


@dataclass(frozen=True)
class File:
    """A file and the parser of its lines, which raises ValueError saying what was found and what is allowed.

    Lines give (id, title, text) in a file of passages, (id, text) of queries, (query_id, passage_id, grade) of
    judgments, or None for a header.
    """

    path: Path
    parse: Callable[[int, str], tuple[Any, ...] | None]

    def rows(self) -> Iterator[tuple[int, tuple[Any, ...]]]:
        """Yield the number of each line, from 1, and what it holds."""
        for number, line in lines(self.path):
            try:
                row = self.parse(number, line)
            except ValueError as error:
                raise InputError(f"{self.path}, line {number}: {error}") from None
            if row is not None:
                yield number, row


def lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the number of each line, from 1, and its text; ``.gz`` files are unpacked on the way.

    Empty lines at the end are passed over; one in the middle, bytes that are not UTF-8 and damaged archives are errors.
    """
    number, empty = 0, 0
    try:
        with gzip.open(path) if path.suffix == ".gz" else open(path, "rb") as file:
            for number, raw in enumerate(file, start=1):
                if number == 1:
                    if raw[:2] == b"\x1f\x8b":
                        raise InputError(f"{path} is a gzip archive; name it {path.name}.gz or unpack it")
                    raw = raw.removeprefix(b"\xef\xbb\xbf")
                line = raw.decode("utf-8").rstrip("\r\n")
                if not line or line.isspace():
                    empty = empty or number
                    continue
                if empty:
                    raise InputError(f"{path}, line {empty} is empty; every line holds one entry")
                yield number, line
    except UnicodeDecodeError as error:
        found = error.object[error.start]
        raise InputError(
            f"{path}, line {number} is not UTF-8 (byte 0x{found:02x}); convert the file to UTF-8"
        ) from None
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        where = f"after line {number}" if number else "at its beginning"
        raise InputError(f"{path} is not a complete gzip archive ({where}: {error}); fetch it again") from None
    except (FileNotFoundError, IsADirectoryError, PermissionError) as error:
        raise InputError(f"{path} cannot be read ({error.strerror}); allowed: a file") from None


def find(folder: Path, stem: str, suffix: str) -> Path | None:
    """The file `stem` + `suffix` in a folder, plain or with ``.gz`` after it, or None; both are an `InputError`."""
    found = [path for path in (folder / f"{stem}{suffix}", folder / f"{stem}{suffix}.gz") if path.exists()]
    if len(found) == 2:
        raise InputError(f"{folder} holds both {found[0].name} and {found[1].name}; keep one of them")
    return found[0] if found else None


def check_folder(path: str) -> Path:
    """The folder of a collection's files; raises `InputError` where it is none."""
    folder = Path(path).expanduser()
    if not folder.is_dir():
        found = "a file" if folder.exists() else "not there"
        raise InputError(f"path {path} is {found}; allowed: a folder with the collection's files")
    return folder


# --- a whole collection ----------------------------------------------------------------------------------------------


def check(passages: File, queries: dict[str, File], qrels: dict[str, File]) -> None:
    """Read everything and keep nothing; raises `InputError` for the first fault."""
    read(passages, queries, qrels, {}, keep=False)


def load(passages: File, queries: dict[str, File], qrels: dict[str, File], about: dict[str, Any]) -> files.Collection:
    """Read everything; `queries` and `qrels` are by split, and several splits may share a file of queries."""
    return read(passages, queries, qrels, about, keep=True)


def read(
    passages: File, queries: dict[str, File], qrels: dict[str, File], about: dict[str, Any], *, keep: bool
) -> files.Collection:
    """Read and check all files; without `keep` the passages are not collected."""
    import pyarrow as pa

    from cdmae import files

    batches, known, empty = _passages(passages, keep)
    about = {
        **about,
        "passages": len(known) - len(empty),
        "passages without text, dropped": len(empty),
        "queries": {},
    }
    by_path = {file.path: _queries(file) for file in queries.values()}
    kept_queries, kept_qrels = {}, {}
    for split, file in queries.items():
        frame = by_path[file.path]
        counts: dict[str, int] = {"read": len(frame)}
        if split in qrels:
            judged, counts["judgments of dropped passages"] = _qrels(
                qrels[split], frame, file.path, known, empty, passages
            )
            frame = frame[frame["query_id"].isin(judged["query_id"])].reset_index(drop=True)
            counts |= {"judged": len(frame), "judgments": len(judged)}
            kept_qrels[split] = judged
        kept_queries[split] = frame
        about["queries"][split] = counts
    table = pa.Table.from_batches(batches, schema=files.PASSAGES)
    return files.Collection(table, kept_queries, kept_qrels, about)


def _passages(file: File, keep: bool) -> tuple[list[pa.RecordBatch], Ids, Ids]:
    import pyarrow as pa

    from cdmae import files

    batches: list[pa.RecordBatch] = []
    known, empty = Ids(), Ids()
    columns: tuple[list[str], list[str], list[str]] = ([], [], [])

    def flush() -> None:
        batches.append(pa.record_batch([pa.array(column, pa.string()) for column in columns], schema=files.PASSAGES))
        for column in columns:
            column.clear()

    for _, (passage_id, title, text) in file.rows():
        known.add(passage_id)
        if not (text.strip() or title.strip()):
            empty.add(passage_id)
        elif keep:
            for column, value in zip(columns, (passage_id, title, text), strict=True):
                column.append(value)
            if len(columns[0]) == _BATCH:
                flush()
    if len(known) == len(empty):
        raise InputError(f"{file.path} holds no passages" + (": all are without text" if len(known) else ""))
    flush()
    _check_unique(file, known)
    return batches, known, empty


def _queries(file: File) -> pd.DataFrame:
    import pandas as pd

    ids, texts, known = [], [], Ids()
    for number, (query_id, text) in file.rows():
        if not text.strip():
            raise InputError(f"{file.path}, line {number}: the query {query_id} has no text")
        known.add(query_id)
        ids.append(query_id)
        texts.append(text)
    if not ids:
        raise InputError(f"{file.path} holds no queries")
    _check_unique(file, known)
    return pd.DataFrame({"query_id": ids, "text": texts}, dtype="str")


def _qrels(
    file: File, queries: pd.DataFrame, queries_path: Path, known: Ids, empty: Ids, passages: File
) -> tuple[pd.DataFrame, int]:
    """The judgments of a split, and how many were dropped because their passages were."""
    import numpy as np
    import pandas as pd

    numbers, judged, hashes = array("q"), ([], [], array("h")), Ids()
    for number, row in file.rows():
        if not -(2**15) <= row[2] < 2**15:
            raise InputError(f"{file.path}, line {number}: the grade is {row[2]}; allowed: a small whole number")
        numbers.append(number)
        hashes.add(row[1])
        for column, value in zip(judged, row, strict=True):
            column.append(value)
    if not numbers:
        raise InputError(f"{file.path} holds no judgments; delete it if the split has none")
    frame = pd.DataFrame({"query_id": judged[0], "passage_id": judged[1]}, dtype="str").assign(
        grade=np.array(judged[2])
    )
    for name, is_known, where in (
        ("query", frame["query_id"].isin(queries["query_id"]).to_numpy(), queries_path),
        ("passage", known.hold(hashes), passages.path),
    ):
        if not is_known.all():
            at = int(np.argmin(is_known))
            unknown = frame.iloc[at][f"{name}_id"]
            raise InputError(f"{file.path}, line {numbers[at]}: the {name} {unknown} is not in {where}")
    twice = frame.duplicated(["query_id", "passage_id"]).to_numpy()
    if twice.any():
        at = int(np.argmax(twice))
        query, passage, _ = frame.iloc[at]
        raise InputError(f"{file.path}, line {numbers[at]} judges query {query}, passage {passage} a second time")
    dropped = empty.hold(hashes)
    return frame[~dropped].reset_index(drop=True), int(dropped.sum())


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


def _check_unique(file: File, ids: Ids) -> None:
    """Raise for the first line whose id came before; reads the file again only if two hashes were equal."""
    repeated = ids.repeated()
    first: dict[str, int] = {}
    for number, row in file.rows() if repeated else ():
        if hash(row[0]) in repeated and first.setdefault(row[0], number) != number:
            raise InputError(f"{file.path}, line {number}: the id {row[0]} came already in line {first[row[0]]}")
