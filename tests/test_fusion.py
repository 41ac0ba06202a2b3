"""Reciprocal rank fusion against sums written out."""

import numpy as np
import pytest

from cdmae.errors import InputError
from cdmae.retrieval.fusion import reciprocal_rank
from cdmae.runs import Run


def run_of(*ranked):
    return Run.of(
        [np.array(each, np.int32) for each in ranked],
        [np.arange(len(each), 0, -1, dtype=np.float32) for each in ranked],
    )


def test_reciprocal_rank_by_hand():
    fused = reciprocal_rank([run_of([7, 3, 5]), run_of([3, 9])], k=60, depth=10)
    passages, scores = fused.ranked(0)
    assert passages.tolist() == [3, 7, 9, 5]
    np.testing.assert_allclose(scores, [1 / 62 + 1 / 61, 1 / 61, 1 / 62, 1 / 63], rtol=1e-6)


def test_ties_come_by_row_and_depth_cuts():
    fused = reciprocal_rank([run_of([8, 2]), run_of([2, 8]), run_of([5])], k=0, depth=2)
    assert fused.ranked(0)[0].tolist() == [2, 8]
    assert fused.ranked(0)[1].tolist() == [1.5, 1.5]


def test_one_run_keeps_its_order_and_empty_lists_stay_empty():
    fused = reciprocal_rank([run_of([4, 1, 2], [])], k=60, depth=3)
    assert fused.ranked(0)[0].tolist() == [4, 1, 2]
    assert len(fused) == 2 and not len(fused.ranked(1)[0])


def test_runs_of_other_queries_are_refused():
    with pytest.raises(InputError, match=r"runs of \[1, 2\] queries cannot be fused"):
        reciprocal_rank([run_of([1]), run_of([1], [2])], k=60, depth=5)
