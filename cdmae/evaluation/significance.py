"""Testing the difference of two systems: paired t-tests over queries, and the noise of seeds.

Over many queries, the t-test agrees with the randomisation test (Smucker, Allan, Carterette 2007).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from cdmae.errors import InputError

if TYPE_CHECKING:
    import pandas as pd


NORMAL = 1.96  # half-width of a 95 % interval, in standard errors


class Difference(NamedTuple):
    """The difference of system a and system b, a minus b, over the same queries.

    A single query allows no inference: its interval is nan, and its p is 1.
    """

    a: float  # mean
    b: float  # mean
    difference: float
    p: float  # two-sided, over the queries
    low: float  # lower end of the 95 % interval over the queries
    high: float
    queries: int
    p_with_seeds: float  # includes the noise of seeds after `with_seeds`; otherwise equal to p

    @property
    def half_width(self) -> float:
        """Return half the width of the interval."""
        return (self.high - self.low) / 2

    @property
    def has_interval(self) -> bool:
        """Return whether there is more than one query."""
        return not math.isnan(self.low)


def paired(a: np.ndarray | pd.Series, b: np.ndarray | pd.Series) -> Difference:
    """Compare the values of two systems, both [Q], query by query.

    If all queries differ by the same amount, p comes from a sign test.
    """
    from scipy.stats import ttest_rel  # the import takes a second, and few callers need it

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
    if queries == 1:
        p = 1.0
        low = high = math.nan
    elif np.ptp(differences) > 1e-12:
        test = ttest_rel(a, b)
        p = float(test.pvalue)
        low, high = map(float, test.confidence_interval(0.95))
    else:
        p = 2.0 ** (1 - queries) if abs(mean) > 1e-12 else 1.0
        low = high = mean
    return Difference(float(a.mean()), float(b.mean()), mean, p, low, high, queries, p)


def pooled(several: Sequence[Difference]) -> Difference:
    """Average differences over collections with equal weight.

    The queries of different collections are independent; the variances of the means therefore add
    up. p is computed from a normal distribution with the pooled interval.
    """
    if len(several) == 1:
        return several[0]
    count = len(several)
    mean = math.fsum(one.difference for one in several) / count
    half = math.hypot(*(one.half_width for one in several)) / count
    p = _p_of_normal(mean, half)
    return Difference(
        a=math.fsum(one.a for one in several) / count,
        b=math.fsum(one.b for one in several) / count,
        difference=mean,
        p=p,
        low=mean - half,
        high=mean + half,
        queries=sum(one.queries for one in several),
        p_with_seeds=p,
    )


def with_seeds(gap: Difference, band: float, freedom: float = math.inf) -> Difference:
    """Add the p-value that includes the noise of both queries and seeds.

    Queries and seeds are crossed random effects (Clark 1973, "The language-as-fixed-effect
    fallacy"), so their variances add up: Var(mean difference) = Var(over queries) / n + Var(over
    seeds). band: the half-width of the 95 % interval for seeds alone if their variance were known,
    which is 1.96 times the root of the second variance. freedom: degrees of freedom with which that
    variance was estimated; infinite for a known variance. If it is finite, the sum has the degrees
    of freedom of Satterthwaite (1946), and p comes from Student's t, as in studies of readers and
    cases (Obuchowski and Rockette 1995). The interaction of queries and seeds is in both variances,
    so the test is conservative. The result is never below the p-value over the queries alone.
    """
    if not band:
        return gap._replace(p_with_seeds=gap.p)
    both = math.hypot(gap.half_width, band)
    if math.isinf(freedom):
        p = _p_of_normal(gap.difference, both)
    else:
        p = _p_of_t(gap.difference, both, freedom * (both / band) ** 4)
    return gap._replace(p_with_seeds=max(gap.p, p))


def _p_of_t(mean: float, half: float, freedom: float) -> float:
    """Return the two-sided p-value of a mean; half: 1.96 times its estimated standard error."""
    from scipy.stats import t  # the import takes a second, and few callers need it

    if not half > 0:  # nan or 0
        return 1.0
    return float(2 * t.sf(abs(mean) / half * NORMAL, freedom))


def _p_of_normal(mean: float, half: float) -> float:
    """Return the two-sided p-value of a mean with a 95 % interval of `half` to either side."""
    if not half > 0:  # nan or 0
        return 1.0
    return math.erfc(abs(mean) / half * NORMAL / math.sqrt(2))


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
