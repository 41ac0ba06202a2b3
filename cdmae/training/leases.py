"""Leases on folders: of two processes that would train in one, only one does.

The operating system's lock on ``lease.lock`` ends with its process, however that ends, and not
while the process is suspended. Hosts that do not share locks (some network file systems) or have
none see the file ``lease`` instead, which its holder touches every few seconds.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import FileLock, LeaseCompromise, SoftFileLease, Timeout

from cdmae.errors import InputError
from cdmae.files import write_text

WAIT = 5.0  # seconds for a trainer that is ending to let go of the folder
HEARTBEAT = 5.0  # seconds between two signs of life
# seconds without one after which another host's trainer counts as gone; NFS may show a change 60 s
# late
DEAD = 90.0


@contextmanager
def held(folder: Path, name: str) -> Iterator[Lease]:
    """Lease a folder for the training `name` as long as the context lasts.

    Raises `InputError` where another process holds it and does not let go within some seconds.
    """
    lease = Lease(folder, name)
    lease.take()
    try:
        lease.name_job()
        yield lease
    finally:
        lease.release()


class Lease:
    """A lease on a folder: the system's lock, and a marker file that shows signs of life.

    lost: whether a second process took the folder, having seen neither the lock nor a sign of life.
    """

    def __init__(self, folder: Path, name: str) -> None:
        """`name`: of the training, in messages."""
        self.lost = False
        self._folder = folder
        self._name = name
        self._path = folder / "lease"
        self._job = folder / "lease.job"
        self._lock = FileLock(folder / "lease.lock", timeout=WAIT, fallback_to_soft=False)
        self._markers = [self._marker()]  # and another one each time that somebody deletes the file

    def take(self) -> None:
        """Take the lock, then the marker; raises `InputError` where the holder of either lives."""
        before = _sign(self._path)

        def holder_lives() -> bool:
            now = _sign(self._path)
            return now is not None and now != before

        try:
            self._take_lock()
            self._remove_empty()
            self._markers[0].acquire(timeout=DEAD + WAIT, cancel_check=holder_lives)
        except Timeout:
            self._lock.release()
            raise InputError(self._refusal()) from None

    def name_job(self) -> None:
        """Write which job of SLURM holds the folder, for the message of one that is refused."""
        write_text(self._job, os.environ.get("SLURM_JOB_ID", ""))

    def release(self) -> None:
        """Let go of the folder; a marker that is another process's stays."""
        if not self.lost:
            self._job.unlink(missing_ok=True)
        for marker in self._markers:
            marker.release()
        self._lock.release()

    def _marker(self) -> SoftFileLease:
        return SoftFileLease(
            self._path,
            lease_duration=DEAD,
            heartbeat_interval=HEARTBEAT,
            on_compromise=self._compromised,
            thread_local=False,
        )

    def _take_lock(self) -> None:
        try:
            self._lock.acquire()
        except Timeout:
            raise
        except OSError:  # ENOLCK, ENOSYS: only signs of life can tell
            pass

    def _remove_empty(self) -> None:
        """Remove an empty marker of a power failure: filelock would wait for its owner forever.

        A living owner fills it at once.
        """
        before = _sign(self._path)
        if before is None or self._path.stat().st_size:
            return
        time.sleep(WAIT)
        if _sign(self._path) == before:
            self._path.unlink(missing_ok=True)

    def _compromised(self, loss: LeaseCompromise) -> None:
        """Recreate a deleted marker, or stop if another process has made its own.

        filelock calls this from the thread that touches the marker.
        """
        if loss.reason == "marker-missing" and self._restored():
            print(f"{self._path} was deleted; it is made again", file=sys.stderr, flush=True)
            return
        self.lost = True
        print(f"{self._refusal()}; this process ends ({loss.reason})", file=sys.stderr, flush=True)
        os.kill(os.getpid(), signal.SIGTERM)

    def _restored(self) -> bool:
        marker = self._marker()
        try:
            self._folder.mkdir(parents=True, exist_ok=True)  # the marker may have gone with it
            marker.acquire(timeout=0)
        except (Timeout, OSError):
            return False
        self._markers.append(marker)
        return True

    def _refusal(self) -> str:
        """Name the holder, and its job in SLURM."""
        owner = self._markers[0].owner
        process = (
            f"process {owner.pid} on {owner.hostname.partition('?')[0]}"
            if owner
            else "an unknown process"
        )
        number = self._job.read_text(encoding="utf-8") if self._job.exists() else ""
        job = f", job {number}" if number else ""
        return (
            f"{self._name} is being trained already, by {process}{job}; wait for it or end it "
            f"({self._folder})"
        )


def _sign(path: Path) -> tuple[int, int] | None:
    """Return the facts of a marker that change with every sign of life, None without one."""
    with suppress(FileNotFoundError):
        status = path.stat()
        return status.st_mtime_ns, status.st_ino
    return None
