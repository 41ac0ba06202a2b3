"""The best passages of queries: by score, and equal scores by row, in any blocks."""

import numpy as np
import pytest

from cdmae.retrieval.ranking import Best, best, ranked


def drawn(count):
    """Rows in any order with many equal scores."""
    generator = np.random.default_rng(count)
    scores = generator.integers(-3, 4, count).astype(np.float32)
    return generator.permutation(count), scores


def expected(rows, scores, depth):
    return sorted(rows.tolist(), key=lambda row: (-scores[rows.tolist().index(row)], row))[:depth]


@pytest.mark.parametrize("depth", [1, 7, 40, 50])
def test_the_best_come_by_score_and_row(depth):
    rows, scores = drawn(40)
    assert rows[best(scores, rows, depth)].tolist() == expected(rows, scores, depth)
    run = ranked(np.repeat([2, 0], 40), np.tile(rows, 2), np.tile(scores, 2), 3, depth)
    lists = [run.ranked(query)[0].tolist() for query in range(3)]
    assert lists == [expected(rows, scores, depth), [], expected(rows, scores, depth)]
    assert ranked(np.zeros(40, int), rows, scores * 0, 1, 9, ties=-rows).passages[0] == 39


@pytest.mark.parametrize("depth", [1, 7, 100, 300])
@pytest.mark.parametrize("size", [1, 13, 200])
def test_blocks_of_passages_do_not_matter(depth, size):
    _, scores = drawn(200)
    found = Best(2, depth)
    for first in range(0, 200, size):
        rows = np.arange(first, min(200, first + size))[::-1]  # in any order within a block
        found.add(1, rows, scores[rows])
    run = found.run()
    assert run.ranked(1)[0].tolist() == expected(np.arange(200), scores, depth)
    assert run.scores.tolist() == scores[run.passages].tolist()
    assert len(run) == 2 and not len(run.ranked(0)[0])
