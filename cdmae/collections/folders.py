"""Sources that read a folder of files, and the files in such folders."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from cdmae.collections import Source, judged
from cdmae.collections.tables import PACKED, SUFFIXES, suffix_of
from cdmae.errors import InputError
from cdmae.fields import show

if TYPE_CHECKING:
    from cdmae.collections.store import Collection

_SHARD = re.compile(r"-\d+-of-\d+$")  # of the name of one of several tables of a split


class Folder(Source):
    """Hold the settings of a source of files; all methods use the files of `parts`."""

    def parts(self) -> judged.Parts:
        """Find the collection's files; raises `InputError` for missing files."""
        raise NotImplementedError

    def own_splits(self) -> dict[str, bool]:
        """Return, for each split with queries, whether it has judgments."""
        parts = self.parts()
        return {split: split in parts.qrels for split in parts.queries}

    def depends(self) -> list[Path]:
        """List the files from which the collection is made, without duplicates."""
        parts = self.parts()
        every = [parts.passages, *parts.queries.values(), *parts.qrels.values()]
        return list(dict.fromkeys(file for rows in every for file in rows.files))

    def estimate(self) -> tuple[int, float, dict[str, int]]:
        """Estimate the passages and the words per passage; count the queries of each split."""
        parts = self.parts()
        asked = {split: parts.qrels.get(split, rows) for split, rows in parts.queries.items()}
        queries = {split: len({row[0] for _, row in rows.rows()}) for split, rows in asked.items()}
        return *parts.passages.size(), queries

    def read(self) -> Collection:
        """Read the files."""
        name = type(self).__module__.rpartition(".")[2]
        return judged.load(self.parts(), {"source": name, "titles": self.titles})


def files_below(folder: Path) -> list[Path]:
    """List the files in a folder and in the folders below it, except hidden files."""
    found = []
    for parent, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        found += [Path(parent, name) for name in names if not name.startswith(".")]
    return sorted(found)


def tables_at(folder: Path, name: str, suffixes: tuple[str, ...]) -> list[Path]:
    """Return the table `name` of a folder, or all tables in its folder `name`, as at the hub."""
    alone = by_split(path for path in folder.glob(f"{name}.*") if suffix_of(path) in suffixes)
    inside = by_split((folder / name).glob("*")).values()
    return alone.get(name, list(chain.from_iterable(inside)))


def by_split(paths: Iterable[Path]) -> dict[str, list[Path]]:
    """Group tables by the split in their names: test.tsv.gz, train-00000-of-00002.parquet.

    Raises `InputError` for two tables of a split that are not numbered.
    """
    found: dict[str, list[Path]] = {}
    for path in sorted(paths):
        if path.name.startswith(".") or not suffix_of(path):
            continue
        name = path.stem if path.suffix in PACKED else path.name
        name = name.removesuffix(suffix_of(path))
        split = _SHARD.sub("", name)
        if split in found and split == name:
            names = f"{found[split][0].name} and {path.name}"
            raise InputError(f"{path.parent} holds both {names}; keep one of them")
        found.setdefault(split, []).append(path)
    return found


def table_at(path: str, key: str) -> Path:
    """Return the path of a table; raises `InputError`, beginning with `key`, for other files."""
    table = Path(os.path.expanduser(path))
    if not table.is_file():
        raise InputError(f"{key} is {show(path)}, and {table.absolute()} is not a file")
    if not suffix_of(table):
        raise InputError(f"{key} is {show(path)}; expected a table ({', '.join(SUFFIXES)})")
    return table


def check_folder(path: str) -> Path:
    """Return the path as a folder; raise `InputError` if it is not a folder that can be listed.

    Without this check, an unreadable folder would look empty.
    """
    folder = Path(os.path.expanduser(path))
    try:
        next(os.scandir(folder), None)
    except OSError as error:
        raise InputError(
            f"path is {show(path)}, and {show(str(folder.absolute()))} cannot be read "
            f"({error.strerror}); expected a folder with the collection's files"
        ) from None
    return folder
