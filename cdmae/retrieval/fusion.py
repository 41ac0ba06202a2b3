"""Fusion of several systems by weighted sums of reciprocal ranks or of scores.

Reciprocal ranks: Cormack, Clarke and Büttcher (2009). Scores: the convex combination of Bruch, Gai
and Ingber (2023). It scales the scores of each list linearly, from 1 for the first passage to 0 for
the last. A passage outside the list gets slightly less than 0, so a system with all of the weight
keeps its order.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from cdmae.errors import InputError
from cdmae.retrieval.ranking import ranked
from cdmae.runs import Run

if TYPE_CHECKING:
    from cdmae.retrieval.asking import Question

Method = Literal["reciprocal_rank", "convex"]
BEYOND = {"reciprocal_rank": 0.0, "convex": -1e-6}  # the value of a passage that is not in a list


class Fusion:
    """The unweighted values that several systems give to each passage that any of them ranks.

    queries, passages: the U pairs of a query and such a passage, by query; values: the values that
    the S systems assign to them, float64 [S, U].
    """

    def __init__(self, runs: Sequence[Run], method: Method, k: float) -> None:
        """Compute the unweighted values; k: the constant of reciprocal ranks, 1 / (k + rank)."""
        if not runs or len({len(run) for run in runs}) > 1:
            raise InputError(
                f"runs of {[len(run) for run in runs]} queries cannot be fused; expected runs of "
                "the same queries"
            )
        self.count = len(runs[0])
        self.systems = len(runs)
        unions = [np.empty(0, np.int32)]
        found = [np.empty((self.systems, 0))]
        for query in range(self.count):
            lists = [run.ranked(query) for run in runs]
            union = np.unique(np.concatenate([passages for passages, _ in lists]))
            values = np.full((len(runs), len(union)), BEYOND[method])
            for system, (passages, scores) in enumerate(lists):
                if method == "reciprocal_rank":
                    own = 1 / (k + np.arange(1, len(passages) + 1))
                else:
                    own = _scaled(scores)
                values[system, np.searchsorted(union, passages)] = own
            unions.append(union)
            found.append(values)
        self.queries = np.repeat(np.arange(self.count), [len(union) for union in unions[1:]])
        self.passages = np.concatenate(unions)
        self.values = np.concatenate(found, axis=1)

    def run(self, weights: Sequence[float], depth: int) -> Run:
        """Rank the best `depth` passages per query by the weighted sum, ties by passage row."""
        # without BLAS, because its rounding depends on the processor
        summed = sum(weight * own for weight, own in zip(weights, self.values, strict=True))
        summed = np.asarray(summed, np.float32)
        return ranked(self.queries, self.passages, summed, self.count, depth)


def _scaled(scores: np.ndarray) -> np.ndarray:
    """Scale scores linearly to the range from 0 to 1; if all are equal, they become 1."""
    low = scores.min(initial=np.inf)
    high = scores.max(initial=-np.inf)
    if high > low:
        return (scores - low) / (high - low)
    return np.ones(len(scores))


def answer(system: dict[str, Any], question: Question) -> Run:
    """Fuse the systems' answers to a user's query; `system` holds settings and `weights`."""
    fusion = Fusion(question.parts, system["method"], system["k"])
    return fusion.run(system["weights"], question.depth)
