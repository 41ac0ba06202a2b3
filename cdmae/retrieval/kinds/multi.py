"""Multi-vectors: one vector per word-piece, searched by MaxSim or COIL's matching.

A shard is two arrays. ``00000.npy`` has the vectors of all its word-pieces, float16 [t, D], passage
by passage. ``tokens-00000.npy`` has each vector's passage, counted from 0 in the shard, and its
word-piece, int32 [t, 2].

The score of a query and a passage is sum_i max_j q_i . d_j, or COIL's (`cdmae.models.heads.multi`).
`cdmae.retrieval.maxsim` computes it for one pair at a time, from vectors of passages that were
rounded to float16. The result depends neither on blocks nor on threads. A search among candidates
that include the best passages has the same result as a search among all passages.

    Q queries, P passages, D dimensions, t vectors of a shard, n pairs
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from cdmae.arrays import write_array
from cdmae.errors import InputError
from cdmae.files import complete
from cdmae.models.checkpoint import Model
from cdmae.models.heads import multi as head
from cdmae.models.ragged import Ragged, indices, starts_of
from cdmae.retrieval import ranking
from cdmae.retrieval.shards import Shards, blocks
from cdmae.runs import Run

TOKENS = "tokens-"  # begins the names of the files with passages and word-pieces
SUFFIX = ".npy"
MARK = f"{TOKENS}*"
# queries and passages per block, whose scores are in memory together
QUERIES, PASSAGES = 1024, 1 << 12
# passages that are scored without candidates: half a second a query on a core
MOST_EXHAUSTIVE = 200_000
PAIRS = 1 << 14  # pairs per call of the compiled function


@dataclass(frozen=True)
class MultiVectors:
    """The vectors of texts: text i has ``values[starts[i]:starts[i + 1]]``.

    values: [t, D], float32, or float16 of stored passages; starts: int64 [n + 1]; pieces: the
    word-piece of each vector, int32 [t], or a negative number for a row of a [CLS] vector
    (`cdmae.models.heads.multi`). paired: whether a vector of these queries is compared only with
    vectors of the same word-piece.
    """

    values: np.ndarray
    starts: np.ndarray
    pieces: np.ndarray
    paired: bool = False

    def __len__(self) -> int:
        """Return the number of texts n."""
        return len(self.starts) - 1

    def __getitem__(self, texts: slice) -> MultiVectors:
        """Return a range of texts."""
        first, last, _ = texts.indices(len(self))
        starts = self.starts[first : max(first, last) + 1]
        cut = slice(starts[0], starts[-1])
        return replace(
            self, values=self.values[cut], starts=starts - starts[0], pieces=self.pieces[cut]
        )

    def rounded(self) -> MultiVectors:
        """Round to float16, as passages are stored; raise `InputError` above its largest number."""
        if self.values.dtype == np.float16:
            return self
        with np.errstate(over="ignore"):
            values = self.values.astype(np.float16)
        if not np.isfinite(values).all():
            raise InputError(
                "some numbers of the passages' vectors exceed 65,504, the largest of float16: the "
                "training diverged; lower its learning_rate and train again"
            )
        return replace(self, values=values)


TYPE = MultiVectors


def gathered(
    model: Model, read: Ragged, chunks: Iterable[tuple[np.ndarray, np.ndarray]]
) -> MultiVectors:
    """Return the vectors of sequences."""
    pieces = head.scored(read, model.network)
    values = np.empty((len(pieces.values), head.width(model.network)), dtype=np.float32)
    for rows, vectors in chunks:
        values[indices(pieces.starts[rows], pieces.lengths[rows])] = vectors
    paired = model.match == "equal"
    return MultiVectors(values, pieces.starts, pieces.values.astype(np.int32), paired)


def joined(parts: Sequence[MultiVectors]) -> MultiVectors:
    """Concatenate the vectors of several lists of texts."""
    lengths = np.concatenate([np.diff(part.starts) for part in parts])
    return replace(
        parts[0],
        values=np.concatenate([part.values for part in parts]),
        starts=starts_of(lengths),
        pieces=np.concatenate([part.pieces for part in parts]),
    )


# --- on disk --------------------------------------------------------------------------------------


def write(folder: Path, name: str, vectors: MultiVectors) -> None:
    """Write a shard's two files; the vectors come last, because their file marks completion."""
    vectors = vectors.rounded()
    passages = np.repeat(np.arange(len(vectors)), np.diff(vectors.starts))
    tokens = np.stack([passages, vectors.pieces], axis=1).astype(np.int32)
    for file, values in ((f"{TOKENS}{name}", tokens), (name, vectors.values)):
        with complete(folder / f"{file}{SUFFIX}") as aside:
            write_array(aside, values)


