"""Significance: the t-test against its formula and the sign flips it stands for, and Holm's own
arithmetic.
"""

import warnings
from itertools import product

import numpy as np
import pytest
from scipy.stats import ttest_ind

from cdmae.errors import InputError
from cdmae.evaluation.significance import holm, paired, pooled, with_seeds


def test_the_t_test_by_hand():
    """Differences 1, 2, 3, 6: mean 3, standard error sqrt(14 / 3 / 4), t 2.777; Student's t with
    three degrees.
    """
    compared = paired(np.array([2.0, 2.0, 5.0, 7.0]), np.array([1.0, 0.0, 2.0, 1.0]))
    error = np.sqrt(14 / 3 / 4)
    assert compared[:3] == (4, 1, 3) and compared.queries == 4
    half = 3.182446 * error  # the .975 quantile, from a table
    assert (compared.low, compared.high) == pytest.approx((3 - half, 3 + half), rel=1e-6)
    t = 3 / error / np.sqrt(3)
    density_above = (
        0.5 - (t / (1 + t * t) + np.arctan(t)) / np.pi
    )  # of the distribution function for three degrees
    assert compared.p == pytest.approx(2 * density_above, rel=1e-9)


def test_p_is_close_to_the_share_of_sign_flips_as_far_from_zero():
    """What a randomisation test counts: every way to exchange the two systems, query by query."""
    differences = np.random.default_rng(8).normal(0.7, 1, 14)
    means = np.array(list(product([1, -1], repeat=14))) @ differences
    share = np.mean(np.abs(means) >= abs(differences.sum()) - 1e-12)
    assert 0.01 < share < 0.2
    assert paired(differences, np.zeros(14)).p == pytest.approx(share, abs=0.01)


@pytest.mark.parametrize(("difference", "queries", "p"), [(0, 50, 1), (0.3, 6, 1 / 32)])
def test_equal_differences_have_no_spread_and_the_p_of_a_sign_test(difference, queries, p):
    b = np.random.default_rng(2).random(queries)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        compared = paired(b + difference, b)
    assert compared.p == p
    assert [compared.low, compared.difference, compared.high] == pytest.approx([difference] * 3)


@pytest.mark.parametrize("difference", [0, 0.3])
def test_one_query_shows_nothing_about_others(difference):
    alone = paired(np.array([0.5 + difference]), np.array([0.5]))
    assert alone.p == 1 and not alone.has_interval
    several = paired(np.array([0.5, 0.7, 0.9]), np.array([0.4, 0.5, 0.6]))
    assert several.has_interval
    both = pooled([alone, several])
    assert both.p == 1 and not both.has_interval and both.queries == 4
    assert with_seeds(alone, 0.01).p_with_seeds == 1


def test_variances_over_queries_and_over_seeds_add_up():
    """Simulated: the queries' and the seeds' noise together reject a true 0 in 5 % of the runs."""
    random = np.random.default_rng(5)
    of_queries, of_seeds, queries = 0.4, 0.02, 400
    rejected = {"queries": 0, "both": 0}
    for _ in range(1000):
        seeds = random.normal(0, of_seeds * np.sqrt(2))
        values = random.normal(seeds, of_queries, queries)
        gap = with_seeds(paired(values, np.zeros(queries)), 1.96 * np.sqrt(2) * of_seeds)
        rejected["queries"] += gap.p < 0.05
        rejected["both"] += gap.p_with_seeds < 0.05
    assert rejected["queries"] > 200, "a test over the queries alone is fooled by seeds"
    assert 30 < rejected["both"] < 70


def test_without_noise_of_seeds_the_test_is_the_queries_alone():
    gap = paired(np.array([2.0, 2.0, 5.0, 7.0]), np.array([1.0, 0.0, 2.0, 1.0]))
    assert with_seeds(gap, 0.0).p_with_seeds == gap.p
    assert with_seeds(gap, 5.0).p_with_seeds > gap.p


def test_seeds_alone_are_students_test_of_two_groups_of_trainings():
    """Without noise of queries, the test is that of two independent samples, here three seeds."""
    a = np.array([0.121, 0.136, 0.119])
    b = np.array([0.105, 0.098, 0.106])
    deviation = np.sqrt((a.var(ddof=1) + b.var(ddof=1)) / 2)
    gap = paired(np.full(60, a.mean()), np.full(60, b.mean()))
    tested = with_seeds(gap, 1.96 * np.sqrt(2 / 3) * deviation, freedom=4)
    assert tested.p_with_seeds == pytest.approx(ttest_ind(a, b).pvalue)


def test_a_variance_of_few_seeds_rejects_at_its_level():
    """Simulated: three systems with three seeds each on four sets of queries, and no difference.

    A training shifts all sets by one amount and every set by another; queries have noise that all
    trainings share, and noise in each training. The band of nine trainings, taken for known,
    rejects too often.
    """
    random = np.random.default_rng(3)
    systems, seeds, sizes = 3, 3, (150, 140, 170, 120)
    runs = 1000
    rejected = {"known": 0, "estimated": 0}
    for _ in range(runs):
        common = random.normal(0, 0.06, (systems, seeds))
        sets = []
        for size in sizes:
            shifts = common + random.normal(0, 0.01, (systems, seeds))
            shared = random.normal(0, 0.25, (systems, 1, size))
            sets.append(
                shifts[:, :, None] + shared + random.normal(0, 0.15, (systems, seeds, size))
            )
        gap = pooled([paired(values[0].mean(0), values[1].mean(0)) for values in sets])
        means = np.mean([values.mean(2) for values in sets], axis=0)
        deviation = np.sqrt(means.var(axis=1, ddof=1).mean())
        band = 1.96 * np.sqrt(2 / seeds) * deviation
        freedom = systems * (seeds - 1)
        rejected["known"] += with_seeds(gap, band).p_with_seeds < 0.05
        rejected["estimated"] += with_seeds(gap, band, freedom).p_with_seeds < 0.05
    assert rejected["known"] > 0.07 * runs
    assert 0.025 * runs < rejected["estimated"] < 0.06 * runs


def test_holm_by_hand():
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.6, 0.7]) == [1.0, 1.0]
    assert holm([]) == []


@pytest.mark.parametrize(("first", "second"), [(3, 4), (0, 0)])
def test_values_that_cannot_be_paired_are_refused(first, second):
    with pytest.raises(InputError, match="cannot be paired"):
        paired(np.ones(first), np.ones(second))
