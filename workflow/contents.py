"""Digests of the user's files: results depend on their content, never on their times.

Snakemake compares files by time. A table that another one replaced would go unnoticed if it is
older (`mv`, `cp -p`, `rsync -a`, archives and backups keep times), and one that was only touched
would repeat every training. The rules therefore mark these files as `ancient` and have a parameter
with their digests. A file is read again only if its size, times or inode have changed.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from cdmae.files import digest, read_json, write_json
from cdmae.log import say

PREFIX = "content of "  # of the keys, for the reasons of a run (`workflow.reasons`)
LARGE = 10**9  # bytes that take a few seconds to read


class Contents:
    """The digests of files by path, kept in a file between runs."""

    def __init__(self, kept: Path | str, *, writes: bool = True) -> None:
        """Take the file of kept digests; `writes`: whether this process adds to it."""
        self.kept = Path(kept)
        self.writes = writes
        self.known: dict[str, str] = {}  # within a run, a file has one digest
        self.before = read_json(kept) if self.kept.exists() else {}

    def of(self, paths: Iterable[str]) -> dict[str, str]:
        """Map ``content of PATH`` to the digest of each file, or of each folder."""
        names = sorted(set(map(str, paths)))
        changed = False
        for name in names:
            if name not in self.known:
                changed |= self._read(name)
        if changed and self.writes:
            there = {name: kept for name, kept in self.before.items() if Path(name).exists()}
            with suppress(OSError):  # another dry run writes it, or the folder is read-only
                write_json(self.kept, there)
        return {f"{PREFIX}{name}": self.known[name] for name in names}

    def _read(self, name: str) -> bool:
        """Find the digest of a file; return whether the file was read."""
        status = _status(Path(name))
        *before, known = self.before.get(name, [""])
        if status and before == status:
            self.known[name] = known
            return False
        if status and status[0] > LARGE:
            say(f"reading {name} to recognise its content, once per change")
        self.known[name] = digest(name)
        if status:
            self.before[name] = [*status, self.known[name]]
        return True


def _status(path: Path) -> list[int] | None:
    """Return what changes with a file: size, times and inode; None for a folder or no file."""
    if not path.is_file():
        return None
    found = path.stat()
    return [found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino]
