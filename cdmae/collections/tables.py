"""Read the files of collections, and check their values; every source reads by this module.

A file is a table in JSONL, JSON (a list), CSV, TSV or Parquet, or has columns without a header,
like MS MARCO's files. Text may be compressed (``.gz``, ``.bz2``, ``.xz``, ``.zst``). Upper and
lower case of column names are equal. An error names the file and the line, or the row of a list or
Parquet file.
"""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import json
import lzma
import math
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from cdmae.errors import InputError
from cdmae.fields import show
from cdmae.files import check_file


def _open_zstd(path: Path, mode: str, **how: Any) -> TextIO:
    import pyarrow as pa

    return io.TextIOWrapper(io.BufferedReader(pa.input_stream(str(path))), **how)


PACKED = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open, ".zst": _open_zstd}
SUFFIXES = (".jsonl", ".json", ".csv", ".tsv", ".parquet")
IDS = ("_id", "id", "docid", "doc_id", "passage_id", "psg_id", "pid", "url")
TITLE = ("title", "heading")
TEXT = ("text", "contents", "content", "passage", "body")
QUERY_IDS = ("_id", "query_id", "query-id", "id", "qid")
GRADE = ("score", "grade", "relevance", "relevancy", "rel", "label")
# the names of a header that does not belong into a file without a header
_HEADER = {
    *IDS,
    *QUERY_IDS,
    *TITLE,
    *TEXT,
    *GRADE,
    "docno",
    "document",
    "query",
    "question",
    "topic",
}
_RATIO = 3  # the compression ratio of text, for estimates


@dataclass(frozen=True, slots=True)
class Row:
    """A row of a file; values: by the lower-case name of their column."""

    path: Path
    number: int
    values: dict[str, Any]

    def fault(self, words: str) -> InputError:
        """Return the error for this row."""
        return fault(self.path, self.number, words)

    def text(self, *names: str, required: bool = True) -> str:
        """Return the text of the first column of several that has a value; numbers are ids.

        Without a value, the text is empty unless it is required.
        """
        key = next((name for name in names if self.values.get(name) not in (None, "")), "")
        value = self.values.get(key, "")
        if isinstance(value, int) and not isinstance(value, bool):
            return str(value)
        if required and (not key or not str(value).strip()):
            columns = ", ".join(map(show, self.values))
            raise self.fault(f"{' or '.join(names)} is missing or empty; it has {columns}")
        if not isinstance(value, str):
            raise self.fault(f"{key} is {show(value)}; expected text")
        try:
            value.encode()
        except UnicodeEncodeError:  # JSON may escape half of a character
            raise self.fault(f"{key} is {show(value)}, which is not Unicode") from None
        return value

    def passage(
        self, titles: tuple[str, ...] = TITLE, texts: tuple[str, ...] = TEXT
    ) -> tuple[str, str, str]:
        """Return the id, title and text of a passage; only the text is required."""
        name = self.text(*IDS, required=False)
        return name, self.text(*titles, required=False), self.text(*texts)

    def values_of(self, key: str) -> list[Any]:
        """Return the values of a column, which may hold a list."""
        value = self.values.get(key)
        if value is None or value == "":
            return []
        return value if isinstance(value, list) else [value]

    def numbers(self, key: str) -> list[float]:
        """Return the finite numbers of a column; an empty list if the row has none."""
        found = []
        for value in self.values_of(key):
            try:
                number = float("nan" if isinstance(value, bool) else value)
            except (TypeError, ValueError, OverflowError):
                number = math.nan
            if not math.isfinite(number):
                raise self.fault(f"{key} has {show(value)}; expected finite numbers")
            found.append(number)
        return found

    def grade(self, *names: str) -> int:
        """Return the grade of a judgment, a whole number that fits into 16 bits."""
        name = next((name for name in names if name in self.values), "grade")
        (number,) = self.numbers(name) or [math.nan]
        if not number.is_integer() or abs(number) >= 2**15:
            words = f"the grade is {show(self.values.get(name))}; expected a whole number"
            raise self.fault(f"{words} from -32767 to 32767")
        return int(number)


