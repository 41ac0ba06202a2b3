"""Several systems as one: reciprocal rank fusion (Cormack, Clarke, Büttcher 2009)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cdmae.errors import InputError
from cdmae.runs import Run


def reciprocal_rank(runs: Sequence[Run], k: float, depth: int) -> Run:
    """Rank the best `depth` passages per query by the sum over `runs` of 1 / (k + rank), rank from 1, ties by row."""
    if not runs or len({len(run) for run in runs}) > 1:
        raise InputError(f"runs of {[len(run) for run in runs]} queries cannot be fused; allowed: of the same queries")
    passages, scores = [], []
    for query in range(len(runs[0])):
        rows = [run.ranked(query)[0] for run in runs]
        union, place = np.unique(np.concatenate(rows), return_inverse=True)
        shares = np.concatenate([1 / (k + np.arange(1, len(ranked) + 1)) for ranked in rows])
        summed = np.bincount(place, shares, len(union)).astype(np.float32)
        order = np.argsort(-summed, kind="stable")[:depth]  # rows ascend: stable is ties by row
        passages.append(union[order])
        scores.append(summed[order])
    return Run.of(passages, scores)
