"""Digests of the user's files: results depend on their content, never on their times.

Snakemake compares files by time. A table that another one replaced would go unnoticed if it is
older (`mv`, `cp -p`, `rsync -a`, archives and backups keep times), and one that was only touched
would repeat every training. The rules therefore mark these files as `ancient` and have a parameter
with their digests. A file is read again only if its size, times or inode have changed.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path

from cdmae.files import digest, read_json, write_json
from cdmae.log import say

PREFIX = "content of "  # of the keys, for the reasons of a run (`workflow.reasons`)
# nanoseconds after its last change in which a file may change once more and keep its time
UNSETTLED = 2 * 10**9
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
        self.read([name for name in names if name not in self.known])
        return {f"{PREFIX}{name}": self.known[name] for name in names}

    def read(self, names: list[str]) -> None:
        """Read the files that have changed since they were last read."""
        status = {name: _status(Path(name)) for name in names}
        changed = []
        for name in names:
            kept = self.before.get(name)
            if kept and status[name] and kept[:-1] == status[name]:
                self.known[name] = kept[-1]
            else:
                changed.append(name)
        size = sum(status[name][0] for name in changed if status[name])
        if size > LARGE:
            say(f"reading {size / 1e9:.0f} GB of data to recognise its content; once per change")
        begun = time.time_ns()
        for name in changed:
            self.known[name] = digest(name)
            is_settled = status[name] and max(status[name][1:3]) < begun - UNSETTLED
            if is_settled and status[name] == _status(Path(name)):
                self.before[name] = [*status[name], self.known[name]]
        if changed and self.writes:
            there = {name: kept for name, kept in self.before.items() if Path(name).exists()}
            write_json(self.kept, there)


def _status(path: Path) -> list[int] | None:
    """Return what changes with a file: size, times and inode; None for a folder or no file."""
    try:
        found = path.stat()
    except OSError:
        return None
    if not path.is_file():
        return None
    return [found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino]