def fault(path: Path, number: int, words: str) -> InputError:
    """Return the error for a row."""
    unit = "row" if suffix_of(path) in (".json", ".parquet") else "line"
    return InputError(words, place=f"{path}, {unit} {number}")


# --- passages, queries and judgments --------------------------------------------------------------


def passages(
    path: Path, columns: tuple[str, ...] = (), *, titles: bool = True
) -> Iterator[tuple[int, tuple[str, str, str]]]:
    """Yield the line, id, title and text of each passage; title and text may be empty."""
    for row in rows(path, columns):
        if row.values.keys().isdisjoint(TEXT):
            raise row.fault(f"no column {', '.join(TEXT)}; it has {', '.join(row.values)}")
        title = row.text(*TITLE, required=False) if titles else ""
        yield row.number, (row.text(*IDS), title, row.text(*TEXT, required=False))


def queries(path: Path, columns: tuple[str, ...] = ()) -> Iterator[tuple[int, tuple[str, str]]]:
    """Yield the line, id and text of each query."""
    for row in rows(path, columns):
        yield row.number, (row.text(*QUERY_IDS), row.text("text", "query"))


def judgments(path: Path) -> Iterator[tuple[int, tuple[str, str, int]]]:
    """Yield the line, query id, passage id and grade of each judgment.

    A line has three columns, or TREC's four; columns are separated by tabs, or else by spaces. The
    first line may be a header. A row of another table has the columns of the Hugging Face hub, or
    LoTTE's list of all relevant passages.
    """
    if suffix_of(path) == ".tsv":
        yield from _trec_judgments(path)
        return
    for row in rows(path):
        query = row.text(*QUERY_IDS)
        if "answer_pids" in row.values:
            for passage in row.values_of("answer_pids"):
                yield row.number, (query, str(passage), 1)
        else:
            passage = row.text("corpus-id", "corpus_id", *IDS[2:])
            yield row.number, (query, passage, row.grade(*GRADE))


def _trec_judgments(path: Path) -> Iterator[tuple[int, tuple[str, str, int]]]:
    for number, line in lines(path):
        cells = line.split("\t") if "\t" in line else line.split()
        if len(cells) not in (3, 4):
            words = "expected query id, passage id and grade, or the four columns of TREC"
            raise fault(path, number, f"{len(cells)} columns; {words}")
        query, *_, passage, grade = cells  # TREC's second column is not used
        if number > 1 or grade.strip().lower() not in GRADE:
            yield number, (query, passage, Row(path, number, {"grade": grade}).grade("grade"))


def texts(path: Path) -> Iterator[tuple[int, tuple[str, str]]]:
    """Yield the lines of a file of texts for passages: passage id, tab, text."""
    for row in rows(path, ("passage_id", "text")):
        yield row.number, (row.text("passage_id"), row.text("text", required=False))


# --- rows -----------------------------------------------------------------------------------------


def suffix_of(path: Path) -> str:
    """Return the suffix of a table's format, without that of a compression; else an empty text."""
    packed = path.suffix in PACKED
    suffix = (Path(path.stem) if packed else path).suffix.lower()
    is_table = suffix in SUFFIXES and not (packed and suffix == ".parquet")
    return suffix if is_table else ""


def rows(path: Path, columns: tuple[str, ...] = ()) -> Iterator[Row]:
    """Yield the rows of a table; columns: the columns of a file without header and quotation."""
    suffix = suffix_of(path)
    if suffix == ".parquet":
        found = _parquet(path)
    elif suffix in (".json", ".jsonl"):
        found = _objects(path)
    else:
        found = _delimited(path, "," if suffix == ".csv" else "\t", columns)
    for number, values in found:
        yield Row(path, number, {key.strip().casefold(): value for key, value in values.items()})


