"""Significance: interval and p of one variance, against formulas by hand."""

import numpy as np
import pytest
from scipy.stats import t

from cdmae.evaluation.significance import corrected, paired, pooled


def reference(sets, weights):
    """Mean, variance and degrees of freedom of several sets [Q, S], with plain loops."""
    parts = []  # (variance, degrees of freedom)
    mean = 0.0
    for values, weight in zip(sets, weights, strict=True):
        queries = len(values)
        own = [sum(row) / len(row) for row in values]
        middle = sum(own) / queries
        mean += weight * middle
        squares = sum((value - middle) ** 2 for value in own)
        parts.append((weight**2 * squares / (queries - 1) / queries, queries - 1))
    seeds = len(sets[0][0])
    if seeds > 1:
        of_seeds = []
        for seed in range(seeds):
            means = [sum(row[seed] for row in values) / len(values) for values in sets]
            of_seeds.append(sum(w * m for w, m in zip(weights, means, strict=True)))
        squares = sum((value - mean) ** 2 for value in of_seeds)
        parts.append((squares / (seeds - 1) / seeds, seeds - 1))
    variance = sum(own for own, _ in parts)
    return mean, variance, variance**2 / sum(own**2 / free for own, free in parts)


@pytest.mark.parametrize("seeds", [1, 2, 3])
def test_the_variances_over_queries_of_each_set_and_over_seeds_add_up(seeds):
    random = np.random.default_rng(3)
    weights = [0.5, 0.25, 0.25]
    a = [random.random((size, seeds)) for size in (20, 12, 9)]
    b = [random.random((size, seeds if at else 1)) for at, size in enumerate((20, 12, 9))]
    found = pooled(list(zip(a, b, strict=True)), weights)
    gaps = [(first - second).tolist() for first, second in zip(a, b, strict=True)]
    mean, variance, freedom = reference(gaps, weights)
    assert found.difference == pytest.approx(mean)
    assert found.error == pytest.approx(np.sqrt(variance))
    assert found.freedom == pytest.approx(freedom)
    assert found.p == pytest.approx(2 * t.sf(abs(mean) / np.sqrt(variance), freedom))
    half = t.ppf(0.975, freedom) * np.sqrt(variance)
    assert found.interval == pytest.approx((mean - half, mean + half))
    assert (found.queries, found.seeds) == (41, seeds)
    assert found.a - found.b == pytest.approx(found.difference)


@pytest.mark.parametrize("several", [1, 5])
def test_every_interval_excludes_zero_exactly_where_the_difference_is_significant(several):
    random = np.random.default_rng(several)
    verdicts = set()
    for _ in range(60):
        gaps = []
        for _ in range(several):
            values = random.normal(random.choice([0, 0.1, -0.1, 0.3]), 0.4, (40, 3))
            gaps.append(paired(values + random.normal(0, 0.03, 3), np.zeros((40, 3))))
        for gap, alone in zip(corrected(gaps), gaps, strict=True):
            verdicts.add(gap.verdict)
            low, high = gap.interval
            excludes = low > 0 or high < 0
            assert excludes == gap.significant == (gap.p < 0.05) == (gap.verdict != "open")
            assert low <= alone.interval[0] < alone.interval[1] <= high
            assert gap.verdict != "better" or gap.difference > 0
    assert verdicts == {"better", "worse", "open"}


def test_one_query_or_equal_differences_show_nothing_about_others():
    one = (np.array([0.8]), np.array([0.5]))
    several = (np.array([0.5, 0.7, 0.9]), np.array([0.4, 0.5, 0.6]))
    equal = np.random.default_rng(2).random(50)
    sets = ([one], [one, several], [(equal + 0.3, equal)], [(equal, equal)])
    for found in sets:
        gap = pooled(found, [1 / len(found)] * len(found))
        assert gap.p == 1 and np.isnan(gap.interval).all()


def test_holm_multiplies_the_smallest_p_most_and_never_lowers_a_larger_one():
    random = np.random.default_rng(5)
    noise = random.normal(0, 0.3, 40)
    gaps = [paired(noise + shift, np.zeros(40)) for shift in (0.1, 0.0, 0.02, 0.09, -0.1)]
    alone = [gap.p for gap in gaps]
    largest = 0.0
    for rank, at in enumerate(np.argsort(alone)):
        largest = max(largest, min(1.0, alone[at] * (5 - rank)))
        found = corrected(gaps)[at]
        assert (found.p, found.tests) == pytest.approx((largest, largest / alone[at]))
    assert corrected([]) == []
