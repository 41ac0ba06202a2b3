"""Significance of the difference between two systems: paired t-tests over queries.

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
    """System a minus system b over the same queries."""

    a: float  # mean
    b: float  # mean
    difference: float
    p: float  # two-sided
    low: float  # of the 95 % interval
    high: float
    queries: int


def paired(a: np.ndarray | pd.Series, b: np.ndarray | pd.Series) -> Difference:
    """Compare the values of two systems, both [Q], query by query."""
    from scipy.stats import ttest_rel  # takes a second to import; few callers of this module test

    a = np.asarray(a, dtype=np.float64)
    b = np.asarray(b, dtype=np.float64)
    if a.shape != b.shape or a.ndim != 1 or not len(a):
        raise InputError(
            f"values of {a.shape} and {b.shape} queries cannot be paired; "
            "allowed: the same number of values, at least one"
        )
    differences = a - b
    mean = float(differences.mean())
    queries = len(differences)
    if np.ptp(differences) > 1e-12:
        test = ttest_rel(a, b)
        p = float(test.pvalue)
        low, high = map(float, test.confidence_interval(0.95))
    else:  # without any spread, the p of a sign test
        p = 2.0 ** (1 - queries) if abs(mean) > 1e-12 else 1.0
        low = mean
        high = mean
    return Difference(float(a.mean()), float(b.mean()), mean, p, low, high, queries)


def holm(p_values: Sequence[float]) -> list[float]:
    """Correct p-values for multiple tests (Holm 1979), in the order given.

    The i-th smallest of n is multiplied by n - i + 1. Corrected values never decrease with i, and
    never exceed 1.
    """
    order = np.argsort(p_values, kind="stable")
    multiplied = np.take(p_values, order) * np.arange(len(order), 0, -1)
    corrected = np.empty(len(order))
    corrected[order] = np.maximum.accumulate(multiplied)
    return np.minimum(corrected, 1.0).tolist()
