"""Find the text files of a collection, plain or compressed (``.gz``), and read their lines.

Errors name the file and its line. `beir` and `msmarco` define the parsers of the lines.
"""

from __future__ import annotations

import gzip
import os
import re
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cdmae.collections import Source, judged
from cdmae.collections.leakage import check_shares, expected_after, hold_out, judged_after
from cdmae.errors import InputError
from cdmae.fields import show
from cdmae.files import check_file
from cdmae.terminal import printable

if TYPE_CHECKING:
    from cdmae.collections.store import Collection

_GRADE = re.compile(r"[+-]?[0-9]+")  # int() would accept 1_0 and digits of other scripts, too
_MOST_DIGITS = 10  # of a grade, including leading zeros
_SAMPLE = 1000  # lines from which the size of a file is estimated
_LONGEST = 2**26  # the most bytes of a line
_MOST_EMPTY = 1000  # lines at the end of a file
_SHOWN = 100  # characters of a column, in messages
_PACKED = 3  # the compression ratio of text in a .gz


class Folder(Source):
    """Hold the settings of a source of text files; all methods use the files of `parts`."""

    def __post_init__(self) -> None:
        """Raise an error if `holdout` leaves no training queries, or if its seed has no effect."""
        check_shares(self.holdout, self.holdout_seed)

    def parts(self) -> judged.Parts:
        """Find the collection's files; raises `InputError` for missing files."""
        raise NotImplementedError

    def judged(self) -> dict[str, bool]:
        """Return, for each split with queries, whether it has judgments."""
        parts = self.parts()
        judged = {split: split in parts.qrels for split in parts.queries}
        return judged_after(judged, self.holdout, self.path)

    def depends(self) -> list[Path]:
        """List the files from which the collection is made, without duplicates."""
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
        return passages, words, expected_after(queries, self.holdout)

    def load(self, threads: int = 1) -> Collection:
        """Read the collection; `threads` is not used because nothing is computed."""
        self.judged()  # checks `holdout`
        name = type(self).__module__.rpartition(".")[2]
        collection = judged.load(self.parts(), {"source": name, "titles": self.titles})
        return hold_out(collection, self.holdout, self.holdout_seed)


@dataclass(frozen=True)
class File:
    """Combine a text file and the parser of its lines.

    The parser returns a row of `judged.Rows`, or None for a header. For an invalid line it raises
    ValueError; the message describes the line and the allowed content.
    """

    path: Path
    parse: Callable[[int, str], tuple[Any, ...] | None]

    def rows(self) -> Iterator[tuple[int, tuple[Any, ...]]]:
        """Yield the number of each line, from 1, and its row."""
        for number, line in lines(self.path):
            row = self._row(number, line)
            if row is not None:
                yield number, row

    def size(self) -> tuple[int, float, int]:
        """Estimate the rows, the words per last column, and the values in the first column."""
        rows = 0
        words = 0
        read = 0
        first = set()
        for number, line in islice(lines(self.path), _SAMPLE):
            rows += 1
            read += len(line.encode()) + 1
            row = self._row(number, line)
            if row is not None:
                words += len(str(row[-1]).split())
                first.add(row[0])
        estimate = rows
        if rows == _SAMPLE:
            bytes_in_all = self.path.stat().st_size * (_PACKED if _is_packed(self.path) else 1)
            estimate = max(rows, round(rows / (read / bytes_in_all)))
        return estimate, words / max(1, rows), round(len(first) * estimate / max(1, rows))

    def _row(self, number: int, line: str) -> tuple[Any, ...] | None:
        try:
            return self.parse(number, line)
        except ValueError as error:
            raise InputError(f"{self.path}, line {number}: {error}") from None


def text_of_passage(number: int, line: str) -> tuple[str, str]:
    """Parse a line of texts that a model wrote for passages: passage id, tab, text."""
    del number
    columns = line.split("\t")
    if len(columns) != 2 or not columns[0]:
        raise ValueError(
            f"{len(columns)} columns separated by tabs; allowed: a passage id and a text"
        )
    return columns[0], columns[1]


