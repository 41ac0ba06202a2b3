"""Leases on folders: of two processes that would train in one, only one does.

A lock of the system on ``lease.lock`` ends with its process, however that ends. Hosts that do not share locks (some
network file systems) or have none at all see the file ``lease`` instead, which its holder touches every few seconds.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock, LeaseCompromise, SoftFileLease, Timeout

from cdmae.errors import InputError

WAIT = 5.0  # seconds for a trainer that is ending to let go of the folder
HEARTBEAT = 5.0  # seconds between two signs of life
DEAD = 90.0  # seconds without one after which another host's trainer counts as gone; NFS may show a change 60 s late


@dataclass
class Lease:
    """Whether a folder was lost to a twin, which saw neither the lock nor a sign of life."""

    lost: bool = False


@contextmanager
def held(folder: Path, name: str) -> Iterator[Lease]:
    """Lease a folder for the training `name` as long as the context lasts.

    Raises `InputError` where another process holds it and does not let go within some seconds. Where a twin takes it
    later, this process is asked to end, because only one of the two may go on. A lease that somebody deletes is made
    again.
    """
    lease, path, job = Lease(), folder / "lease", folder / "lease.job"

    def marked() -> SoftFileLease:
        times = {"lease_duration": DEAD, "heartbeat_interval": HEARTBEAT}
        markers.append(SoftFileLease(path, **times, on_compromise=missing, thread_local=False))
        return markers[-1]

    def refusal() -> InputError:
        """Name the holder, and its job in SLURM."""
        owner = markers[-1].owner
        pid, host = (owner.pid, owner.hostname.partition("?")[0]) if owner else ("?", "?")
        number = job.read_text(encoding="utf-8") if job.exists() else ""
        return InputError(
            f"{name} is being trained already, by process {pid} on {host}{number and f', job {number}'}; wait for it "
            f"or end it ({folder})"
        )

    def missing(loss: LeaseCompromise) -> None:
        """Make a lease again that was deleted, unless a twin has made its own; leave the folder to a twin."""
        if loss.reason == "marker-missing":
            with suppress(Timeout, OSError):
                folder.mkdir(parents=True, exist_ok=True)  # the lease may have gone with it
                marked().acquire(timeout=0)
                print(f"{path} was deleted; it is made again", file=sys.stderr, flush=True)
                return
        lease.lost = True
        print(f"{refusal()}; this process ends ({loss.reason})", file=sys.stderr, flush=True)
        os.kill(os.getpid(), signal.SIGTERM)

    def lives() -> bool:
        """Tell whether there was a sign of life of the holder since this process began to wait."""
        return (sign := _sign(path)) is not None and sign != first

    markers: list[SoftFileLease] = []
    marker = marked()
    lock, first = FileLock(folder / "lease.lock", timeout=WAIT, fallback_to_soft=False), _sign(path)
    try:
        try:
            lock.acquire()
        except OSError as error:  # ENOLCK, ENOSYS: only signs of life can tell
            if isinstance(error, Timeout):
                raise
        marker.acquire(timeout=DEAD + WAIT, cancel_check=lives)
    except Timeout:
        lock.release()
        raise refusal() from None
    try:
        job.write_text(os.environ.get("SLURM_JOB_ID", ""), encoding="utf-8")
        yield lease
    finally:
        if not lease.lost:
            job.unlink(missing_ok=True)
        for marker in markers:
            marker.release()
        lock.release()


def _sign(path: Path) -> tuple[int, int] | None:
    """Return what changes with every sign of life."""
    with suppress(FileNotFoundError):
        return path.stat().st_mtime_ns, path.stat().st_ino
    return None
