"""Training states, from which a killed training resumes.

A state folder is outside the declared outputs, because Snakemake deletes outputs before a job and
after a failure::

    step-00000400.pt     everything needed at step 400, and the tables so far
    lease, lease.lock    the process that trains here
    about.json           of the result, once it is written
    .shared/             arrays that the processes of this training share

A state is written to a temporary file, synced and renamed; then the earlier state is deleted. A job
never deletes the last one: only the workflow knows that the result is recorded.

Only one process trains in a folder. A killed workflow engine may leave a trainer running, and a
cluster may start a job again that still runs on another node. The system's lock on ``lease.lock``
is released even if the process crashes; without such locks, as on some network file systems,
filelock keeps a marker file instead.
"""

from __future__ import annotations

import os
import pickle
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from filelock import FileLock, Timeout

from cdmae.arrays import write_array
from cdmae.errors import InputError, cause
from cdmae.files import complete, write_text
from cdmae.training.ranks import Ranks

# maximum share of the time for saving: large models on slow disks save less often
SAVING_SHARE = 0.05
ALONE = Ranks()
SHARED = ".shared"
WAIT = 5.0  # seconds for a trainer that is ending to release the folder

Arrays = dict[str, np.ndarray]
Share = Callable[[str, Callable[[], Arrays]], Arrays]  # as `State.share`


def unshared(name: str, make: Callable[[], Arrays]) -> Arrays:
    """Return the arrays that `make` returns, for this process alone."""
    return make()


def save_seconds() -> float:
    """Return the seconds between two states: ``CDMAE_SAVE_SECONDS``, 60 if it is not set."""
    return float(os.environ.get("CDMAE_SAVE_SECONDS", "60"))


class State:
    """The state of the training `name` in its folder, as `opened` passes it to each process.

    step: the last step of the loaded state, or 0 without a state. tables: a dict from file names to
    rows of text; the first row is the header.
    """

    def __init__(self, folder: Path, name: str, group: Ranks, *, writes: bool = False) -> None:
        """Take an existing folder; writes: whether this process, which holds its lease, writes."""
        self.folder = folder
        self.name = name
        self.group = group
        self.writes = writes
        self.step = 0
        self.tables: dict[str, list[list[str]]] = {}
        self._due = time.monotonic() + save_seconds()

    def add(self, table: str, **values: float) -> None:
        """Append a row to a table; the names of its first values become the header."""
        rows = self.tables.setdefault(table, [[*values]])
        numbers = [values[name] for name in rows[0]]
        rows.append([str(each) if isinstance(each, int) else f"{each:.6g}" for each in numbers])

    def latest(self) -> dict[str, Any] | None:
        """Return the payload of the newest state, or None; tensors are on the CPU.

        Raises `InputError` for a damaged state.
        """
        states = self._states()
        if not states:
            return None
        try:
            payload = torch.load(states[-1], map_location="cpu", weights_only=True)
        except (EOFError, RuntimeError, pickle.UnpicklingError) as error:
            words = f"{states[-1]} is damaged ({cause(error)}); delete it to begin again"
            raise InputError(words) from None
        self.step = payload.pop("step")
        self.tables = payload.pop("tables")
        return payload

    def save(self, step: int, payload: dict[str, Any]) -> None:
        """Write the state after `step` updates; payload: containers of tensors, numbers, strings.

        Raises `OSError` if writing fails, for example on a full disk. The earlier state is kept.
        """
        if not self.writes:
            return
        begun = time.monotonic()
        with complete(self.folder / f"step-{step:08d}.pt") as part:
            _save({"step": step, "tables": self.tables, **payload}, part)
        for old in self._states()[:-1]:
            old.unlink()
        now = time.monotonic()
        seconds = save_seconds()  # 0 saves after every step, whatever the cost
        self._due = now + (max(seconds, (now - begun) / SAVING_SHARE) if seconds else 0.0)

    def due(self) -> bool:
        """Return whether the next save is due."""
        return self.writes and time.monotonic() >= self._due

    def share(self, name: str, make: Callable[[], Arrays]) -> Arrays:
        """Return the arrays that `make` returns; of several processes, only the first calls it.

        All of them map its files: the system keeps one copy in the memory of a machine.
        """
        if self.group.size == 1:
            return make()
        folder = self.folder / SHARED / name
        if self.group.first:
            folder.mkdir(parents=True)
            for key, values in make().items():
                write_array(folder / f"{key}.npy", values)
        self.group.wait()
        return {
            path.stem: np.load(path, mmap_mode="r").view(np.ndarray) for path in folder.iterdir()
        }

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
            for table, rows in self.tables.items():
                write_text(aside / table, "".join("\t".join(row) + "\n" for row in rows))
        shutil.copyfile(output / "about.json", self.folder / "about.json")

    def _states(self) -> list[Path]:
        """List the states, oldest first."""
        return sorted(self.folder.glob("step-*.pt"))


@contextmanager
def opened(folder: Path, name: str, group: Ranks = ALONE) -> Iterator[State]:
    """Lock a state folder for the first process within the context; other processes only read it.

    The folder is created if it does not exist.

    Raises `InputError` if another training holds the lock and does not release it within seconds.
    """
    if not group.first:
        yield State(folder, name, group)
        return
    folder.mkdir(parents=True, exist_ok=True)
    owner = folder / "lease"
    lock = FileLock(folder / "lease.lock", timeout=WAIT)
    try:
        lock.acquire()
    except Timeout:
        process = owner.read_text(encoding="utf-8") if owner.exists() else "another process"
        raise InputError(
            f"{name} is being trained already, by {process}; wait for it or end it ({folder})"
        ) from None
    try:
        job = os.environ.get("SLURM_JOB_ID", "")
        host = os.uname().nodename
        write_text(owner, f"process {os.getpid()} on {host}" + (f", job {job}" if job else ""))
        for path in folder.glob(".*.part"):  # a kill during a save leaves unfinished files
            path.unlink()
        shutil.rmtree(folder / SHARED, ignore_errors=True)
        yield State(folder, name, group, writes=True)
    finally:
        shutil.rmtree(folder / SHARED, ignore_errors=True)
        owner.unlink(missing_ok=True)
        lock.release()


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
