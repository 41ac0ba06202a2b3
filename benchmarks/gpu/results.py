"""The rows of a run, written after each of them; a step that fails, or is not to be had, is a row too."""

from __future__ import annotations

import gc
import importlib
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from multiprocessing.connection import Connection
from pathlib import Path

import torch

from benchmarks.gpu.sizes import PAPER, TOY, Sizes
from cdmae.files import write_json, write_text
from cdmae.training import ranks, setup
from cdmae.training.ranks import Ranks


@dataclass(frozen=True)
class Row:
    """A value in its unit, or a word; `passed` tells whether it reaches its target, None where it has none."""

    name: str
    value: float | str = ""
    unit: str = ""
    target: str = ""
    passed: bool | None = None
    note: str = ""


@dataclass(frozen=True)
class Run:
    """What a part is given; `deadline`: of its process, by `time.monotonic`."""

    group: Ranks
    sizes: Sizes
    deadline: float
    folder: Path

    @property
    def device(self) -> torch.device:
        """Return what is measured."""
        return self.group.device

    @property
    def on_gpu(self) -> bool:
        """Tell whether targets count."""
        return self.device.type == "cuda"


def attempt(run: Run, name: str, step: Callable[[Run], Iterator[Row]]) -> Iterator[Row]:
    """Yield the rows of a step; what is missing or fails becomes a row, so that others still run."""
    if time.monotonic() > run.deadline:
        yield Row(name, note="no time left")
        return
    try:
        yield from step(run)
    except ModuleNotFoundError as error:
        while isinstance(error.__cause__, ModuleNotFoundError):  # transformers' own say no name
            error = error.__cause__
        yield Row(name, note=f"not here: {error.name}")
    except Exception as error:  # noqa: BLE001 (whatever it is, the next step must run)
        place = error.__traceback__
        while place.tb_next:
            place = place.tb_next
        where = f"{Path(place.tb_frame.f_code.co_filename).name}, line {place.tb_lineno}"
        yield Row(name, passed=False, note=f"{type(error).__name__}: {' '.join(str(error).split())[:300]} ({where})")
    gc.collect()
    if run.on_gpu:
        torch.cuda.empty_cache()


def work(part: str, number: int, deadline: float, folder: Path, line: Connection) -> None:
    """Run a part in this process, which joins those of the same part under torchrun."""
    if "MASTER_PORT" in os.environ:  # a store of its own for every part: torchrun's would know the last one's addresses
        os.environ["MASTER_PORT"] = str(int(os.environ["MASTER_PORT"]) + 1 + number)
        os.environ.pop("TORCHELASTIC_USE_AGENT_STORE", None)
    device = setup.set_up(len(os.sched_getaffinity(0)) // int(os.environ.get("WORLD_SIZE", "1")))
    with ranks.joined(device) as group:
        run = Run(group, PAPER if device.type == "cuda" else TOY, deadline, folder)
        for row in attempt(run, part, lambda run: importlib.import_module(f"benchmarks.gpu.{part}").rows(run)):
            line.send(row)


class Results:
    """All rows by part, in ``results.json`` and ``results.md`` of a folder."""

    def __init__(self, folder: Path) -> None:
        """Make the folder."""
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.parts: dict[str, list[Row]] = {}

    def add(self, part: str, row: Row) -> None:
        """Add a row, write both files whole, and say it."""
        plain = {"value": row.value if isinstance(row.value, str) else float(row.value)}  # numpy's are not JSON
        row = replace(row, **plain, passed=None if row.passed is None else bool(row.passed))
        self.parts.setdefault(part, []).append(row)
        write_json(self.folder / "results.json", {name: list(map(asdict, rows)) for name, rows in self.parts.items()})
        write_text(self.folder / "results.md", "\n".join(_page(self.parts)))
        print(f"{part}: " + " | ".join(filter(None, _cells(row))), flush=True)


def _page(parts: dict[str, list[Row]]) -> Iterator[str]:
    checked = [row.passed for rows in parts.values() for row in rows if row.passed is not None]
    yield f"# On a GPU\n\n{sum(checked)} of {len(checked)} checks passed."
    for part, rows in parts.items():
        yield f"\n## {part}\n\n| | value | target | | note |\n|---|---:|---|---|---|"
        yield from (f"| {' | '.join(cell.replace('|', '/') for cell in _cells(row))} |" for row in rows)
    yield ""


def _cells(row: Row) -> list[str]:
    value = row.value if isinstance(row.value, str) else f"{row.value:,.4g}" if row.value < 1e4 else f"{row.value:,.0f}"
    passed = {True: "passed", False: "FAILED", None: ""}[row.passed]
    return [row.name, f"{value} {row.unit}".strip(), row.target, passed, row.note]
