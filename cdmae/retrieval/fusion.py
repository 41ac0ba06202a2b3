"""Several systems as one: weighted sums of reciprocal ranks (Cormack, Clarke, Büttcher 2009) or of scores.

Scores of a query are scaled to 0 at the end of a system's list and 1 at its top: the convex combination of Bruch, Gai
and Ingber (2023). Beyond that end they count a trace less than 0, so that a system alone keeps its order.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from cdmae.errors import InputError
from cdmae.runs import Run

Method = Literal["reciprocal_rank", "convex"]
BEYOND = {"reciprocal_rank": 0.0, "convex": -1e-6}  # what a passage counts that is not in a list


class Fusion:
    """What each system says of each passage that one of them ranks, ready to be weighted.

    Per query: the passages, ascending, int32 [U], and the votes of the S systems for them, float64 [S, U].
    """

    def __init__(self, runs: Sequence[Run], method: Method, k: float) -> None:
        """Collect the votes; k: of reciprocal ranks, 1 / (k + rank)."""
        if not runs or len({len(run) for run in runs}) > 1:
            raise InputError(
                f"runs of {[len(run) for run in runs]} queries cannot be fused; allowed: of the same queries"
            )
        self.systems, self.votes = len(runs), []
        for query in range(len(runs[0])):
            ranked = [run.ranked(query) for run in runs]
            union = np.unique(np.concatenate([passages for passages, _ in ranked]))
            votes = np.full((len(runs), len(union)), BEYOND[method])
            for system, (passages, scores) in enumerate(ranked):
                if method == "reciprocal_rank":
                    values = 1 / (k + np.arange(1, len(passages) + 1))
                else:
                    low, high = scores.min(initial=np.inf), scores.max(initial=-np.inf)
                    values = (scores - low) / (high - low) if high > low else np.ones(len(scores))  # equal ones are 1
                votes[system, np.searchsorted(union, passages)] = values
            self.votes.append((union, votes))

    def run(self, weights: Sequence[float], depth: int) -> Run:
        """Rank the best `depth` passages per query by the weighted sum of the votes, ties by passage row."""
        passages, scores = [], []
        for union, votes in self.votes:
            summed = (np.asarray(weights) @ votes).astype(np.float32)
            order = np.argsort(-summed, kind="stable")[:depth]  # rows ascend: stable is ties by row
            passages.append(union[order])
            scores.append(summed[order])
        return Run.of(passages, scores)
