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
    """The vectors of `count` passages; `make` computes or reads them at each access."""

    count: int
    make: Callable[[], Vectors]

    def __len__(self) -> int:
        """Return the number of passages p."""
        return self.count

    def __getitem__(self, rows: slice) -> Vectors:
        """Return the vectors of the given rows."""
        return self.make()[rows]


Shards = Sequence[Shard | np.ndarray]


def cut(count: int, make: Callable[[int, int], Vectors], size: int) -> list[Shard]:
    """Cut `count` passages into shards of `size`; make(first, last) returns their vectors."""
    edges = [*range(0, count, size), count]
    return [Shard(last - first, partial(make, first, last)) for first, last in pairwise(edges)]


def blocks(shards: Shards, size: int) -> Iterator[tuple[int, Vectors]]:
    """Yield all vectors in blocks of at most `size` passages, with each block's first row."""
    first = 0
    with Progress(sum(map(len, shards)), unit="passages", label="search") as progress:
        for shard in shards:
            vectors = shard[:]
            for begin in range(0, len(shard), size):
                yield first + begin, vectors[begin : begin + size]
                progress.advance(min(size, len(shard) - begin))
            first += len(shard)
