"""Arrays that the processes of a training share: one process makes them, all map its files.

The system keeps one copy of a mapped file in the memory of a machine. The files are in a hidden
folder next to the training's state; the next training with this state deletes what a kill has left.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from cdmae.arrays import read_array, write_array
from cdmae.training.ranks import Ranks

Arrays = dict[str, np.ndarray]


@dataclass(frozen=True)
class Shared:
    """The shared arrays of the processes in `group`; a single process keeps its own in memory."""

    group: Ranks = Ranks()
    folder: Path | None = None

    def arrays(self, name: str, make: Callable[[], Arrays]) -> Arrays:
        """Return the arrays that `make` returns; only the first process calls it."""
        if self.group.size == 1:
            return make()
        folder = self.folder / name
        if self.group.first:
            folder.mkdir(parents=True)
            for key, values in make().items():
                write_array(folder / f"{key}.npy", values)
        self.group.wait_for_first(str(folder))
        paths = sorted(folder.iterdir())
        return {path.stem: read_array(path).view(np.ndarray) for path in paths}


ALONE = Shared()


@contextmanager
def sharing(state: Path, group: Ranks) -> Iterator[Shared]:
    """Yield the shared arrays of a training with this state folder; delete them afterwards."""
    if group.size == 1:
        yield ALONE
        return
    folder = state.with_name(f".{state.name}.shared")
    if group.first:
        shutil.rmtree(folder, ignore_errors=True)
    try:
        yield Shared(group, folder)
    finally:
        if group.first:
            shutil.rmtree(folder, ignore_errors=True)
