"""Measure several forms of the same work: in processes of their own, which take turns.

No form inherits memory, caches or kernels of another. All have the same settings of heap and
threads, and the same weights and texts. Ratios are medians over rounds in which all forms take
their turn, so a machine that is busy slows all of them alike. Times are CPU times.
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from multiprocessing.connection import Connection

import numpy as np

from benchmarks.tables import table
from cdmae.circumstances import describe
from cdmae.models.ragged import Ragged
from cdmae.training import setup

BF16 = "_bf16"  # ends the names of forms that compute in bfloat16
ONE_CHUNK = "_one_chunk"  # ends the names of forms that keep the graph of the whole batch
TOLERANCE = {"float32": 1e-5, "bf16": 0.02}  # of the results, relative to those of the first form

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
    for name, default in ({"threads": 1, "rounds": 5} | sizes).items():
        made.add_argument(f"--{name}", type=int, default=default)
    return made


def compare(start: Start, forms: dict[str, str], given: argparse.Namespace, title: str) -> None:
    """Measure the forms, named by their titles, and print a table.

    Exits with an error if the results differ.
    """
    taken = take_turns(start, forms, given)
    print(f"{title}; {describe()['processor']}; threads: {given.threads}\n")
    print(table([_row(form, forms, taken) for form in forms]))
    first = taken[next(iter(forms))].result
    for form, each in taken.items():
        kind = "bf16" if form.endswith(BF16) else "float32"
        gap = np.linalg.norm(each.result - first) / np.linalg.norm(first)
        if not gap <= TOLERANCE[kind]:
            raise SystemExit(f"the result of {forms[form]} differs by {gap:.1e} of its size")
    print()


def take_turns(start: Start, forms: dict[str, str], given: argparse.Namespace) -> dict[str, Taken]:
    """Run every form once to warm up, then in `given.rounds` rounds."""
    spawned = multiprocessing.get_context("spawn")
    lines = {}
    processes = []
    for form in forms:
        lines[form], theirs = spawned.Pipe()
        process = spawned.Process(target=work, args=(start, form, given, theirs), daemon=True)
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


def work(start: Start, form: str, given: argparse.Namespace, line: Connection) -> None:
    """Prepare a form, then do its work at each request; answer with seconds, GB and result."""
    setup.set_up(given.threads)
    once = start(form, given)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    while line.recv():
        begun = time.process_time()
        result = np.asarray(once())
        seconds = time.process_time() - begun
        memory = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 2**20
        line.send((seconds, memory, result))


def _row(form: str, forms: dict[str, str], taken: dict[str, Taken]) -> dict[str, str]:
    """Return a row of the table; the ratio is to ours in the same precision."""
    own = taken[form]
    ours = f"ours{BF16}" if form.endswith(BF16) else "ours"
    times = ""
    if ours in taken:
        times = f"x {np.median(np.divide(own.seconds, taken[ours].seconds)):.2f}"
    return {
        "form": forms[form],
        "precision": precision(form),
        "cpu-ms": f"{1000 * np.median(own.seconds):,.0f}",
        "time of ours": times,
        "memory, GB": f"{own.memory:.2f}",
    }
