"""Is the difference between two systems more than luck? Paired tests over the queries both were measured on.

The randomisation test asks how often a random exchange of the two systems' values, query by query, gives a mean
difference as large as the one found (Smucker, Allan, Carterette 2007); the interval is a bootstrap over queries.

Q queries, B random draws.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from cdmae.errors import InputError

DRAWS = 10_000
EXHAUSTIVE = 13  # with up to so many queries that differ, all 2^13 exchanges are counted instead of drawn
CHUNK = 1 << 22  # random numbers held at a time


def paired(a: np.ndarray, b: np.ndarray, seed: int, *, draws: int = DRAWS, level: float = 0.95) -> dict[str, float]:
    """Compare the values of two systems, both [Q], query by query.

    Returns `difference` (mean of a - b), `p` (two-sided), `low` and `high` (the interval that holds the difference at
    `level`, percentiles of the bootstrap) and `queries`. Draws depend on `seed` alone.
    """
    a, b = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    if a.shape != b.shape or a.ndim != 1 or not len(a):
        raise InputError(f"values of {a.shape} and {b.shape} queries cannot be paired; allowed: one each, at least one")
    difference = a - b
    low, high = bootstrap(difference, seed, draws=draws, level=level)
    return {
        "difference": float(difference.mean()),
        "p": randomisation(difference, seed, draws=draws),
        "low": low,
        "high": high,
        "queries": len(difference),
    }


def randomisation(difference: np.ndarray, seed: int, *, draws: int = DRAWS) -> float:
    """The share of sign flips of `difference` [Q] whose mean is as far from 0 as its own: a two-sided p value.

    Exact where few queries differ; otherwise over random flips and the observed one, so that it is never 0.
    """
    moved = difference[difference != 0]
    observed = abs(moved.sum())
    enough = observed - 1e-9 * np.abs(moved).sum()  # sums of the same numbers in another order are equal
    if len(moved) <= EXHAUSTIVE:
        flips = np.arange(1 << len(moved))[:, None] >> np.arange(len(moved)) & 1
        return float(np.mean(np.abs((1 - 2 * flips) @ moved) >= enough))
    rng = np.random.default_rng([seed, 1])
    reached = 0
    for rows in _chunks(draws, len(moved)):
        flipped = rng.integers(0, 2, (rows, len(moved)), dtype=np.int8)
        sums = moved.sum() - 2 * (flipped @ moved)
        reached += int((np.abs(sums) >= enough).sum())
    return (1 + reached) / (1 + draws)


def bootstrap(difference: np.ndarray, seed: int, *, draws: int = DRAWS, level: float = 0.95) -> tuple[float, float]:
    """The percentile interval of the mean of `difference` [Q] over queries drawn with replacement."""
    rng = np.random.default_rng([seed, 2])
    means = [
        difference[rng.integers(0, len(difference), (rows, len(difference)), dtype=np.int32)].mean(1)
        for rows in _chunks(draws, len(difference))
    ]
    low, high = np.quantile(np.concatenate(means), [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def _chunks(draws: int, queries: int) -> Iterator[int]:
    step = max(1, CHUNK // queries)
    for start in range(0, draws, step):
        yield min(step, draws - start)


def holm(p_values: Sequence[float]) -> list[float]:
    """P values corrected for being several (Holm 1979), in the order given.

    The i-th smallest of n is multiplied by n - i + 1, made at least as large as the one before, and at most 1.
    """
    order = np.argsort(p_values, kind="stable")
    factors = np.arange(len(order), 0, -1)
    corrected = np.minimum(np.maximum.accumulate(np.asarray(p_values, dtype=float)[order] * factors), 1.0)
    found = np.empty(len(order))
    found[order] = corrected
    return found.tolist()
