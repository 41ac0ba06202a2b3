"""Significance: the t-test against its formula and the sign flips it stands for, and Holm's own
arithmetic.
"""

import warnings
from itertools import product

import numpy as np
import pytest

from cdmae.errors import InputError
from cdmae.evaluation.significance import holm, paired


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


@pytest.mark.parametrize(
    ("difference", "queries", "p"), [(0, 50, 1), (0, 1, 1), (0.3, 1, 1), (0.3, 6, 1 / 32)]
)
def test_equal_differences_have_no_spread_and_the_p_of_a_sign_test(difference, queries, p):
    b = np.random.default_rng(2).random(queries)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        compared = paired(b + difference, b)
    assert compared.p == p
    assert [compared.low, compared.difference, compared.high] == pytest.approx([difference] * 3)


def test_holm_by_hand():
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.6, 0.7]) == [1.0, 1.0]
    assert holm([]) == []


@pytest.mark.parametrize(("first", "second"), [(3, 4), (0, 0)])
def test_values_that_cannot_be_paired_are_refused(first, second):
    with pytest.raises(InputError, match="cannot be paired"):
        paired(np.ones(first), np.ones(second))
