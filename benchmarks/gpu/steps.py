"""Run the steps of a part: a failed or impossible step becomes a row, and the next step runs."""

from __future__ import annotations

import gc
import importlib
import os
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import torch

from benchmarks.gpu.results import Row
from benchmarks.gpu.sizes import PAPER, TOY, Sizes
from cdmae.training import ranks, setup
from cdmae.training.ranks import Ranks

OURS = ("benchmarks", "cdmae", "workflow")


@dataclass(frozen=True)
class Run:
    """The processes and the sizes of a part.

    deadline: the time by `time.monotonic` after which no step starts
    """

    group: Ranks
    sizes: Sizes
    deadline: float
    folder: Path

    @property
    def device(self) -> torch.device:
        """Return this process's device."""
        return self.group.device

    @property
    def on_gpu(self) -> bool:
        """Return whether the device is a GPU, with the paper's sizes and speed targets."""
        return self.device.type == "cuda"


def run(part: str, number: int, deadline: float, folder: Path) -> Iterator[Row]:
    """Yield the rows of the part with an index; under torchrun all processes join it."""
    if (
        "MASTER_PORT" in os.environ
    ):  # a store of its own for every part: torchrun's would know the last one's addresses
        os.environ["MASTER_PORT"] = str(int(os.environ["MASTER_PORT"]) + 1 + number)
        os.environ.pop("TORCHELASTIC_USE_AGENT_STORE", None)
    processes = int(os.environ.get("WORLD_SIZE", "1"))
    # OMP_NUM_THREADS counts for one process; for several, torchrun sets it to 1
    threads = torch.get_num_threads()
    if processes > 1:
        threads = len(os.sched_getaffinity(0)) // processes
    device = setup.set_up(threads)
    with ranks.joined(device) as group:
        here = Run(group, PAPER if device.type == "cuda" else TOY, deadline, folder)
        yield from attempt(
            here, part, lambda here: importlib.import_module(f"benchmarks.gpu.{part}").rows(here)
        )


def attempt(here: Run, name: str, step: Callable[[Run], Iterator[Row]]) -> Iterator[Row]:
    """Yield the rows of a step; a missing or failed step becomes a row, so others still run."""
    if time.monotonic() > here.deadline:
        yield Row(name, note="no time left")
        return
    try:
        yield from step(here)
    except ModuleNotFoundError as error:
        while isinstance(error.__cause__, ModuleNotFoundError):  # transformers' have no name
            error = error.__cause__
        ours = (error.name or "").split(".")[
            0
        ] in OURS  # which is a wrong import, not a missing package
        yield Row(
            name,
            passed=False if ours else None,
            note=f"{'no module' if ours else 'not here'}: {error.name}",
        )
    except TimeoutError as error:
        yield Row(name, note=f"no time left: {' '.join(str(error).split())}")
    except Exception as error:  # noqa: BLE001 (whatever it is, the next step must run)
        place = traceback.extract_tb(error.__traceback__)[
            -1
        ]  # which keeps nothing of the frames and their tensors
        said = f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
        yield Row(
            name, passed=False, note=f"{said} ({Path(place.filename).name}, line {place.lineno})"
        )
    if here.on_gpu:
        gc.collect()
        torch.cuda.empty_cache()
