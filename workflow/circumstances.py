"""Add versions, machine and start time of a run to the facts of its report.

A change in these facts alone must not cause the report to be made again. They are therefore not
parameters of its rule, which runs this module as a script.
"""

from __future__ import annotations

import os
import platform
import sys
from datetime import datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from cdmae.files import read_json, write_json
from cdmae.plan.describe import describe

STARTED = "CDMAE_STARTED"  # the environment variable with the start time of a run
PACKAGES = ("torch", "transformers", "sentence-transformers", "pyserini", "snakemake")


def now() -> str:
    """Return the local time with its zone, to the minute."""
    return datetime.now().astimezone().isoformat(sep=" ", timespec="minutes")


def circumstances() -> dict[str, Any]:
    """Collect the versions of Python and packages, the machine, and the run's start time."""
    versions = {"python": platform.python_version()} | {name: version(name) for name in PACKAGES}
    return {"versions": versions, "machine": describe(), "started": os.environ.get(STARTED, now())}


if __name__ == "__main__":
    source, target = map(Path, sys.argv[1:])
    write_json(target, read_json(source) | circumstances())
