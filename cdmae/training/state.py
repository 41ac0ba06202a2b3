"""Training states: what lets a killed trainer go on to the same bits, and a lease so that only one
goes on.

A state folder lies outside the declared outputs, because Snakemake deletes those before a job and
after a failure::

    step-00000400.9c0ffee1.pt   everything needed at step 400; the name carries the checksum of the content
    steps.tsv, ...              the curve and other tables so far, to be looked at: the state has them, too
    snapshots/                  what is written on the way (`cdmae.pretraining.snapshots`)
    lease, lease.lock, .job     who trains here (cdmae/training/leases.py)

A state is written beside its place, synced and renamed; the last two are kept.
"""

from __future__ import annotations

import math
import os
import pickle
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
from cdmae.files import complete, link, write_text
from cdmae.training import leases
from cdmae.training.leases import Lease
from cdmae.training.ranks import Ranks

KEPT = 2  # states: the newest, and the one before it in case the newest is damaged
LONGEST_PAUSE = 24 * 3600  # seconds between two states
SAVING_SHARE = 0.05  # of the time may go into saving: large models on slow disks save less often
ALONE = Ranks()


def save_seconds() -> float:
    """Return the seconds between two states: ``CDMAE_SAVE_SECONDS``, 60 where it is not set."""
    text = os.environ.get("CDMAE_SAVE_SECONDS", "60")
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0 <= seconds <= LONGEST_PAUSE:
        raise InputError(
            f"CDMAE_SAVE_SECONDS is {text!r}; allowed: a number of seconds from 0 to {LONGEST_PAUSE:,}"
        )
    return seconds


class State:
    """The state of the training `name` in its folder, as `opened` gives it to the processes
    `group`.

    step: of the state resumed from, 0 at the start. tables: by file name, rows of texts with a
    header.
    """

    def __init__(self, folder: Path, name: str, group: Ranks, lease: Lease | None = None) -> None:
        """`folder` exists where there is a lease on it; without one nothing is written."""
        self.folder, self.name, self.group, self._lease = folder, name, group, lease
        self.step = 0
        self.tables: dict[str, list[list[str]]] = {}
        self._saved_at = time.monotonic()
        self._pause = save_seconds()

    @property
    def writes(self) -> bool:
        """Tell whether this process writes states: it has the lease, and no twin has taken it."""
        return self._lease is not None and not self._lease.lost

    def begin(self, table: str, columns: Sequence[str]) -> None:
        """Begin a table, unless it goes on from the state with the same columns."""
        if self.tables.get(table, [[]])[0] != [*columns]:
            self.tables[table] = [[*columns]]

    def add(self, table: str, **values: float) -> None:
        """Append a row to a table, which `begin` began."""
        numbers = (values[name] for name in self.tables[table][0])
        self.tables[table].append(
            [str(number) if isinstance(number, int) else f"{number:.6g}" for number in numbers]
        )

    def write_table(self, table: str, folder: Path) -> None:
        """Write a table, header and rows, as a file of that name."""
        write_text(folder / table, "".join("\t".join(row) + "\n" for row in self.tables[table]))

    def latest(self) -> dict[str, Any] | None:
        """Read the payload of the newest whole state (tensors on the CPU), None where there is
        none.

        A damaged state is skipped aloud and deleted. Raises `KeyError` for one of another version
        of this code.
        """
        for path in reversed(self._states()):
            if f"{_checksum(path):08x}" != path.name.split(".")[1]:
                print(
                    f"{path} is damaged; going on from the state before it",
                    file=sys.stderr,
                    flush=True,
                )
                path.unlink()
                continue
            payload = _load(path)
            self.step, self.tables = payload.pop("step"), payload.pop("tables")
            return payload
        return None

    def save(self, step: int, payload: dict[str, Any]) -> None:
        """Write the state after `step` updates; `payload` holds tensors, numbers, strings and
        containers of them.

        Raises OSError where the system cannot, as on a full disk; the states before it are kept.
        """
        if not self.writes:
            return
        begun = time.monotonic()
        try:
            self._write(step, payload)
        finally:
            self._saved_at = time.monotonic()
            seconds = save_seconds()  # 0: after every step, whatever it costs
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
        """Tell whether it is time to save again."""
        return self.writes and time.monotonic() - self._saved_at >= self._pause

    @contextmanager
    def finish(self, output: Path) -> Iterator[Path]:
        """Yield a folder to write the result to, which becomes `output`, whole or not at all.

        The tables, and folders beside the state, are put into it. Nothing is left of the state
        afterwards.
        """
        folders = [path for path in self.folder.iterdir() if path.is_dir()]
        with complete(output) as aside:
            aside.mkdir()
            yield aside
            for table in self.tables:
                self.write_table(table, aside)
            for path in folders:
                shutil.copytree(
                    path, aside / path.name, copy_function=link, ignore=shutil.ignore_patterns(".*")
                )
        for path in folders:
            shutil.rmtree(path)
        for path in self.folder.iterdir():
            if not path.name.startswith("lease"):
                path.unlink()

    def _states(self) -> list[Path]:
        """List the states, oldest first."""
        return sorted(self.folder.glob("step-*.*.pt"))


@contextmanager
def opened(folder: Path, name: str, group: Ranks = ALONE) -> Iterator[State]:
    """Lease a state folder (made if need be) to the first process as long as the context lasts; the
    others read it.

    Raises `InputError` where another training holds it and does not let go within some seconds.
    """
    if not group.first:
        yield State(folder, name, group)
        return
    folder.mkdir(parents=True, exist_ok=True)
    with leases.held(folder, name) as lease:
        for path in [
            *folder.glob(".*.part"),
            *folder.glob("step-*"),
        ]:  # what a kill in the middle of a save has left
            if path.suffix != ".pt":
                path.unlink()
        yield State(folder, name, group, lease)


def _save(payload: dict[str, Any], path: Path) -> None:
    """Write by `torch.save`, which hides the system's error, such as a full disk, behind one of its
    own.
    """
    try:
        with open(
            path, "wb"
        ) as file:  # given a path, it would not even keep the number of the error
            torch.save(payload, file)
    except RuntimeError as error:
        cause = error.__context__
        if not isinstance(cause, OSError):
            raise
        raise OSError(cause.errno, cause.strerror, str(path)) from None


def _load(path: Path) -> dict[str, Any]:
    """Read what `State.save` wrote; raises `InputError` for a file of another program, whose code
    is not run.
    """
    try:
        payload = torch.load(path, map_location="cpu", weights_only=True)
    except (
        pickle.UnpicklingError,
        EOFError,
        LookupError,
        TypeError,
        ValueError,
        RuntimeError,
    ) as error:
        if "alloc" in str(error):  # of the memory
            raise
        raise InputError(
            f"{path} is no state of a training that was written here ({type(error).__name__}); delete it and run again"
        ) from None
    if not isinstance(payload, dict):
        raise InputError(
            f"{path} is no state of a training that was written here; delete it and run again"
        )
    return payload


def _checksum(path: Path) -> int:
    value = 0
    with open(path, "rb") as file:
        while block := file.read(1 << 24):
            value = zlib.crc32(block, value)
    return value
