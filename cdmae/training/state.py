"""Training states: what lets a killed trainer go on to the same bits, and a lease so that only one goes on.

A state folder lies outside the declared outputs, because Snakemake deletes those before a job and after a failure::

    step-00000400.9c0ffee1.pt   everything needed at step 400; the name carries the checksum of the content
    steps.tsv                   the training curve, one row per interval, cut back to the step resumed from
    lease, lease.lock, .job     who trains here (cdmae/training/leases.py)

A state is written beside its place, synced and renamed; the last two are kept.
"""

from __future__ import annotations

import os
import shutil
import sys
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

import torch

from cdmae.errors import InputError
from cdmae.files import complete, write_text
from cdmae.training import leases
from cdmae.training.leases import Lease

KEPT = 2  # states: the newest, and the one before it in case the newest is damaged
SAVING_SHARE = 0.05  # of the time may go into saving: large models on slow disks save less often


def save_seconds() -> float:
    """Return the seconds between two states: ``CDMAE_SAVE_SECONDS``, 60 where it is not set."""
    seconds = os.environ.get("CDMAE_SAVE_SECONDS", "60")
    try:
        return float(seconds)
    except ValueError:
        raise InputError(f"CDMAE_SAVE_SECONDS is {seconds!r}; allowed: a number of seconds") from None


class Curve:
    """The training curve: ``steps.tsv``, a header and one row per interval."""

    def __init__(self, path: Path, columns: list[str], step: int) -> None:
        """Open the curve of a training that goes on after `step` updates: later rows are dropped."""
        self.columns = columns
        if path.name == "steps.tsv":
            kept = [row for row in _rows(path, columns) if int(row[0]) <= step]
            write_text(path, "".join("\t".join(row) + "\n" for row in [columns, *kept]))
        self._file: TextIO = open(path, "a", encoding="utf-8")  # noqa: SIM115 (closed by the state)

    def add(self, **values: float) -> None:
        """Append a row: a value for every column."""
        self._file.write(
            "\t".join(f"{values[name]:.6g}" if name != "step" else str(values[name]) for name in self.columns)
        )
        self._file.write("\n")

    def sync(self) -> None:
        """Put every row so far on the disk."""
        self._file.flush()
        os.fsync(self._file.fileno())

    def close(self) -> None:
        """Write what is left and close the file."""
        self._file.close()


def _rows(path: Path, columns: list[str]) -> list[list[str]]:
    """Return the complete rows of a curve with these columns; a row cut off by a kill is left out."""
    if not path.exists():
        return []
    header, *lines = path.read_text(encoding="utf-8").split("\n")
    if header.split("\t") != columns:
        return []
    rows = [line.split("\t") for line in lines[:-1]]  # what follows the last newline is an unfinished row
    return [row for row in rows if len(row) == len(columns)]


class State:
    """The state folder of one training, which `hold` leases to this process."""

    def __init__(self, folder: Path, lease: Lease | None = None) -> None:
        """`folder` exists; without a lease on it only `latest` does anything."""
        self.folder, self._lease = folder, lease
        self.step = 0  # of the state resumed from; 0 = from the start
        self._curve: Curve | None = None
        self._saved_at = time.monotonic()
        self._pause = save_seconds()

    @property
    def writes(self) -> bool:
        """Tell whether this process writes states: it has the lease, and no twin has taken it."""
        return self._lease is not None and not self._lease.lost

    def latest(self) -> dict[str, Any] | None:
        """Read the payload of the newest whole state (tensors on the CPU), None where there is none.

        A damaged state is skipped aloud and deleted.
        """
        for path in reversed(_states(self.folder)):
            if f"{_checksum(path):08x}" != path.name.split(".")[1]:
                print(f"{path} is damaged; going on from the state before it", file=sys.stderr, flush=True)
                path.unlink()
                continue
            payload = torch.load(path, map_location="cpu", weights_only=True)
            self.step = payload.pop("step")
            return payload
        return None

    def save(self, step: int, payload: dict[str, Any]) -> None:
        """Write the state after `step` updates; `payload` holds tensors, numbers, strings and containers of them."""
        if not self.writes:
            return
        begun = time.monotonic()
        if self._curve:
            self._curve.sync()  # its rows up to `step` must outlive a crash as the state does
        path = self.folder / f"step-{step:08d}"
        with complete(path) as aside:
            torch.save({"step": step, **payload}, aside)
            checksum = _checksum(aside)
        path.rename(path.with_name(f"{path.name}.{checksum:08x}.pt"))
        for old in _states(self.folder)[:-KEPT]:
            old.unlink()
        self._saved_at = time.monotonic()
        seconds = save_seconds()  # 0: after every step, whatever it costs
        self._pause = max(seconds, (self._saved_at - begun) / SAVING_SHARE) if seconds else 0.0

    def due(self) -> bool:
        """Tell whether it is time to save again."""
        return self.writes and time.monotonic() - self._saved_at >= self._pause

    def curve(self, columns: list[str]) -> Curve:
        """Open the training curve with these columns, "step" first; call it after `latest`, whose step cuts it."""
        path = self.folder / "steps.tsv" if self.writes else Path(os.devnull)
        self._curve = Curve(path, columns, self.step)
        return self._curve

    @contextmanager
    def finish(self, output: Path) -> Iterator[Path]:
        """Yield a folder to write the result to; with the curve it becomes `output`, whole or not at all.

        Nothing is left of the states afterwards.
        """
        self.close()
        with complete(output) as aside:
            aside.mkdir()
            yield aside
            shutil.copyfile(self.folder / "steps.tsv", aside / "steps.tsv")
        self.discard()

    def discard(self) -> None:
        """Delete the states: the training is finished and its output written."""
        self.close()
        for path in [*_states(self.folder), self.folder / "steps.tsv"]:
            path.unlink(missing_ok=True)

    def close(self) -> None:
        """Close the curve."""
        if self._curve:
            self._curve.close()
            self._curve = None


def _states(folder: Path) -> list[Path]:
    """List the states of a folder, oldest first."""
    return sorted(folder.glob("step-*.*.pt"))


def _checksum(path: Path) -> int:
    value = 0
    with open(path, "rb") as file:
        while block := file.read(1 << 24):
            value = zlib.crc32(block, value)
    return value


# --- the lease -------------------------------------------------------------------------------------------------------


@contextmanager
def hold(folder: Path | str, name: str) -> Iterator[State]:
    """Lease a state folder (made if need be) for the training `name` as long as the context lasts.

    Raises `InputError` where another process holds it and does not let go within some seconds.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    with leases.held(folder, name) as lease:
        _sweep(folder)
        state = State(folder, lease)
        try:
            yield state
        finally:
            state.close()


@contextmanager
def look(folder: Path | str) -> Iterator[State]:
    """Read, and never write, the state folder that another process of the same training holds."""
    state = State(Path(folder))
    try:
        yield state
    finally:
        state.close()


def _sweep(folder: Path) -> None:
    """Delete what a kill in the middle of a save left behind."""
    for path in [*folder.glob(".*.part"), *folder.glob("step-*")]:
        if path.suffix != ".pt":
            path.unlink()
