"""Collect the rows of a run and write the files after each row."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path

from cdmae.files import write_json, write_text


@dataclass(frozen=True)
class Row:
    """A measured value with its unit, or a word; passed: whether it reaches its target, if any."""

    name: str
    value: float | str = ""
    unit: str = ""
    target: str = ""
    passed: bool | None = None
    note: str = ""


def work(part: str, number: int, deadline: float, folder: Path, line: Connection) -> None:
    """Run a part in this process, the only one that imports the part; send its rows."""
    from benchmarks.gpu.steps import run

    for row in run(part, number, deadline, folder):
        line.send(row)


def received(line: Connection, process: BaseProcess, end: float) -> Iterator[Row]:
    """Yield the rows of a part until it or its time ends, and a row if it ends too early."""
    try:
        while line.poll(max(0.0, end - time.monotonic())):
            yield line.recv()
    except EOFError:
        process.join(max(1.0, end - time.monotonic()))
    if process.exitcode is None:
        process.kill()
        process.join()
        yield Row("cut off", note="its time has ended")
    elif process.exitcode:
        yield Row("process", passed=False, note=f"it ended with {process.exitcode}")


class Results:
    """All rows by part, in ``results.json`` and ``results.md`` of a folder."""

    def __init__(self, folder: Path) -> None:
        """Make the folder."""
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.parts: dict[str, list[Row]] = {}

    def add(self, part: str, row: Row) -> None:
        """Add a row, rewrite both files, and print the row."""
        value = row.value
        if not isinstance(value, str):  # numpy's numbers are not JSON, nor is NaN
            value = float(value) if math.isfinite(value) else str(float(value))
        row = replace(row, value=value, passed=None if row.passed is None else bool(row.passed))
        self.parts.setdefault(part, []).append(row)
        write_json(
            self.folder / "results.json",
            {name: list(map(asdict, rows)) for name, rows in self.parts.items()},
        )
        write_text(self.folder / "results.md", "\n".join(_page(self.parts)))
        print(f"{part}: " + " | ".join(filter(None, _cells(row))), flush=True)


def _page(parts: dict[str, list[Row]]) -> Iterator[str]:
    checked = [row.passed for rows in parts.values() for row in rows if row.passed is not None]
    yield f"# On a GPU\n\n{sum(checked)} of {len(checked)} checks passed."
    for part, rows in parts.items():
        yield f"\n## {part}\n\n| | value | target | | note |\n|---|---:|---|---|---|"
        yield from (
            f"| {' | '.join(cell.replace('|', '/') for cell in _cells(row))} |" for row in rows
        )
    yield ""


def _cells(row: Row) -> list[str]:
    value = (
        row.value
        if isinstance(row.value, str)
        else f"{row.value:,.4g}"
        if row.value < 1e4
        else f"{row.value:,.0f}"
    )
    passed = {True: "passed", False: "FAILED", None: ""}[row.passed]
    return [row.name, f"{value} {row.unit}".strip(), row.target, passed, row.note]
