"""Run every form of a benchmark in its own process: no form inherits memory, caches or kernels."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable
from typing import Any


def measure_each(benchmark: str, forms: Iterable[str]) -> dict[str, Any]:
    """Run a benchmark with the arguments of this process and ``--form``; read its JSON."""
    command = [sys.executable, "-m", f"benchmarks.{benchmark}", *sys.argv[1:], "--form"]
    return {
        form: json.loads(
            subprocess.run([*command, form], check=True, capture_output=True, text=True).stdout
        )
        for form in forms
    }
