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
CHUNK = 1 << 22  # flips or drawn queries held at a time
COUNTED = 12  # drawing how often one value comes costs as much as drawing so many queries


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
        eights = rng.integers(0, 256, (rows, -(-len(moved) // 8)), dtype=np.uint8)  # a flip is a bit
        sums = moved.sum() - 2 * (np.unpackbits(eights, axis=1, count=len(moved)) @ moved)
        reached += int((np.abs(sums) >= enough).sum())
    return (1 + reached) / (1 + draws)


def bootstrap(difference: np.ndarray, seed: int, *, draws: int = DRAWS, level: float = 0.95) -> tuple[float, float]:
    """The percentile interval of the mean of `difference` [Q] over queries drawn with replacement.

    A draw is worth how often each distinct value comes. Differences of RR@10 have some 70 values, of recall three, so
    their multinomial counts are drawn (the same distribution, in half the time or less); of many values, queries are.
    """
    rng = np.random.default_rng([seed, 2])
    values, times = np.unique(difference, return_counts=True)
    queries = len(difference)
    if COUNTED * len(values) < queries:
        means = rng.multinomial(queries, times / queries, size=draws) @ (values / queries)
    else:
        drawn = (rng.integers(0, queries, (rows, queries), dtype=np.int32) for rows in _chunks(draws, queries))
        means = np.concatenate([difference[rows].mean(1) for rows in drawn])
    low, high = np.quantile(means, [(1 - level) / 2, (1 + level) / 2])
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
