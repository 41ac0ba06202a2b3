"""Significance: interval and p of one variance against formulas by hand, sign flips and simulations;
and Holm's own arithmetic.
"""

import warnings
from itertools import product

import numpy as np
import pytest
from scipy.stats import t, ttest_rel

from cdmae.errors import InputError
from cdmae.evaluation.significance import corrected, holm, paired, pooled


def test_p_is_close_to_the_share_of_sign_flips_as_far_from_zero():
    """What a randomisation test counts: every way to exchange the two systems, query by query."""
    differences = np.random.default_rng(8).normal(0.7, 1, 14)
    means = np.array(list(product([1, -1], repeat=14))) @ differences
    share = np.mean(np.abs(means) >= abs(differences.sum()) - 1e-12)
    assert 0.01 < share < 0.2
    assert paired(differences, np.zeros(14)).p == pytest.approx(share, abs=0.01)


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
    assert (found.low, found.high) == pytest.approx((mean - half, mean + half))
    assert (found.queries, found.seeds) == (41, seeds)
    assert found.a - found.b == pytest.approx(found.difference)


def test_a_set_is_not_weighted_by_its_queries_and_equal_weights_are_the_default():
    small = (np.array([0.5, 0.9]), np.array([0.1, 0.3]))
    large = (np.full(50, 0.2), np.linspace(0, 0.4, 50))
    assert pooled([small, large]).difference == pytest.approx((0.5 + 0.0) / 2)
    assert pooled([small, large], [0.9, 0.1]).difference == pytest.approx(0.45)


def test_a_true_zero_is_rejected_at_the_level_though_each_seed_shifts_all_sets():
    """Simulated: three seeds on four sets of queries, and no difference.

    A training shifts all sets by one amount and every set by another; queries have noise that all
    trainings share, and noise in each training. A test over the queries alone rejects too often.
    """
    random = np.random.default_rng(3)
    seeds, sizes = 3, (150, 140, 170, 120)
    runs = 1000
    rejected = {"queries": 0, "both": 0}
    for _ in range(runs):
        common = random.normal(0, 0.06, seeds)
        sets = []
        for size in sizes:
            shifts = common + random.normal(0, 0.01, seeds)
            shared = random.normal(0, 0.25, (size, 1))
            sets.append(shifts + shared + random.normal(0, 0.15, (size, seeds)))
        rejected["both"] += pooled([(values, np.zeros_like(values)) for values in sets]).significant
        means = [(values.mean(axis=1), np.zeros(len(values))) for values in sets]
        rejected["queries"] += pooled(means).significant
    assert rejected["queries"] > 0.3 * runs
    assert 0.03 * runs < rejected["both"] < 0.085 * runs


@pytest.mark.parametrize("several", [1, 5])
def test_every_interval_excludes_zero_exactly_where_the_difference_is_significant(several):
    random = np.random.default_rng(several)
    verdicts = set()
    for _ in range(60):
        gaps = []
        for _ in range(several):
            values = random.normal(random.choice([0, 0.1, -0.1, 0.3]), 0.4, (40, 3))
            gaps.append(paired(values + random.normal(0, 0.03, 3), np.zeros((40, 3))))
        tested = corrected(gaps)
        assert [gap.p for gap in tested] == pytest.approx(holm([gap.p for gap in gaps]))
        for gap, alone in zip(tested, gaps, strict=True):
            verdicts.add(gap.verdict)
            excludes = gap.low > 0 or gap.high < 0
            assert excludes == gap.significant == (gap.p < 0.05) == (gap.verdict != "open")
            assert gap.low <= alone.low < alone.high <= gap.high
            assert gap.verdict != "better" or gap.difference > 0
    assert verdicts == {"better", "worse", "open"}


@pytest.mark.parametrize(
    ("difference", "queries", "p"), [(0, 50, 1), (0.3, 6, 1 / 32), (0.3, 3, 1 / 4)]
)
def test_equal_differences_have_no_spread_and_the_p_of_a_sign_test(difference, queries, p):
    b = np.random.default_rng(2).random(queries)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        compared = paired(b + difference, b)
        assert compared.p == p
        assert (compared.low == compared.low) == (p in (1, 1 / 32)), "too few queries for any"
    if compared.low == compared.low:
        assert [compared.low, compared.high] == pytest.approx([difference] * 2)


@pytest.mark.parametrize("difference", [0, 0.3])
def test_one_query_shows_nothing_about_others(difference):
    one = (np.array([0.5 + difference]), np.array([0.5]))
    assert paired(*one).p == 1 and np.isnan(paired(*one).low)
    several = (np.array([0.5, 0.7, 0.9]), np.array([0.4, 0.5, 0.6]))
    assert np.isfinite(paired(*several).low)
    both = pooled([one, several])
    assert both.p == 1 and np.isnan(both.low) and both.queries == 4


def test_it_is_scipys_test_for_a_single_training():
    random = np.random.default_rng(1)
    a, b = random.random(30), random.random(30)
    expected = ttest_rel(a, b)
    found = paired(a, b)
    assert found.p == pytest.approx(expected.pvalue)
    assert (found.low, found.high) == pytest.approx(expected.confidence_interval(0.95))


def test_holm_by_hand():
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.6, 0.7]) == [1.0, 1.0]
    assert holm([]) == [] == corrected([])


@pytest.mark.parametrize(("first", "second"), [(3, 4), (0, 0)])
def test_values_that_cannot_be_paired_are_refused(first, second):
    with pytest.raises(InputError, match="cannot be paired"):
        paired(np.ones(first), np.ones(second))
