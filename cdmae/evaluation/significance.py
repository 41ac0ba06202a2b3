"""Is the difference between two systems more than luck? Paired t-tests over the queries that both were measured on.

Over many queries the t-test agrees with the randomisation test (Smucker, Allan, Carterette 2007).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from cdmae.errors import InputError

if TYPE_CHECKING:
    import pandas as pd


class Difference(NamedTuple):
    """System a minus system b over the same queries: both means, theirs, its two-sided p and its 95 % interval."""

    a: float
    b: float
    difference: float
    p: float
    low: float
    high: float
    queries: int


def paired(a: np.ndarray | pd.Series, b: np.ndarray | pd.Series) -> Difference:
    """Compare the values of two systems, both [Q], query by query."""
    from scipy.stats import ttest_rel  # takes a second, and whoever names a table imports this module

    a, b = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    if a.shape != b.shape or a.ndim != 1 or not len(a):
        raise InputError(f"values of {a.shape} and {b.shape} queries cannot be paired; allowed: one each, at least one")
    differences = a - b
    mean, queries = float(differences.mean()), len(differences)
    if np.ptp(differences) > 1e-12:
        test = ttest_rel(a, b)
        p, (low, high) = float(test.pvalue), map(float, test.confidence_interval(0.95))
    else:  # no spread to estimate the error from: that of a sign test
        p, low, high = (2.0 ** (1 - queries) if abs(mean) > 1e-12 else 1.0), mean, mean
    return Difference(float(a.mean()), float(b.mean()), mean, p, low, high, queries)


def holm(p_values: Sequence[float]) -> list[float]:
    """Correct p-values for being several (Holm 1979), in the order given.

    The i-th smallest of n is multiplied by n - i + 1, made at least as large as the one before, and at most 1.
    """
    order = np.argsort(p_values, kind="stable")
    corrected = np.empty(len(order))
    corrected[order] = np.maximum.accumulate(np.take(p_values, order) * np.arange(len(order), 0, -1))
    return np.minimum(corrected, 1.0).tolist()
