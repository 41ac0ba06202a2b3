"""Leases on folders: of two processes that would train in one, only one does. Standard library only.

lease.lock is held by flock until its process ends, however it ends. Hosts that do not share locks (some network file
systems) or have none at all see the heartbeat in lease.json change instead. Where that is too slow, because two
trainers began within seconds, the one that wrote lease.json first finds the other's name in it, and ends.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import secrets
import signal
import socket
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

from cdmae.errors import InputError

WAIT = 5.0  # seconds for a trainer that is ending to let go of the folder
HEARTBEAT = 5.0  # seconds between two signs of life in lease.json
DEAD = 90.0  # seconds without one after which another host's trainer counts as gone; NFS may show a change 60 s late


@contextmanager
def held(folder: Path, name: str) -> Iterator[Lease]:
    """Lease a folder for the training `name` as long as the context lasts.

    Raises `InputError` where another process holds it and does not let go within some seconds.
    """
    with open(folder / "lease.lock", "a", encoding="utf-8") as lock:
        _acquire(lock, folder, name)
        lease = Lease(folder, name)
        try:
            yield lease
        finally:
            lease.end()


class Lease:
    """A lease with its signs of life: who trains here, and a number that changes every few seconds."""

    def __init__(self, folder: Path, name: str) -> None:
        """Give the first sign, and go on with it beside the training until `end`."""
        self.folder, self.name = folder, name
        self.lost = False  # to a twin that saw neither the lock nor the heartbeat
        job = os.environ.get("SLURM_JOB_ID", "")
        self._holder = {"host": socket.gethostname(), "pid": os.getpid(), "job": job, "key": secrets.token_hex(8)}
        self._ended = threading.Event()
        self._sign(0)
        self._thread = threading.Thread(target=self._beat, daemon=True, name="lease")
        self._thread.start()

    def end(self) -> None:
        """Give the lease back, unless a twin has it."""
        self._ended.set()
        self._thread.join()
        if not self._taken():
            (self.folder / "lease.json").unlink(missing_ok=True)

    def _beat(self) -> None:
        beat = 1
        while not self._ended.wait(HEARTBEAT):
            if self._taken():
                self._leave()
                return
            self._sign(beat)
            beat += 1

    def _taken(self) -> bool:
        found = _read(self.folder)
        return bool(found) and found.get("key") != self._holder["key"]

    def _leave(self) -> None:
        """End this process: the twin came last, and only one of the two may go on."""
        self.lost = True
        print(f"{_refusal(self.folder, self.name)}; this process ends", file=sys.stderr, flush=True)
        os.kill(os.getpid(), signal.SIGTERM)

    def _sign(self, beat: int) -> None:
        aside = self.folder / ".lease.json.part"
        with contextlib.suppress(OSError):  # a full disk must not end the training
            aside.write_text(json.dumps({**self._holder, "heartbeat": beat}), encoding="utf-8")
            os.replace(aside, self.folder / "lease.json")


def _acquire(lock: TextIO, folder: Path, name: str) -> None:
    """Take the flock and make sure that no other host, which may not see it, is at work here."""
    locked = _locked(lock, folder, name)
    found = _read(folder)
    if not found or (locked and found.get("host") == socket.gethostname()):
        return  # left by a process of this host, whose end has released the lock
    deadline = time.monotonic() + DEAD
    while time.monotonic() < deadline:
        time.sleep(0.2)
        now = _read(folder)
        if not now:
            return
        if now != found:
            raise _refusal(folder, name)


def _locked(lock: TextIO, folder: Path, name: str) -> bool:
    """Take the flock; False where the file system has none. Raises `InputError` where another process keeps it."""
    deadline = time.monotonic() + WAIT
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            if time.monotonic() >= deadline:
                raise _refusal(folder, name) from None
            time.sleep(0.2)
        except OSError:  # ENOLCK, ENOSYS: only the heartbeat can tell
            return False


def _read(folder: Path) -> dict[str, Any]:
    with contextlib.suppress(OSError, json.JSONDecodeError):
        return json.loads((folder / "lease.json").read_text(encoding="utf-8"))
    return {}


def _refusal(folder: Path, name: str) -> InputError:
    lease = _read(folder)
    job = f", job {lease['job']}" if lease.get("job") else ""
    return InputError(
        f"{name} is being trained already, by process {lease.get('pid', '?')} on {lease.get('host', '?')}{job}; "
        f"wait for it or end it ({folder})"
    )
