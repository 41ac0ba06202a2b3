"""The best passages of each query by score; equal scores are ordered by the passage's row."""

from __future__ import annotations

import numpy as np

from cdmae.models.ragged import indices, starts_of
from cdmae.runs import Run


def ranked(
    queries: np.ndarray,
    passages: np.ndarray,
    scores: np.ndarray,
    count: int,
    depth: int,
    ties: np.ndarray | None = None,
) -> Run:
    """Rank scored pairs of a query and a passage, [n] each, as a run of `count` queries.

    ties: the order of a query's passages with equal scores; None: by row.
    """
    order = np.lexsort((passages if ties is None else ties, -scores, queries))
    lengths = np.bincount(queries, minlength=count)
    kept = np.minimum(lengths, depth)
    order = order[indices(starts_of(lengths)[:-1], kept)]
    rows = passages[order].astype(np.int32)
    return Run(rows, scores[order].astype(np.float32), starts_of(kept))


class Best:
    """The best `depth` passages of each of Q queries, among the blocks of passages added so far."""

    def __init__(self, queries: int, depth: int) -> None:
        """Begin without passages."""
        self.depth = depth
        # the score of each query's last passage, if there are `depth` of them
        self.least = np.full(queries, -np.inf, np.float32)
        self._rows = [np.empty(0, np.int32)] * queries
        self._scores = [np.empty(0, np.float32)] * queries

    def add(self, query: int, rows: np.ndarray, scores: np.ndarray) -> None:
        """Add a query's scores of a block; all rows are above those of the blocks before."""
        enters = scores > self.least[query]
        rows = np.concatenate([self._rows[query], rows[enters]])
        scores = np.concatenate([self._scores[query], scores[enters]])
        if len(scores) >= self.depth:
            kept = _top(scores, rows, self.depth)
            rows = rows[kept]
            scores = scores[kept]
            self.least[query] = scores.min()
        self._rows[query] = rows
        self._scores[query] = scores

    def run(self) -> Run:
        """Return the run of all queries."""
        for query, (rows, scores) in enumerate(zip(self._rows, self._scores, strict=True)):
            order = np.lexsort((rows, -scores))
            self._rows[query] = rows[order]
            self._scores[query] = scores[order]
        return Run.of(self._rows, self._scores)


def _top(scores: np.ndarray, rows: np.ndarray, depth: int) -> np.ndarray:
    """Return the positions of the `depth` best scores in any order; of equal ones, lower rows."""
    if len(scores) <= depth:
        return np.arange(len(scores))
    least = np.partition(scores, -depth)[-depth]
    above = np.flatnonzero(scores > least)
    ties = np.flatnonzero(scores == least)
    ties = ties[np.argsort(rows[ties])]
    return np.concatenate([above, ties[: depth - len(above)]])