# --- lines ----------------------------------------------------------------------------------------


def lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the number of each line, from 1, and its text; ``.gz`` files are decompressed.

    Empty lines at the end are ignored. Raises `InputError` for other empty lines, for bytes that
    are not UTF-8 and for damaged archives.
    """
    check_file(path)
    number = 0
    first_empty = 0
    try:
        with gzip.open(path) if _is_packed(path) else open(path, "rb") as file:
            for number, raw in enumerate(iter(partial(file.readline, _LONGEST), b""), start=1):
                if len(raw) == _LONGEST:
                    raise InputError(
                        f"{path}, line {number} has more than {_LONGEST >> 20} MB; allowed: "
                        "shorter lines"
                    )
                if number == 1:
                    raw = _without_mark(path, raw)
                line = raw.decode("utf-8").rstrip("\r\n")
                if not line or line.isspace():
                    first_empty = first_empty or number
                    if number - first_empty < _MOST_EMPTY:
                        continue
                if first_empty:
                    raise InputError(
                        f"{path}, line {first_empty} is empty; delete it: each line is an entry"
                    )
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
        reason = error.strerror or error
        raise InputError(f"{path} cannot be read ({reason}); allowed: a file") from None


def _without_mark(path: Path, line: bytes) -> bytes:
    """Remove the byte-order mark of a file's first line; raise `InputError` for an archive."""
    if line.startswith(b"\x1f\x8b"):
        raise InputError(f"{path} is a gzip archive; name it {path.name}.gz or unpack it")
    return line.removeprefix(b"\xef\xbb\xbf")


def _is_packed(path: Path) -> bool:
    return path.suffix == ".gz"


def unpacked(path: Path, most: int) -> int:
    """Return the size of a file's content in bytes; decompress ``.gz`` files up to `most`."""
    if not _is_packed(path) or not path.is_file():
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
    found = f"the grade is {printable(text, _SHOWN)}"
    if not _GRADE.fullmatch(text.strip()):
        raise ValueError(f"{found}; allowed: a whole number")
    # int() refuses numbers of thousands of digits
    if len(text) > _MOST_DIGITS or not -(2**15) <= int(text) < 2**15:
        raise ValueError(f"{found}; allowed: a whole number from -32768 to 32767")
    return int(text)


# --- folders --------------------------------------------------------------------------------------


def find(folder: Path, stem: str, suffix: str, layout: str = "") -> Path | None:
    """Return the file `stem` + `suffix` in a folder, plain or compressed (``.gz``), or None.

    Raises `InputError` if both exist, or if neither exists and a `layout` requires one.
    """
    plain = folder / f"{stem}{suffix}"
    packed = folder / f"{stem}{suffix}.gz"
    paths = [path for path in (plain, packed) if path.exists()]
    if len(paths) == 2:
        raise InputError(f"{folder} holds both {plain.name} and {packed.name}; keep one of them")
    if layout and not paths:
        raise InputError(
            f"path is {folder}, and {folder.absolute()} holds no {plain.name} or {packed.name}; "
            f"allowed: a folder in {layout} layout"
        )
    return paths[0] if paths else None


def by_split(folder: Path, prefix: str = "") -> dict[str, Path]:
    """Return the files ``{prefix}{split}.tsv`` of a folder, by split, plain or compressed."""
    names = {path.name.removesuffix(".gz") for path in folder.glob(f"{prefix or '[!.]'}*.tsv*")}
    splits = sorted(name[len(prefix) : -len(".tsv")] for name in names if name.endswith(".tsv"))
    paths = {split: find(folder, f"{prefix}{split}", ".tsv") for split in splits}
    return {split: path for split, path in paths.items() if path}


def check_folder(path: str) -> Path:
    """Return the path as a folder; raise `InputError` if it is not a folder."""
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