def read(path: Path) -> MultiVectors:
    """Memory-map the vectors of a shard."""
    tokens = np.load(path.with_name(TOKENS + path.name), mmap_mode="r")
    values = np.load(path, mmap_mode="r")
    starts = np.searchsorted(tokens[:, 0], np.arange(count(path) + 1)).astype(np.int64)
    return MultiVectors(values, starts, np.ascontiguousarray(tokens[:, 1]))


def count(path: Path) -> int:
    """Return the number of passages of a shard without reading its vectors."""
    tokens = np.load(path.with_name(TOKENS + path.name), mmap_mode="r")
    return int(tokens[-1, 0]) + 1 if len(tokens) else 0


# --- search ---------------------------------------------------------------------------------------


def search(
    queries: MultiVectors,
    shards: Shards,
    depth: int,
    *,
    candidates: Run | None = None,
    threads: int = 1,
    device: str = "cpu",
) -> Run:
    """Find the `depth` passages with the greatest score for each query, ties by row.

    candidates: a run with the passages to score for each query; None: all.
    """
    with ThreadPoolExecutor(max(1, threads)) as pool:
        if candidates is not None:
            return _search_among(queries, shards, candidates, depth, pool)
        count = sum(map(len, shards))
        if count > MOST_EXHAUSTIVE:
            raise InputError(
                f"{count:,} passages with a vector per word-piece are too many to score all; "
                f"expected up to {MOST_EXHAUSTIVE:,}, or candidates: SYSTEM, to score only its best"
            )
        best = ranking.Best(len(queries), depth)
        for first, block in blocks(shards, PASSAGES):
            block = block.rounded()
            rows = np.arange(len(block))
            for begin in range(0, len(queries), QUERIES):
                some = queries[begin : begin + QUERIES]
                query_of = np.tile(np.arange(len(some)), len(rows))
                found = _pairs(some, block, query_of, np.repeat(rows, len(some)), pool)
                for query, scores in enumerate(found.reshape(len(rows), -1).T, begin):
                    best.add(query, first + rows, scores)
        return best.run()


def _search_among(
    queries: MultiVectors, shards: Shards, candidates: Run, depth: int, pool: ThreadPoolExecutor
) -> Run:
    """Rank the candidates of each query, ties by row, and keep the best `depth`."""
    order = np.argsort(candidates.passages, kind="stable")
    passage_of = candidates.passages[order].astype(np.int64)
    query_of = candidates.queries[order]
    scores = np.empty(len(order), np.float32)
    for first, block in blocks(shards, PASSAGES):
        cut = slice(*np.searchsorted(passage_of, [first, first + len(block)]))
        own = passage_of[cut] - first
        scores[cut] = _pairs(queries, block.rounded(), query_of[cut], own, pool)
    return ranking.ranked(query_of, passage_of, scores, len(candidates), depth)


def _pairs(
    queries: MultiVectors,
    vectors: MultiVectors,
    query_of: np.ndarray,
    passage_of: np.ndarray,
    pool: ThreadPoolExecutor,
) -> np.ndarray:
    """Return the scores of pairs, float32 [n]."""
    from cdmae.retrieval import maxsim  # it imports numba, which takes a second

    rows, passage_of = np.unique(passage_of, return_inverse=True)
    lengths = np.diff(vectors.starts)[rows]
    read = indices(vectors.starts[rows], lengths)
    vectors = MultiVectors(
        vectors.values[read].astype(np.float32), starts_of(lengths), vectors.pieces[read]
    )
    edges = [*range(0, len(query_of), PAIRS), len(query_of)]

    def block(begin: int, end: int) -> np.ndarray:
        return maxsim.score(queries, vectors, query_of[begin:end], passage_of[begin:end])

    return np.concatenate([np.empty(0, np.float32), *pool.map(block, edges[:-1], edges[1:])])
