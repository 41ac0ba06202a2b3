"""A lease on the folder of a training's state: one trainer at a time.

A killed workflow engine may leave a trainer running, and a cluster may start a job again that still
runs on another node. The system's lock on ``lease.lock`` is released even if the process crashes;
without such locks, as on some network file systems, filelock keeps a marker file instead.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from cdmae.errors import InputError
from cdmae.files import write_text

WAIT = 5.0  # seconds for a trainer that is ending to release the folder


@contextmanager
def held(folder: Path, name: str) -> Iterator[None]:
    """Lock a folder for the training `name` within the context.

    Raises `InputError` if another process holds the lock and does not release it within seconds.
    """
    owner = folder / "lease"
    lock = FileLock(folder / "lease.lock", timeout=WAIT)
    try:
        lock.acquire()
    except Timeout:
        process = owner.read_text(encoding="utf-8") if owner.exists() else "another process"
        raise InputError(
            f"{name} is being trained already, by {process}; wait for it or end it ({folder})"
        ) from None
    job = os.environ.get("SLURM_JOB_ID", "")
    try:
        host = os.uname().nodename
        write_text(owner, f"process {os.getpid()} on {host}" + (f", job {job}" if job else ""))
        yield
    finally:
        owner.unlink(missing_ok=True)
        lock.release()
