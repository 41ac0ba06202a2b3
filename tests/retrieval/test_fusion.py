"""Fusion against sums written out, and weights that judged queries choose."""

import numpy as np
import pandas as pd
import pytest
from made_up import run_of

from cdmae.errors import InputError
from cdmae.evaluation.tuning import best_weights, mixtures
from cdmae.retrieval.fusion import Fusion
from cdmae.runs import Run


def reciprocal_rank(runs, k, depth):
    return Fusion(runs, "reciprocal_rank", k).run([1] * len(runs), depth)


def test_reciprocal_rank_by_hand_with_ties_by_row_and_a_depth():
    fused = reciprocal_rank([run_of([7, 3, 5]), run_of([3, 9])], k=60, depth=10)
    passages, scores = fused.ranked(0)
    assert passages.tolist() == [3, 7, 9, 5]
    np.testing.assert_allclose(scores, [1 / 62 + 1 / 61, 1 / 61, 1 / 62, 1 / 63], rtol=1e-6)
    fused = reciprocal_rank([run_of([8, 2]), run_of([2, 8]), run_of([5])], k=0, depth=2)
    assert fused.ranked(0)[0].tolist() == [2, 8]
    assert fused.ranked(0)[1].tolist() == [1.5, 1.5]


def test_convex_combination_by_hand_where_equal_scores_count_as_the_best():
    runs = [run_of([7, 3, 5]), Run.of([np.array([3, 9])], [np.array([-1.0, -5.0], np.float32)])]
    passages, scores = Fusion(runs, "convex", 60).run([0.75, 0.25], 10).ranked(0)
    assert passages.tolist() == [7, 3, 5, 9]
    np.testing.assert_allclose(scores, [0.75, 0.75 * 0.5 + 0.25, 0, 0], rtol=1e-6, atol=1e-6)
    run = Run.of([np.array([2, 4])], [np.array([3.0, 3.0], np.float32)])
    assert Fusion([run, run_of([4, 1])], "convex", 60).run([1, 1], 3).ranked(0)[1] == pytest.approx(
        [2, 1, 0], abs=2e-6
    )


@pytest.mark.parametrize("method", ["reciprocal_rank", "convex"])
def test_one_run_keeps_its_order_and_empty_lists_stay_empty(method):
    fused = Fusion([run_of([4, 2], []), run_of([1, 2, 3], [])], method, 60).run([1, 0], 9)
    assert fused.ranked(0)[0].tolist() == [4, 2, 1, 3], "what only the other one ranks comes last"
    assert len(fused) == 2 and not len(fused.ranked(1)[0])


def test_runs_of_other_queries_are_refused():
    with pytest.raises(InputError, match=r"runs of \[1, 2\] queries cannot be fused"):
        reciprocal_rank([run_of([1]), run_of([1], [2])], k=60, depth=5)


@pytest.mark.parametrize(("systems", "count"), [(2, 21), (3, 66), (4, 56)])
def test_mixtures_sum_to_one_and_hold_each_system_alone(systems, count):
    tried = list(mixtures(systems))
    assert len(tried) == len(set(tried)) == count
    np.testing.assert_allclose(np.sum(tried, axis=1), 1)
    assert set(map(tuple, np.eye(systems).tolist())) <= set(tried)


def test_weights_are_those_that_rank_the_relevant_first():
    """Only the second system knows what is relevant; with equal weights the first one's favourite
    wins a tie.
    """
    runs = [run_of([1, 2, 3], [1, 2, 3]), run_of([3, 2, 1], [3, 2, 1])]
    qrels = pd.DataFrame({"query": [0, 1], "passage": [3, 3], "grade": [1, 1]})
    for method in ("reciprocal_rank", "convex"):
        fusion = Fusion(runs, method, 60)
        weights, value, _ = best_weights(fusion, qrels, ["a", "b"], "RR@1", 10)
        assert weights[1] > weights[0] > 0, "of equally good ones the most even"
        assert value == 1
        assert fusion.run(weights, 1).passages.tolist() == [3, 3]


def test_a_measure_without_cutoff_is_taken_at_the_depth_of_the_runs():
    """The relevant passage is at rank 12 of one run and at rank 15 of the other."""
    first, second = (np.setdiff1d(np.arange(20), [7]).tolist() for _ in range(2))
    first.insert(11, 7)
    second.insert(14, 7)
    qrels = pd.DataFrame({"query": [0], "passage": [7], "grade": [1]})
    fusion = Fusion([run_of(second), run_of(first)], "convex", 60)
    found = best_weights(fusion, qrels, ["a"], "RR", 20)
    assert found.weights[1] > found.weights[0] and found.value == pytest.approx(1 / 12)
    assert best_weights(fusion, qrels, ["a"], "RR@10", 20).value == 0


def test_held_out_values_come_from_weights_that_the_other_half_chose():
    """Queries 0 and 2 want the first system, 1 and 3 the second: each half is wrong for the other.

    Of weights that rank passage 3 first for one half, 0.7 and 0.3 are the most even. For the other
    half, its score is then 0.3, and those of the others 0.85 and 0.35: it is the last of three.
    """
    good, bad = [3, 1, 2], [1, 2, 3]
    runs = [run_of(good, bad, good, bad), run_of(bad, good, bad, good)]
    qrels = pd.DataFrame({"query": range(4), "passage": 3, "grade": 1})
    found = best_weights(Fusion(runs, "convex", 60), qrels, list("abcd"), "RR@10", 10)
    assert found.held_out.tolist() == pytest.approx(4 * [1 / 3])
    assert found.value > 1 / 3
