"""Collect the versions, machine, start time and origin of a run for its report.

A change in these facts alone must not cause the report to be made again. They are therefore not
parameters of its rule, whose script calls this module.
"""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
from datetime import datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import psutil

from cdmae.formats import plural

STARTED = "CDMAE_STARTED"  # the environment variable with the start time of a run
COMMAND = "CDMAE_COMMAND"  # the environment variable with the words of the command, as JSON
ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("torch", "transformers", "sentence-transformers", "pyserini", "snakemake")


def now() -> str:
    """Return the local time with its time zone, to the second."""
    return datetime.now().astimezone().isoformat(sep=" ", timespec="seconds")


def circumstances() -> dict[str, Any]:
    """Collect the versions of Python and packages, the machine, the times and the origin.

    wall: the seconds since the start of the run, which ends with the report.
    """
    ended = now()
    started = os.environ.get(STARTED, ended)
    wall = datetime.fromisoformat(ended) - datetime.fromisoformat(started)
    versions = {"python": platform.python_version()} | {name: version(name) for name in PACKAGES}
    return {
        "versions": versions,
        "machine": describe(),
        "started": started,
        "wall": wall.total_seconds() if STARTED in os.environ else None,
        "origin": origin(),
    }


def describe() -> dict[str, str]:
    """Return the system, the processor with its usable cores, the memory and the GPUs."""
    known = Path("/proc/cpuinfo")
    found = re.search(r"model name\s*: (.+)", known.read_text()) if known.exists() else None
    name = found[1].strip() if found else platform.processor() or platform.machine()
    cards = gpus()
    return {
        "system": f"{platform.system()} {platform.machine()}",
        "processor": f"{name}, {plural(cores(), 'core')}",
        "memory": f"{psutil.virtual_memory().total / 2**30:.0f} GB",
        "GPU": f"{len(cards)} x {cards[0]}" if cards else "none",
    }


def cores() -> int:
    """Count the cores that this process may use."""
    return len(psutil.Process().cpu_affinity() if psutil.LINUX else range(os.cpu_count() or 1))


def gpus() -> list[str]:
    """List the names of this machine's GPUs."""
    return _output("nvidia-smi", "--query-gpu=name", "--format=csv,noheader").splitlines()


def origin() -> dict[str, Any]:
    """Return the commit of the code, whether tracked files differ from it, and the command.

    Outside a git checkout, the commit is missing. In a job that does not inherit the environment of
    ``./run``, the command is empty.
    """
    found = {"command": json.loads(os.environ.get(COMMAND, "[]"))}
    git = ("git", "-C", str(ROOT))
    top = _output(*git, "rev-parse", "--show-toplevel")  # a copy may be in another checkout
    commit = _output(*git, "rev-parse", "HEAD")
    if commit and Path(top).resolve() == ROOT:
        changes = _output(*git, "status", "--porcelain", "--untracked-files=no")
        found |= {"commit": commit, "changed": bool(changes)}
    return found


def _output(*command: str) -> str:
    """Return what a command prints; "" if it fails or is missing."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.strip()
