"""Read passages, queries and judgments from text files or ir_datasets, and check them together.

The passages are read twice: once to check everything, and once to be written in batches. The first
pass keeps only their ids. Errors are therefore known before anything is written, and 8.8 M passages
need less than 1 GB of memory.

Like evaluation tools, this module counts and drops passages without title and text, and queries of
a judged split without a judgment. Judgments of a dropped passage are counted and kept: every system
misses them, as in trec_eval. Everything else that is wrong is an error.
"""

from __future__ import annotations

import gzip
import os
import re
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from cdmae.collections import Source
from cdmae.errors import InputError
from cdmae.fields import show
from cdmae.files import check_file
from cdmae.log import Progress
from cdmae.terminal import printable

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    import pyarrow as pa

    from cdmae.collections.store import Collection

_GRADE = re.compile(r"[+-]?[0-9]+")  # int() would take 1_0 and digits of other scripts, too
_SAMPLE = 1000  # lines from which the size of a file is estimated
_LONGEST = 2**26  # bytes of a line
_MOST_EMPTY = 1000  # lines at the end of a file
_SHOWN = 100  # characters of an id or a column, in messages
_MOST_DIGITS = 10  # of a grade, zeros in front included
_PACKED = 3  # how many times a text shrinks in a .gz


class Rows(Protocol):
    """Rows that can be read more than once; `path` is their name in messages.

    A row is (id, title, text) of a passage, (id, text) of a query, or (query_id, passage_id, grade)
    of a judgment.
    """

    @property
    def path(self) -> Any: ...  # noqa: D102

    def rows(self) -> Iterator[tuple[int, tuple[Any, ...]]]:
        """Yield the number of each row, from 1, and what it holds."""


@dataclass(frozen=True)
class Parts:
    """The inputs of a collection: passages, and queries and judgments by split.

    Several splits may share their queries. Users cannot correct a `published` collection. Its
    judgments of unknown passages are therefore counted and kept; its repeated judgments and its
    judgments of unknown queries are counted and dropped.
    """

    passages: Rows
    queries: dict[str, Rows]
    qrels: dict[str, Rows]
    published: bool = False


# --- a whole collection ---------------------------------------------------------------------------


def load(parts: Parts, about: dict[str, Any]) -> Collection:
    """Read and check everything; the passages are read a second time as they are written."""
    import pyarrow as pa

    from cdmae.collections.store import PASSAGES, Collection

    ids, has_text = _passage_ids(parts.passages)
    count, whole = int(has_text.sum()), len(has_text)
    about = {
        **about,
        "passages": count,
        "passages without text, dropped": whole - count,
        "queries": {},
    }
    by_path = {rows.path: _queries(rows) for rows in parts.queries.values()}
    queries, qrels = {}, {}
    for split, rows in parts.queries.items():
        frame = by_path[rows.path]
        counts: dict[str, int] = {"read": len(frame)}
        if split in parts.qrels:
            qrels[split], odd = _qrels(parts, split, frame, ids, has_text)
            frame = frame[frame["query_id"].isin(qrels[split]["query_id"])].reset_index(drop=True)
            counts |= {**odd, "judged": len(frame), "judgments": len(qrels[split])}
        queries[split] = frame
        about["queries"][split] = counts

    kept = ids.filter(pa.array(has_text))

    def passages() -> Iterator[pa.RecordBatch]:
        with Progress(count, unit="passages", label="collection") as progress:
            for batch in batches(
                (row for _, row in parts.passages.rows() if _has_text(row)), PASSAGES
            ):
                if kept.slice(progress.done, len(batch)) != pa.chunked_array([batch["passage_id"]]):
                    raise changed()
                yield batch
                progress.advance(len(batch))
            if progress.done < count:
                raise changed()

    def changed() -> InputError:
        words = (
            "changed while the collection was made from it: the second reading found other "
            "passages than the first"
        )
        return InputError(f"{parts.passages.path} {words}; wait until it is complete and run again")

    return Collection(
        pa.RecordBatchReader.from_batches(PASSAGES, passages()), queries, qrels, about
    )


