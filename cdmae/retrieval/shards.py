"""The vectors of a collection's passages in shards, which are made or read one by one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from cdmae.log import Progress

# of a kind in `cdmae.retrieval.kinds`
Vectors = Any


@dataclass(frozen=True)
class Shard:
    """A shard of vectors of `shape` [p, D]; `make` computes or reads them at each access."""

    shape: tuple[int, int]
    make: Callable[[], Vectors]

    def __len__(self) -> int:
        """Return the number of passages p."""
        return self.shape[0]

    def __getitem__(self, rows: slice) -> Vectors:
        """Return the vectors of the given rows."""
        return self.make()[rows]


Shards = Sequence[Shard | np.ndarray]


def cut(count: int, width: int, make: Callable[[int, int], Vectors], size: int) -> list[Shard]:
    """Cut `count` passages into shards of `size`; make(first, last) returns vectors [p, width]."""
    edges = [*range(0, count, size), count]
    return [
        Shard((last - first, width), partial(make, first, last)) for first, last in pairwise(edges)
    ]


def blocks(shards: Shards, size: int) -> Iterator[tuple[int, Vectors]]:
    """Yield all vectors in blocks of at most `size` passages, with each block's first row."""
    first = 0
    with Progress(sum(map(len, shards)), unit="passages", label="search") as progress:
        for shard in shards:
            vectors = shard[:]
            for begin in range(0, len(shard), size):
                block = vectors[begin : begin + size]
                yield first + begin, block
                progress.advance(block.shape[0])
            first += len(shard)
