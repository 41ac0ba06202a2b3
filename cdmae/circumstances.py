"""Collect the versions, machine, start time and origin of a run for its report.

A change in these facts alone must not cause the report to be made again. They are therefore not
parameters of its rule, whose script calls this module.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
from datetime import datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from cdmae.describe import describe

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


def origin() -> dict[str, Any]:
    """Return the commit of the code, whether tracked files differ from it, and the command.

    Outside a git checkout, the commit is missing. In a job that does not inherit the environment of
    ``./run``, the command is empty.
    """
    found = {"command": json.loads(os.environ.get(COMMAND, "[]"))}
    top = _git("rev-parse", "--show-toplevel")  # a copy may be in a checkout of something else
    commit = _git("rev-parse", "HEAD")
    if commit and Path(top).resolve() == ROOT:
        changes = _git("status", "--porcelain", "--untracked-files=no")
        found |= {"commit": commit, "changed": bool(changes)}
    return found


def _git(*words: str) -> str:
    """Return the output of git in the checkout; "" if git fails or is missing."""
    command = ["git", "-C", str(ROOT), *words]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    except OSError:
        return ""
    return done.stdout.strip()
