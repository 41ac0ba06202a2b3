"""Measure several forms of the same work: in processes of their own, which take turns.

No form inherits memory, caches or kernels of another. All have the same settings of heap and
threads, and the same weights and texts. Ratios are medians over rounds in which all forms take
their turn, so a machine that is busy slows all of them alike. Times are CPU times. A benchmark
exits with 1 if the results of its forms differ.

Every row is added to ``benchmarks/results.jsonl``, with machine, date, commit and command;
`python -m benchmarks` prints the newest ones as a table.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import multiprocessing
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np
from tabulate import tabulate

from cdmae.circumstances import describe
from cdmae.models.ragged import Ragged
from cdmae.training import setup

RESULTS = Path(__file__).with_name("results.jsonl")
BF16 = "_bf16"  # ends the names of forms that compute in bfloat16
ONE_CHUNK = "_one_chunk"  # ends the names of forms that keep the graph of the whole batch
TOLERANCE = 1e-5  # of the results, relative to those of the first form
TOLERANCE_BF16 = 0.02
LARGE = 10**6  # numbers of a result from which only its hash is compared

# Prepares a form's work, and returns a function that does it and returns its result.
Start = Callable[[str, argparse.Namespace], Callable[[], np.ndarray]]


@dataclass
class Taken:
    """What a form took: CPU seconds of each round, GB above its start, and its first result."""

    seconds: list[float] = field(default_factory=list)
    memory: float = 0.0
    result: np.ndarray | None = None


def precision(form: str) -> str:
    """Return the precision in which a form computes, by its name."""
    return "bf16" if form.endswith(BF16) else "fp32"


def chunk_of(form: str, chunk: int, read: Ragged) -> int:
    """Return the passages per chunk for a form: all texts of the batch for `ONE_CHUNK`."""
    return len(read) if form.endswith(ONE_CHUNK) else chunk


def parser(description: str, **sizes: int) -> argparse.ArgumentParser:
    """Return a parser with options for sizes, by their defaults, for threads and for rounds."""
    made = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    made.add_argument("--output", type=Path, default=RESULTS, help="JSON lines to add rows to")
    for name, default in ({"threads": 1, "rounds": 5} | sizes).items():
        made.add_argument(f"--{name}", type=int, default=default)
    return made


def comparable(result: np.ndarray) -> np.ndarray:
    """Return a result as float64; of a large one, a hash: such results must be equal bit by bit."""
    array = np.ascontiguousarray(result)
    if array.size > LARGE:
        array = np.frombuffer(hashlib.sha256(array).digest(), np.uint8)
    return array.astype(np.float64)


def compare(
    start: Start,
    forms: dict[str, str],
    given: argparse.Namespace,
    task: str,
    *,
    work: str = "",
    tolerance: float = TOLERANCE,
    units: int = 1,
) -> None:
    """Measure the forms, named by their titles, print a table, and add rows to the results.

    task: what is measured, the same at every call. work: its sizes. units: how often a round does
    the work. Exits with an error if the results differ from those of the first form.
    """
    taken = take_turns(start, forms, given)
    first = taken[next(iter(forms))].result
    for form, each in taken.items():
        allowed = TOLERANCE_BF16 if form.endswith(BF16) else tolerance
        gap = np.linalg.norm(each.result - first) / np.linalg.norm(first)
        if not gap <= allowed:
            raise SystemExit(f"the result of {forms[form]} differs by {gap:.1e} of its size")
    rows = [row_of(form, forms, taken, units) for form in forms]
    print(f"{task}, {work}; {describe()['processor']}; threads: {given.threads}\n")
    print(tabulate(rows, "keys"), "\n", flush=True)
    about = {"task": task, "work": work, "threads": given.threads, "rounds": given.rounds}
    record(given.output, [about | row for row in rows])


def record(path: Path, rows: list[dict[str, object]]) -> None:
    """Add rows to a file of results, with machine, date, commit and command."""
    git = ["git", "-C", str(Path(__file__).parent), "describe", "--always", "--dirty"]
    found = subprocess.run(git, capture_output=True, text=True, check=False)
    words = [Path(sys.argv[0]).stem, *sys.argv[1:]]
    made = {
        "machine": describe()["processor"],
        "date": datetime.now(UTC).date().isoformat(),
        "commit": found.stdout.strip() or "unknown",
        "command": "benchmarks." + " ".join(words),
    }
    with open(path, "a", encoding="utf-8") as file:
        for row in rows:
            file.write(json.dumps(row | made, ensure_ascii=False) + "\n")


def take_turns(start: Start, forms: dict[str, str], given: argparse.Namespace) -> dict[str, Taken]:
    """Run every form once to warm up, then in `given.rounds` rounds."""
    spawned = multiprocessing.get_context("spawn")
    lines = {}
    processes = []
    for form in forms:
        lines[form], theirs = spawned.Pipe()
        process = spawned.Process(target=worked, args=(start, form, given, theirs), daemon=True)
        process.start()
        theirs.close()
        processes.append(process)
    taken = {form: Taken() for form in forms}
    for number in range(given.rounds + 1):
        for form, line in lines.items():
            line.send(True)
            seconds, taken[form].memory, result = line.recv()
            if number:
                taken[form].seconds.append(seconds)
            else:
                taken[form].result = result
    for line, process in zip(lines.values(), processes, strict=True):
        line.send(False)
        process.join()
    return taken


def worked(start: Start, form: str, given: argparse.Namespace, line: Connection) -> None:
    """Prepare a form, then do its work at each request; answer with seconds, GB and result."""
    setup.set_up(given.threads)
    once = start(form, given)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    while line.recv():
        begun = time.process_time()
        result = once()
        seconds = time.process_time() - begun
        memory = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 2**20
        line.send((seconds, memory, comparable(result)))


def row_of(
    form: str, forms: dict[str, str], taken: dict[str, Taken], units: int
) -> dict[str, object]:
    """Return a form's row; the ratio is its time by that of ours in the same precision."""
    own = taken[form]
    ours = taken[f"ours{BF16}" if form.endswith(BF16) else "ours"]
    return {
        "form": forms[form],
        "precision": precision(form),
        "cpu_ms": round(1000 * float(np.median(own.seconds)) / units, 4),
        "ratio": round(float(np.median(np.divide(own.seconds, ours.seconds))), 3),
        "memory_gb": round(own.memory, 3),
    }
