"""Collections in text files: found in a folder, read line by line, every fault named with its file and line.

What a line means is the business of the layout (`beir`, `msmarco`), which gives each file its parser.
"""

from __future__ import annotations

import gzip
import os
import re
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cdmae.collections import judged
from cdmae.collections.judged import Parts
from cdmae.errors import InputError

if TYPE_CHECKING:
    from cdmae.collections.store import Collection
_GRADE = re.compile(r"[+-]?[0-9]+")  # int() would take 1_0 and digits of other scripts, too
_SAMPLE = 1000  # lines that the size of a file is told from
_PACKED = 3  # how many times a text shrinks in a .gz


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


def grade(text: str) -> int:
    """The grade of a judgment; raises ValueError, as parsers of lines do, for anything but a whole number."""
    if not _GRADE.fullmatch(text.strip()):
        raise ValueError(f"the grade is {text!r}; allowed: a whole number")
    return int(text)


def find(folder: Path, stem: str, suffix: str) -> Path | None:
    """The file `stem` + `suffix` in a folder, plain or with ``.gz`` after it, or None; both are an `InputError`."""
    found = [path for path in (folder / f"{stem}{suffix}", folder / f"{stem}{suffix}.gz") if path.exists()]
    if len(found) == 2:
        raise InputError(f"{folder} holds both {found[0].name} and {found[1].name}; keep one of them")
    return found[0] if found else None


def check_folder(path: str) -> Path:
    """The folder of a collection's files; raises `InputError` where it is none."""
    folder = Path(path).expanduser()
    check_readable(folder, f"path is {path}, and {folder.absolute()}")
    return folder


def check_readable(folder: Path, name: str) -> None:
    """Raise `InputError` where a folder, called `name`, is none or cannot be looked into: it would seem to be empty."""
    try:
        next(os.scandir(folder), None)
    except (FileNotFoundError, NotADirectoryError) as error:
        found = "a file" if isinstance(error, NotADirectoryError) else "not there"
        raise InputError(f"{name} is {found}; allowed: a folder with the collection's files") from None
    except OSError as error:
        raise InputError(f"{name} cannot be read: {error.strerror}") from None


def _sample(file: File) -> tuple[int, float, int]:
    """About how many rows a file has, words in the last column of one, and different values in the first column."""
    rows, words, read, first = 0, 0, 0, set()
    for _, line in islice(lines(file.path), _SAMPLE):
        row = file.parse(rows + 1, line)
        rows, read = rows + 1, read + len(line.encode()) + 1
        words += len(str(row[-1]).split()) if row else 0
        first.update(row[:1] if row else ())
    share = read / (file.path.stat().st_size * (_PACKED if file.path.suffix == ".gz" else 1)) if read else 1.0
    whole = max(rows, round(rows / share)) if rows == _SAMPLE else rows
    return whole, words / max(1, rows), round(len(first) * whole / max(1, rows))


@dataclass(frozen=True)
class Layout:
    """What a source of text files offers, from a function that finds the files that its settings name."""

    source: str
    parts: Callable[[Any], Parts]

    def splits(self, settings: Any) -> dict[str, bool]:
        """Split -> whether it has judgments; raises `InputError` for missing files."""
        found = self.parts(settings)
        return {split: split in found.qrels for split in found.queries}

    def depends(self, settings: Any) -> list[Path]:
        """The files the collection is made from, each once."""
        found = self.parts(settings)
        return list(
            dict.fromkeys(file.path for file in [found.passages, *found.queries.values(), *found.qrels.values()])
        )

    def version(self, settings: Any) -> dict[str, str]:
        """Nothing but the files decides."""
        return {}

    def expected(self, settings: Any) -> tuple[int, float, dict[str, int]]:
        """Passages, words in one, and queries by split, from the sizes of the files and their first lines."""
        found = self.parts(settings)
        passages, words, _ = _sample(found.passages)
        return (
            passages,
            words,
            {split: _sample(found.qrels.get(split, rows))[2] for split, rows in found.queries.items()},
        )

    def check(self, settings: Any, name: str) -> dict[str, int]:
        """Read all files and raise `InputError`, with file and line, for what is wrong with the collection `name`.

        Returns how many queries of each judged split have a relevant passage.
        """
        try:
            return judged.check(self.parts(settings))
        except InputError as error:
            raise InputError(f"collections.{name}: {error}") from None

    def load(self, settings: Any, threads: int = 1) -> Collection:
        """Read the collection; `threads` is not used, nothing being computed."""
        return judged.load(self.parts(settings), {"source": self.source, "titles": settings.titles})
