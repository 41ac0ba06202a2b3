"""Describe the machine of a run; standard library only."""

from __future__ import annotations

import os
import platform
import re
from pathlib import Path

PROC = Path("/proc")


def describe(proc: Path = PROC) -> dict[str, str]:
    """Return the system, the processor with its usable cores, the memory and the GPUs, if known.

    proc: the folder of Linux's process file system; without it, memory and GPUs are unknown.
    """
    cores = os.cpu_count() or 1
    if hasattr(os, "sched_getaffinity"):
        cores = len(os.sched_getaffinity(0))
    model = _first(proc / "cpuinfo", r"model name\s*: (.+)")
    name = model or platform.processor() or platform.machine()
    words = {
        "system": f"{platform.system()} {platform.machine()}",
        "processor": f"{name}, {cores} core{'s' if cores > 1 else ''}",
    }
    kilobytes = _first(proc / "meminfo", r"MemTotal:\s*(\d+) kB")
    if kilobytes:
        words["memory"] = f"{int(kilobytes) / 2**20:.0f} GB"
    models = [
        _first(path, r"Model:\s*(.+)")
        for path in sorted(proc.glob("driver/nvidia/gpus/*/information"))
    ]
    counts = [f"{models.count(model)} x {model}" for model in dict.fromkeys(models)]
    words["GPU"] = ", ".join(counts) or "none"
    return words


def _first(path: Path, pattern: str) -> str:
    """Return the first group of a pattern's first match in a file; "" for a missing file."""
    if not path.exists():
        return ""
    words = re.search(pattern, path.read_text(encoding="utf-8", errors="replace"))
    return words[1].strip() if words else ""