def _passage_ids(passages: Rows) -> tuple[pa.ChunkedArray, np.ndarray]:
    """Return the ids of all passages, [P], and a mask of those with title or text, bool [P]."""
    import pyarrow as pa

    rows = ((row[0], _has_text(row)) for _, row in passages.rows())
    table = _table(rows, passage_id=pa.string(), has_text=pa.bool_())
    ids, has_text = table["passage_id"], table["has_text"].to_numpy()
    if not has_text.any():
        raise InputError(
            f"{passages.path} holds no passages" + (": all are without text" if len(ids) else "")
        )
    _check_unique(passages, ids)
    return ids, has_text


def _has_text(passage: tuple[str, str, str]) -> bool:
    return bool(passage[2].strip() or passage[1].strip())


def _queries(queries: Rows) -> pd.DataFrame:
    import pyarrow as pa

    table = _table((row for _, row in queries.rows()), query_id=pa.string(), text=pa.string())
    if not len(table):
        raise InputError(f"{queries.path} holds no queries")
    frame = table.to_pandas()
    for at in frame.index[frame["text"].str.strip() == ""][:1]:
        raise InputError(
            f"{queries.path}, line {_line(queries, at)}: the query "
            f"{_short(frame['query_id'][at])} has no text"
        )
    _check_unique(queries, table["query_id"])
    return frame


def _qrels(
    parts: Parts, split: str, queries: pd.DataFrame, ids: pa.ChunkedArray, has_text: np.ndarray
) -> tuple[pd.DataFrame, dict[str, int]]:
    """Return a split's judgments, without ids of missing passages, and counts of odd judgments."""
    import pyarrow as pa
    import pyarrow.compute as pc

    qrels = parts.qrels[split]
    table = _table(
        (row for _, row in qrels.rows()),
        query_id=pa.string(),
        passage_id=pa.string(),
        grade=pa.int16(),
    )
    frame = table.to_pandas()
    if frame.empty:
        raise InputError(f"{qrels.path} holds no judgments; delete it if the split has none")
    if frame["grade"].max() < 1:
        raise InputError(
            f"{qrels.path} marks no passage as relevant for split {split}: the highest grade is "
            f"{frame['grade'].max()}; "
            "allowed: judgments with a grade of 1 or more, or a split without judgments"
        )
    judged = pc.is_in(ids, value_set=table["passage_id"]).to_numpy()
    known, lost = (
        set(ids.filter(pa.array(chosen)).to_pylist()) for chosen in (judged, judged & ~has_text)
    )
    odd = {
        "of unknown queries": ~frame["query_id"].isin(queries["query_id"]),
        "of unknown passages": ~frame["passage_id"].isin(known),
        "repeated": frame.duplicated(["query_id", "passage_id"]),
    }
    without_text = frame["passage_id"].isin(lost)
    counts = {
        "judgments read": len(frame),
        "judgments of dropped passages": int(without_text.sum()),
    }
    for fault, rows in odd.items():
        if rows.any() and not parts.published:
            at = int(rows.argmax())
            query, passage = map(_short, frame.loc[at, ["query_id", "passage_id"]])
            words = {
                "of unknown queries": f": the query {query} is not in {parts.queries[split].path}",
                "of unknown passages": f": the passage {passage} is not in {parts.passages.path}",
                "repeated": f": the judgment of query {query}, passage {passage} is repeated",
            }
            raise InputError(f"{qrels.path}, line {_line(qrels, at)}{words[fault]}")
        counts |= {f"judgments {fault}": int(rows.sum())} if rows.any() else {}
    frame["passage_id"] = frame["passage_id"].mask(without_text | odd["of unknown passages"])
    return frame[~(odd["of unknown queries"] | odd["repeated"])].reset_index(drop=True), counts


def _table(rows: Iterable[tuple[Any, ...]], **types: pa.DataType) -> pa.Table:
    """Return rows as columns."""
    import pyarrow as pa

    return pa.Table.from_batches(batches(rows, pa.schema(types.items())), pa.schema(types.items()))


