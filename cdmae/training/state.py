"""Training states, from which a killed training resumes.

A state folder is outside the declared outputs, because Snakemake deletes outputs before a job and
after a failure::

    step-00000400.9c0ffee1.pt   everything needed at step 400; the name includes its checksum
    steps.tsv, ...              the curve and other tables so far, also stored in the state
    lease, lease.lock           the process that trains here (`cdmae.training.leases`)
    about.json                  of the result, once it is written

A state is written to a temporary file, synced and renamed. The last two states are kept, also the
last step's. A job never deletes them: only the workflow knows that the result is recorded.
"""

from __future__ import annotations

import os
import shutil
import sys
import time
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from cdmae.errors import InputError
from cdmae.files import complete, write_text
from cdmae.training import leases
from cdmae.training.ranks import Ranks
from cdmae.training.sharing import ALONE as UNSHARED
from cdmae.training.sharing import Shared, sharing

KEPT = 2  # states kept: the newest, and the previous one in case the newest is damaged
# maximum share of the time for saving: large models on slow disks save less often
SAVING_SHARE = 0.05
ALONE = Ranks()


def save_seconds() -> float:
    """Return the seconds between two states: ``CDMAE_SAVE_SECONDS``, 60 if it is not set."""
    text = os.environ.get("CDMAE_SAVE_SECONDS", "60")
    if not text.replace(".", "", 1).isdigit():
        raise InputError(f"CDMAE_SAVE_SECONDS is {text!r}; expected a number of seconds from 0")
    return float(text)


class State:
    """The state of the training `name` in its folder, as `opened` passes it to each process.

    step: the last step of the loaded state, or 0 without a state. tables: a dict from file names to
    rows of text; the first row is the header. shared: arrays that the processes share.
    """

    def __init__(
        self, folder: Path, name: str, group: Ranks, shared: Shared = UNSHARED, writes: bool = False
    ) -> None:
        """Take an existing folder; writes: whether this process, which holds its lease, writes."""
        self.folder = folder
        self.name = name
        self.group = group
        self.shared = shared
        self.writes = writes
        self.step = 0
        self.tables: dict[str, list[list[str]]] = {}
        self._saved_at = time.monotonic()
        self._pause = save_seconds()

    def begin(self, table: str, columns: Sequence[str]) -> None:
        """Begin a table, unless the state already has it with the same columns."""
        if self.tables.get(table, [[]])[0] != [*columns]:
            self.tables[table] = [[*columns]]

    def add(self, table: str, **values: float) -> None:
        """Append a row to a table that `begin` has begun."""
        rows = self.tables[table]
        numbers = [values[name] for name in rows[0]]
        rows.append([str(each) if isinstance(each, int) else f"{each:.6g}" for each in numbers])

    def write_table(self, table: str, folder: Path) -> None:
        """Write a table, header and rows, as a file of that name."""
        lines = ["\t".join(row) + "\n" for row in self.tables[table]]
        write_text(folder / table, "".join(lines))

    def latest(self) -> dict[str, Any] | None:
        """Return the payload of the newest intact state, or None; tensors are on the CPU.

        A damaged state is reported, skipped and deleted.
        """
        for path in reversed(self._states()):
            if f"{_checksum(path):08x}" != path.name.split(".")[1]:
                print(
                    f"{path} is damaged; resuming from the previous state",
                    file=sys.stderr,
                    flush=True,
                )
                path.unlink()
                continue
            payload = torch.load(path, map_location="cpu", weights_only=True)
            self.step = payload.pop("step")
            self.tables = payload.pop("tables")
            return payload
        return None

    def save(self, step: int, payload: dict[str, Any]) -> None:
        """Write the state after `step` updates; payload: containers of tensors, numbers, strings.

        Raises `OSError` if writing fails, for example on a full disk. Earlier states are kept.
        """
        if not self.writes:
            return
        begun = time.monotonic()
        try:
            self._write(step, payload)
        finally:
            self._saved_at = time.monotonic()
            seconds = save_seconds()  # 0 saves after every step, whatever the cost
            self._pause = max(seconds, (self._saved_at - begun) / SAVING_SHARE) if seconds else 0.0

    def _write(self, step: int, payload: dict[str, Any]) -> None:
        path = self.folder / f"step-{step:08d}"
        with complete(path) as part:
            _save({"step": step, "tables": self.tables, **payload}, part)
            checksum = _checksum(part)
        path.rename(path.with_name(f"{path.name}.{checksum:08x}.pt"))
        for old in self._states()[:-KEPT]:
            old.unlink()
        for table in self.tables:
            self.write_table(table, self.folder)

    def due(self) -> bool:
        """Return whether the next save is due."""
        return self.writes and time.monotonic() - self._saved_at >= self._pause

    @contextmanager
    def finish(self, output: Path) -> Iterator[Path]:
        """Yield a folder for the result; it becomes `output` atomically.

        The tables of the state are written into it. The state stays, with a copy of
        the result's ``about.json``: until the workflow has recorded the output, a job that ends
        badly loses it, and the next run makes it again from here.
        """
        with complete(output) as aside:
            aside.mkdir()
            yield aside
            for table in self.tables:
                self.write_table(table, aside)
        shutil.copyfile(output / "about.json", self.folder / "about.json")

    def _states(self) -> list[Path]:
        """List the states, oldest first."""
        return sorted(self.folder.glob("step-*.*.pt"))


@contextmanager
def opened(folder: Path, name: str, group: Ranks = ALONE) -> Iterator[State]:
    """Lock a state folder for the first process within the context; other processes only read it.

    The folder is created if it does not exist.

    Raises `InputError` if another training holds the lock and does not release it within seconds.
    """
    if not group.first:
        with sharing(folder, group) as shared:
            yield State(folder, name, group, shared)
        return
    folder.mkdir(parents=True, exist_ok=True)
    with leases.held(folder, name), sharing(folder, group) as shared:
        # A kill during a save leaves unfinished files.
        for path in [*folder.glob(".*.part"), *folder.glob("step-*")]:
            if path.suffix != ".pt":
                path.unlink()
        yield State(folder, name, group, shared, writes=True)


def _save(payload: dict[str, Any], path: Path) -> None:
    """Write a payload by `torch.save`, but raise the system's error, such as a full disk."""
    try:
        with open(path, "wb") as file:  # given a path, torch hides the system's error number
            torch.save(payload, file)
    except RuntimeError as error:
        cause = error.__context__
        if not isinstance(cause, OSError):
            raise
        raise OSError(cause.errno, cause.strerror, str(path)) from None


def _checksum(path: Path) -> int:
    """Return the CRC-32 of a file."""
    value = 0
    with open(path, "rb") as file:
        for block in iter(lambda: file.read(1 << 24), b""):
            value = zlib.crc32(block, value)
    return value
