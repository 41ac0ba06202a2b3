"""Read the rows of a table: JSONL, CSV, TSV or Parquet, the text formats also compressed (``.gz``).

Errors name the file and the line, or the row of a Parquet file.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import zlib
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from cdmae.collections.text_files import lines
from cdmae.errors import InputError
from cdmae.fields import show
from cdmae.files import check_file

SUFFIXES = (".jsonl", ".csv", ".tsv", ".parquet")
_DELIMITERS = {".csv": ",", ".tsv": "\t"}
_LONGEST = 2**26  # the most characters of a cell
_BLOCK = 2**20  # bytes that are read together to count lines
_BATCH = 1024  # rows of a Parquet file that are in memory together

Row = dict[str, Any]


def suffix_of(path: Path) -> str:
    """Return the suffix of a table's format, without ``.gz``; empty for another file."""
    suffix = Path(path.name.removesuffix(".gz")).suffix.lower()
    packed_parquet = suffix == ".parquet" and path.suffix == ".gz"
    return suffix if suffix in SUFFIXES and not packed_parquet else ""


def rows(path: Path) -> Iterator[tuple[int, Row]]:
    """Yield the line of each row, or its number in a Parquet file, and its values by column."""
    suffix = suffix_of(path)
    if not suffix:
        raise InputError(f"{path} is not a table; allowed: {', '.join(SUFFIXES)}, or .gz of text")
    if suffix == ".parquet":
        yield from _parquet(path)
    elif suffix == ".jsonl":
        for number, line in lines(path):
            yield number, _object(path, number, line)
    else:
        yield from _delimited(path, _DELIMITERS[suffix])


def count(path: Path) -> int:
    """Count the lines of a table, or the rows of a Parquet file."""
    if suffix_of(path) == ".parquet":
        import pyarrow.parquet as pq

        return pq.read_metadata(path).num_rows
    try:
        with gzip.open(path) if path.suffix == ".gz" else open(path, "rb") as binary:
            blocks = iter(partial(binary.read, _BLOCK), b"")
            return sum(block.count(b"\n") for block in blocks)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise _incomplete(path, error) from None


def _incomplete(path: Path, error: Exception) -> InputError:
    return InputError(f"{path} is not a complete gzip archive ({error})")


def fault(path: Path, number: int, words: str) -> InputError:
    """Return the error for a row."""
    unit = "row" if suffix_of(path) == ".parquet" else "line"
    return InputError(f"{path}, {unit} {number}: {words}")


def _object(path: Path, number: int, line: str) -> Row:
    try:
        entry = json.loads(line)
    except json.JSONDecodeError as error:
        words = f"not JSON ({error.msg} at column {error.colno}); allowed: one object per line"
        raise fault(path, number, words) from None
    except (RecursionError, ValueError):  # a number with thousands of digits
        raise fault(path, number, "not JSON that can be read; allowed: an object") from None
    if not isinstance(entry, dict):
        words = f"not a JSON object but {type(entry).__name__}; allowed: an object with columns"
        raise fault(path, number, words)
    return entry


def _delimited(path: Path, delimiter: str) -> Iterator[tuple[int, Row]]:
    """Yield the rows below a header; a cell in quotation marks may contain line breaks."""
    check_file(path)
    csv.field_size_limit(_LONGEST)
    header: list[str] = []
    first = 1  # the first line of a row
    try:
        with (
            gzip.open(path) if path.suffix == ".gz" else open(path, "rb") as binary,
            io.TextIOWrapper(binary, encoding="utf-8-sig", newline="") as text,
        ):
            reader = csv.reader(text, delimiter=delimiter, strict=True)
            for cells in reader:
                if not header:
                    header = cells
                    _check_header(path, header)
                elif len(cells) not in (0, len(header)):  # 0: an empty line
                    words = f"{len(cells)} columns, but the header has {len(header)}"
                    raise fault(path, first, words)
                elif cells:
                    yield first, dict(zip(header, cells, strict=True))
                first = reader.line_num + 1
    except csv.Error as error:
        raise fault(path, first, f"not a row of the table ({error})") from None
    except UnicodeDecodeError as error:
        byte = error.object[error.start]
        words = f"{path} is not UTF-8 (byte 0x{byte:02x} after line {first - 1})"
        raise InputError(f"{words}; convert the file to UTF-8") from None
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise _incomplete(path, error) from None
    except OSError as error:
        reason = error.strerror or error
        raise InputError(f"{path} cannot be read ({reason}); allowed: a file") from None


def _check_header(path: Path, header: list[str]) -> None:
    repeated = [name for name in header if header.count(name) > 1]
    if repeated:
        raise fault(path, 1, f"the column {show(repeated[0])} is listed twice")


def _parquet(path: Path) -> Iterator[tuple[int, Row]]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    check_file(path)
    try:
        with pq.ParquetFile(path) as file:
            number = 0
            _check_header(path, file.schema_arrow.names)
            for batch in file.iter_batches(_BATCH):
                for row in batch.to_pylist():
                    number += 1
                    yield number, row
    except UnicodeDecodeError:
        raise fault(path, number + 1, "a text is not UTF-8; convert the file to UTF-8") from None
    except (pa.ArrowInvalid, OSError) as error:
        raise InputError(f"{path} is not a Parquet file that can be read ({error})") from None
