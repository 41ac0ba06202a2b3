"""Significance: against an exhaustive permutation, known intervals, and Holm's own arithmetic."""

from itertools import product

import numpy as np
import pytest

from cdmae import significance
from cdmae.errors import InputError
from cdmae.significance import bootstrap, holm, paired, randomisation


def exhaustive(difference):
    """The definition: every way to exchange the two systems, query by query."""
    observed = abs(np.mean(difference))
    means = [abs(np.mean(np.array(signs) * difference)) for signs in product([1, -1], repeat=len(difference))]
    return np.mean(np.array(means) >= observed - 1e-12)


@pytest.mark.parametrize("seed", range(4))
def test_randomisation_is_exact_on_few_queries(seed):
    difference = np.random.default_rng(seed).normal(0.3, 1, 9).round(1)
    assert randomisation(difference, seed) == pytest.approx(exhaustive(difference))


def test_randomisation_draws_come_close_to_the_exhaustive_value(monkeypatch):
    difference = np.random.default_rng(8).normal(0.4, 1, 11)
    expected = exhaustive(difference)
    monkeypatch.setattr(significance, "EXHAUSTIVE", 0)
    found = randomisation(difference, 1, draws=20_000)
    assert found == pytest.approx(expected, abs=4 * np.sqrt(expected * (1 - expected) / 20_000))
    assert found == randomisation(difference, 1, draws=20_000) != randomisation(difference, 2, draws=20_000)


def test_ties_between_queries_do_not_count(monkeypatch):
    assert randomisation(np.zeros(50), 0) == 1.0
    assert randomisation(np.array([1.0] * 5 + [0.0] * 100), 0) == 2 / 2**5
    monkeypatch.setattr(significance, "EXHAUSTIVE", 0)
    assert randomisation(np.ones(40), 0, draws=999) == 1 / 1000  # never 0


def test_paired_says_what_a_report_needs():
    rng = np.random.default_rng(1)
    b = rng.random(200)
    a = b + rng.normal(0.05, 0.1, 200)
    found = paired(a, b, seed=3)
    assert found["difference"] == pytest.approx(np.mean(a - b)) and found["queries"] == 200
    assert found["low"] < found["difference"] < found["high"]
    assert found["p"] < 0.01
    back = paired(b, a, seed=3)
    assert back["difference"] == -found["difference"] and back["p"] == found["p"]


def test_bootstrap_interval_is_that_of_the_normal_for_many_queries():
    difference = np.random.default_rng(2).normal(0.2, 1, 3000)
    low, high = bootstrap(difference, 5, draws=4000)
    half = 1.96 * difference.std() / np.sqrt(3000)
    assert (low, high) == pytest.approx((difference.mean() - half, difference.mean() + half), abs=0.1 * half)
    assert bootstrap(np.ones(10), 5) == (1.0, 1.0)


def test_counting_values_and_drawing_queries_give_the_same_interval(monkeypatch):
    difference = np.random.default_rng(3).choice([-0.5, 0.0, 0.0, 0.0, 0.25, 1.0], 600)
    error = 0.02 * difference.std() / np.sqrt(600) * 5  # a percentile of 20,000 draws has a standard error of .02 sd
    counted = bootstrap(difference, 4, draws=20_000)
    monkeypatch.setattr(significance, "COUNTED", len(difference))
    drawn = bootstrap(difference, 4, draws=20_000)
    assert counted != drawn
    assert counted == pytest.approx(drawn, abs=error)


def test_chunks_do_not_change_the_number_of_draws(monkeypatch):
    monkeypatch.setattr(significance, "CHUNK", 70)
    assert list(significance._chunks(23, 10)) == [7, 7, 7, 2]
    assert sum(significance._chunks(10, 1000)) == 10


def test_holm_by_hand():
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.6, 0.7]) == [1.0, 1.0]
    assert holm([]) == []


def test_values_that_cannot_be_paired_are_refused():
    with pytest.raises(InputError, match="cannot be paired"):
        paired(np.ones(3), np.ones(4), 0)
    with pytest.raises(InputError, match="cannot be paired"):
        paired(np.ones(0), np.ones(0), 0)
