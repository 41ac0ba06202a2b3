"""Measure another process: wall time, CPU time, and its peak memory."""

from __future__ import annotations

import os
import re
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

EVERY = 0.05  # seconds between two readings


@dataclass(frozen=True)
class Taken:
    """Seconds and bytes; `own` is the memory without mapped files, which the system may reclaim."""

    seconds: float
    cpu: float
    memory: int
    own: int


def measure(command: Sequence[str | Path], **options: object) -> Taken:
    """Run a command to its end; raises `CalledProcessError` if it fails.

    options: arguments of `subprocess.Popen`

    The peak is the system's own record, VmHWM: the peak of getrusage includes the memory of this
    process when it forked.
    """
    begun = time.perf_counter()
    memory = 0
    own = 0
    process = subprocess.Popen(list(map(str, command)), **options)
    while not os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT):
        found = _status(process.pid)
        memory = max(memory, found.get("VmHWM", 0))
        own = max(own, found.get("RssAnon", 0) + found.get("RssShmem", 0))
        time.sleep(EVERY)
    seconds = time.perf_counter() - begun
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, process.args)
    return Taken(seconds, usage.ru_utime + usage.ru_stime, memory, own)


def _status(process: int) -> dict[str, int]:
    """Read the system's record of the memory of a process, in bytes."""
    status = Path(f"/proc/{process}/status").read_text()
    return {
        name: int(kilobytes) * 1024
        for name, kilobytes in re.findall(r"^(\w+):\s*(\d+) kB", status, re.MULTILINE)
    }
