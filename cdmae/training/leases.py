"""Locks on state folders ("leases"): only one process at a time trains in a folder.

The operating system's lock on ``lease.lock`` ends with its process, even if the process crashes,
and is kept while the process is suspended. Hosts that do not share locks (some network file systems
have none) check the file ``lease`` instead, which its owner touches every few seconds.
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

WAIT = 5.0  # seconds for a trainer that is ending to release the folder
HEARTBEAT = 5.0  # seconds between two updates of the file's time
# seconds without a touch after which another host's trainer counts as dead; NFS may show a change
# 60 s late
DEAD = 90.0


@contextmanager
def held(folder: Path, name: str) -> Iterator[Lease]:
    """Lock a folder for the training `name` within the context.

    Raises `InputError` if another process holds the lock and does not release it within seconds.
    """
    lease = Lease(folder, name)
    lease.take()
    try:
        lease.name_job()
        yield lease
    finally:
        lease.release()


class Lease:
    """A lock on a folder: the system's lock, and a marker file that its owner keeps touching.

    lost: whether another process, which saw neither the lock nor a touch, took the folder.
    """

    def __init__(self, folder: Path, name: str) -> None:
        """Take a folder, and the name of the training for messages."""
        self.lost = False
        self._folder = folder
        self._name = name
        self._path = folder / "lease"
        self._job = folder / "lease.job"
        self._lock = FileLock(folder / "lease.lock", timeout=WAIT, fallback_to_soft=False)
        self._markers = [self._marker()]  # one more each time the file is deleted

    def take(self) -> None:
        """Take the lock, then the marker; raises `InputError` if the owner of either is alive."""
        before = _status(self._path)

        def owner_lives() -> bool:
            now = _status(self._path)
            return now is not None and now != before

        try:
            self._take_lock()
            self._remove_empty()
            self._markers[0].acquire(timeout=DEAD + WAIT, cancel_check=owner_lives)
        except Timeout:
            self._lock.release()
            raise InputError(self._refusal()) from None

    def name_job(self) -> None:
        """Record the SLURM job that holds the folder, for error messages."""
        write_text(self._job, os.environ.get("SLURM_JOB_ID", ""))

    def release(self) -> None:
        """Release the folder; another process's marker stays."""
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
        except OSError:  # ENOLCK, ENOSYS: without locks, only the marker counts
            pass

    def _remove_empty(self) -> None:
        """Remove an empty marker: filelock would wait for its owner forever.

        A power failure can leave an empty marker. A running owner fills its marker immediately.
        """
        before = _status(self._path)
        if before is None or self._path.stat().st_size:
            return
        time.sleep(WAIT)
        if _status(self._path) == before:
            self._path.unlink(missing_ok=True)

    def _compromised(self, loss: LeaseCompromise) -> None:
        """Recreate a deleted marker, or stop if another process has made its own.

        filelock calls this from the thread that touches the marker.
        """
        if loss.reason == "marker-missing" and self._restored():
            message = f"the file that marks {self._folder} as in use was deleted; it is recreated"
            print(message, file=sys.stderr, flush=True)
            return
        self.lost = True
        print(f"{self._refusal()}; this process ends ({loss.reason})", file=sys.stderr, flush=True)
        os.kill(os.getpid(), signal.SIGTERM)

    def _restored(self) -> bool:
        marker = self._marker()
        try:
            self._folder.mkdir(parents=True, exist_ok=True)  # may have been deleted, too
            marker.acquire(timeout=0)
        except (Timeout, OSError):
            return False
        self._markers.append(marker)
        return True

    def _refusal(self) -> str:
        """Return the error message, which names the owner and its SLURM job."""
        owner = self._markers[0].owner
        process = "an unknown process"
        if owner:
            process = f"process {owner.pid} on {owner.hostname.partition('?')[0]}"
        number = self._job.read_text(encoding="utf-8") if self._job.exists() else ""
        if number:
            process += f", job {number}"
        return (
            f"{self._name} is being trained already, by {process}; wait for it or end it "
            f"({self._folder})"
        )


def _status(path: Path) -> tuple[int, int] | None:
    """Return a marker's time and inode, which change with every touch; None without a marker."""
    with suppress(FileNotFoundError):
        status = path.stat()
        return status.st_mtime_ns, status.st_ino
    return None
