"""The vectors of a collection, in shards."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from cdmae.errors import InputError
from cdmae.files.arrays import read_array


def read_vectors(folder: Path | str) -> list[np.ndarray]:
    """The shards of a collection's vectors, memory-mapped, in the order of the passages: float32 [p, D] each."""
    paths = sorted(Path(folder).glob("[0-9]*.npy"))
    if not paths:
        raise InputError(f"{folder} holds no vectors; delete it and run again")
    return [read_array(path) for path in paths]


@dataclass(frozen=True)
class Made:
    """A shard of vectors of this `shape` [p, D] that is made by `make` whenever it is read."""

    shape: tuple[int, int]
    make: Callable[[], np.ndarray]
    ndim = 2

    def __len__(self) -> int:
        """The number of passages p."""
        return self.shape[0]

    def __getitem__(self, rows: slice) -> np.ndarray:
        """The vectors of some of its rows."""
        return self.make()[rows]