def size(paths: list[Path]) -> int:
    """Estimate the bytes of files without their compression."""
    packed = (*PACKED, ".parquet")
    return sum(path.stat().st_size * (_RATIO if path.suffix in packed else 1) for path in paths)


def lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the number of each line, from 1, and its text; empty lines are left out."""
    with opened(path) as file:
        for number, line in enumerate(file, start=1):
            if line.strip():
                yield number, line.rstrip("\r\n")


@contextmanager
def opened(path: Path, encoding: str = "utf-8-sig") -> Iterator[TextIO]:
    """Open a file of text, plain or compressed; raise `InputError` if it cannot be read."""
    check_file(path)
    open_text = PACKED.get(path.suffix, open)
    try:
        with open_text(path, "rt", encoding=encoding, newline="\n") as file:
            yield file
    except UnicodeDecodeError as error:
        with open_text(path, "rb") as file:
            numbered = enumerate(file, start=1)
            line = next(n for n, text in numbered if text.decode(errors="ignore").encode() != text)
        words = f"not UTF-8 ({error.reason}); convert the file to UTF-8"
        raise fault(path, line, words) from None
    except (OSError, EOFError, lzma.LZMAError) as error:
        raise InputError(f"{path} cannot be read ({error}); expected a complete file") from None


def _objects(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the objects of a list, or of a file with one object per line."""
    found: Iterator[tuple[int, Any]] = lines(path)
    _, first = next(lines(path), (0, ""))
    if suffix_of(path) == ".json" and first.lstrip().startswith("["):
        with opened(path) as file:
            try:
                found = enumerate(json.load(file), start=1)
            except (ValueError, RecursionError) as error:
                raise InputError(f"{path} is not JSON that can be read ({error})") from None
    for number, entry in found:
        try:
            value = json.loads(entry) if isinstance(entry, str) else entry
        except (ValueError, RecursionError) as error:
            words = f"not JSON that can be read ({error}); expected one object per line"
            raise fault(path, number, words) from None
        if not isinstance(value, dict):
            words = f"not a JSON object but {type(value).__name__}; expected one with columns"
            raise fault(path, number, words)
        yield number, value


def _delimited(
    path: Path, delimiter: str, columns: tuple[str, ...]
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the rows of a file with a header, or with `columns` and without quotation.

    A cell in quotation marks may contain line breaks.
    """
    csv.field_size_limit(sys.maxsize)
    quoting = csv.QUOTE_NONE if columns else csv.QUOTE_MINIMAL
    with opened(path) as file:
        reader = csv.DictReader(
            file, columns or None, delimiter=delimiter, strict=True, quoting=quoting
        )
        try:
            header = reader.fieldnames or [""]
            if len(header) == 1 and ";" in header[0]:
                words = f"one column, {header[0]}; expected columns separated by {show(delimiter)}"
                raise fault(path, 1, words)
            for values in reader:
                if None in values or None in values.values():
                    names = f"{', '.join(reader.fieldnames)}, separated by "
                    names += "tabs" if delimiter == "\t" else "commas"
                    words = f"another number of columns; expected {names}"
                    raise fault(path, reader.line_num, words)
                if reader.line_num == 1 and _HEADER.issuperset(map(str.lower, values.values())):
                    words = f"a header ({', '.join(values.values())}); delete the line"
                    raise fault(path, 1, words)
                yield reader.line_num, values
        except csv.Error as error:
            raise fault(path, reader.line_num + 1, f"not a row of the table ({error})") from None


def _parquet(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    check_file(path)
    number = 0
    try:
        with pq.ParquetFile(path) as file:
            for batch in file.iter_batches(1024):
                for values in batch.to_pylist():
                    number += 1
                    yield number, values
    except (UnicodeDecodeError, pa.ArrowInvalid, OSError) as error:
        raise InputError(f"{path} is not a Parquet file that can be read ({error})") from None