def batches(rows: Iterable[tuple[Any, ...]], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Yield rows as columns, in batches of the size of a row group."""
    import pyarrow as pa

    from cdmae.collections import store

    rows = iter(rows)
    while batch := list(islice(rows, store.ROW_GROUP)):
        columns = zip(schema.types, zip(*batch, strict=True), strict=True)
        yield pa.record_batch([pa.array(column, dtype) for dtype, column in columns], schema=schema)


def _check_unique(rows: Rows, ids: pa.ChunkedArray) -> None:
    """Raise `InputError` for the first row whose id already appears."""
    import pyarrow.compute as pc

    if pc.count_distinct(ids).as_py() < len(ids):
        names = ids.to_pandas()
        again = int(names.duplicated().argmax())
        first, second = (_line(rows, at) for at in (int((names == names[again]).argmax()), again))
        raise InputError(
            f"{rows.path}, line {second}: the id {_short(names[again])} is already on line {first}"
        )


def _short(value: str) -> str:
    """Shorten an id or a column for a message."""
    return printable(value, _SHOWN)


def _line(rows: Rows, at: int) -> int:
    """Return the number of row `at`, counted from 0 without a header."""
    return next(islice(rows.rows(), at, None))[0]


# --- text files -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class File:
    """A text file and the parser of its lines.

    The parser raises ValueError with the content of a line and what is allowed. `beir` and
    `msmarco` have the parsers, which return a row of `Rows`, or None for a header.
    """

    path: Path
    parse: Callable[[int, str], tuple[Any, ...] | None]

    def rows(self) -> Iterator[tuple[int, tuple[Any, ...]]]:
        """Yield the number of each line, from 1, and what it holds."""
        for number, line in lines(self.path):
            if (row := self._row(number, line)) is not None:
                yield number, row

    def size(self) -> tuple[int, float, int]:
        """Estimate the rows, the words in a row's last column, and the values in the first."""
        rows = 0
        words = 0
        read = 0
        first = set()
        for number, line in islice(lines(self.path), _SAMPLE):
            row = self._row(number, line)
            rows += 1
            read += len(line.encode()) + 1
            words += len(str(row[-1]).split()) if row else 0
            first.update(row[:1] if row else ())
        share = (
            read / (self.path.stat().st_size * (_PACKED if self.path.suffix == ".gz" else 1))
            if read
            else 1.0
        )
        whole = max(rows, round(rows / share)) if rows == _SAMPLE else rows
        return whole, words / max(1, rows), round(len(first) * whole / max(1, rows))

    def _row(self, number: int, line: str) -> tuple[Any, ...] | None:
        try:
            return self.parse(number, line)
        except ValueError as error:
            raise InputError(f"{self.path}, line {number}: {error}") from None


def lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the number of each line, from 1, and its text; ``.gz`` files are unpacked on the way.

    Empty lines at the end are ignored. Raises `InputError` for other empty lines, for bytes that
    are not UTF-8 and for damaged archives.
    """
    check_file(path)
    number = 0
    empty = 0
    try:
        with gzip.open(path) if path.suffix == ".gz" else open(path, "rb") as file:
            for number, raw in enumerate(iter(partial(file.readline, _LONGEST), b""), start=1):
                if len(raw) == _LONGEST:
                    raise InputError(
                        f"{path}, line {number} has more than {_LONGEST >> 20} MB; allowed: "
                        "shorter lines"
                    )
                if number == 1:
                    if raw[:2] == b"\x1f\x8b":
                        raise InputError(
                            f"{path} is a gzip archive; name it {path.name}.gz or unpack it"
                        )
                    raw = raw.removeprefix(b"\xef\xbb\xbf")
                line = raw.decode("utf-8").rstrip("\r\n")
                if not line or line.isspace():
                    empty = empty or number
                    if number - empty < _MOST_EMPTY:
                        continue
                if empty:
                    raise InputError(f"{path}, line {empty} is empty; every line holds one entry")
                yield number, line
    except UnicodeDecodeError as error:
        byte = error.object[error.start]
        raise InputError(
            f"{path}, line {number} is not UTF-8 (byte 0x{byte:02x}); convert the file to UTF-8"
        ) from None
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        where = f"after line {number}" if number else "at its beginning"
        raise InputError(
            f"{path} is not a complete gzip archive ({where}: {error}); fetch it again"
        ) from None
    except OSError as error:
        raise InputError(
            f"{path} cannot be read ({error.strerror or error}); allowed: a file"
        ) from None


def unpacked(path: Path, most: int) -> int:
    """Return the bytes of a file, unpacked if it is a ``.gz``; `most` is a limit for archives."""
    if path.suffix != ".gz" or not path.is_file():
        return path.stat().st_size
    try:
        with gzip.open(path) as file:
            return len(file.read(most))
    except (OSError, EOFError, zlib.error):  # its reader reports the error
        return path.stat().st_size


def grade(text: str) -> int:
    """Read the grade of a judgment.

    Raises ValueError, as parsers of lines do, for anything but a small whole number.
    """
    if not _GRADE.fullmatch(text.strip()):
        raise ValueError(f"the grade is {_short(text)}; allowed: a whole number")
    # int() refuses numbers of thousands of digits
    if len(text) > _MOST_DIGITS or not -(2**15) <= int(text) < 2**15:
        raise ValueError(
            f"the grade is {_short(text)}; allowed: a whole number from -32768 to 32767"
        )
    return int(text)


def find(folder: Path, stem: str, suffix: str, layout: str = "") -> Path | None:
    """Return the file `stem` + `suffix` in a folder, plain or with ``.gz`` after it; refuse both.

    If there is none, return None; with a `layout`, raise `InputError` for the folder.
    """
    paths = [
        path
        for path in (folder / f"{stem}{suffix}", folder / f"{stem}{suffix}.gz")
        if path.exists()
    ]
    if len(paths) == 2:
        raise InputError(
            f"{folder} holds both {paths[0].name} and {paths[1].name}; keep one of them"
        )
    if layout and not paths:
        raise InputError(
            f"path is {folder}, and {folder.absolute()} holds no {stem}{suffix} or "
            f"{stem}{suffix}.gz; allowed: a "
            f"folder in {layout} layout"
        )
    return paths[0] if paths else None


def by_split(folder: Path, prefix: str = "") -> dict[str, Path]:
    """Return the files ``{prefix}{split}.tsv`` of a folder by split, plain or packed (``.gz``)."""
    names = {path.name.removesuffix(".gz") for path in folder.glob(f"{prefix or '[!.]'}*.tsv*")}
    splits = sorted(name[len(prefix) : -len(".tsv")] for name in names if name.endswith(".tsv"))
    return {split: path for split in splits if (path := find(folder, f"{prefix}{split}", ".tsv"))}


def check_folder(path: str) -> Path:
    """Return the folder of a collection's files; raises `InputError` if it is no folder."""
    if not path.strip():
        raise InputError("path is empty; allowed: a folder")
    folder = Path(os.path.expanduser(path))
    check_readable(folder, f"path is {show(path)}, and {show(str(folder.absolute()))}")
    return folder


def check_readable(folder: Path, name: str) -> None:
    """Raise `InputError` if a folder, called `name`, does not exist or cannot be listed.

    Without this check, an unreadable folder would look empty.
    """
    try:
        next(os.scandir(folder), None)
    except (FileNotFoundError, NotADirectoryError) as error:
        state = "a file" if isinstance(error, NotADirectoryError) else "not there"
        raise InputError(
            f"{name} is {state}; allowed: a folder with the collection's files"
        ) from None
    except OSError as error:
        raise InputError(f"{name} cannot be read: {error.strerror}") from None


class Folder(Source):
    """The settings of a source of text files; all answers follow from the files in `parts`."""

    def parts(self) -> Parts:
        """Find the collection's files; raises `InputError` for missing files."""
        raise NotImplementedError

    def judged(self) -> dict[str, bool]:
        """Return split -> whether it has judgments, for every split with queries."""
        parts = self.parts()
        return {split: split in parts.qrels for split in parts.queries}

    def depends(self) -> list[Path]:
        """List the files from which the collection is made, each once."""
        parts = self.parts()
        files = [parts.passages, *parts.queries.values(), *parts.qrels.values()]
        return list(dict.fromkeys(file.path for file in files))

    def expected(self) -> tuple[int, float, dict[str, int]]:
        """Estimate the passages, the words per passage, and the queries by split.

        The estimate uses the files' sizes and their first lines.
        """
        parts = self.parts()
        passages, words, _ = parts.passages.size()
        queries = {
            split: parts.qrels.get(split, file).size()[2] for split, file in parts.queries.items()
        }
        return passages, words, queries

    def load(self, threads: int = 1) -> Collection:
        """Read the collection; `threads` is not used because nothing is computed."""
        return load(
            self.parts(),
            {"source": type(self).__module__.rpartition(".")[2], "titles": self.titles},
        )
