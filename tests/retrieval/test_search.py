"""Exact search of dense vectors: against argsort over the whole product, with ties, in blocks, and
with any rounding errors.
"""

import numpy as np
import pytest
import torch

from cdmae.errors import InputError
from cdmae.retrieval import products
from cdmae.retrieval.kinds import dense
from cdmae.retrieval.search import search
from cdmae.retrieval.shards import Shard


def check(run, queries, passages, depth):
    """Compare a run with the definition: all scores, a stable sort."""
    scores = queries @ passages.T
    rows = np.argsort(-scores, axis=1, kind="stable")[:, :depth]
    assert len(run) == len(queries)
    np.testing.assert_array_equal(run.passages.reshape(rows.shape), rows)
    scores = np.take_along_axis(scores, rows, 1)
    np.testing.assert_allclose(run.scores.reshape(rows.shape), scores, rtol=1e-5, atol=1e-6)


def same(run, other):
    for name in ("passages", "scores", "starts"):
        np.testing.assert_array_equal(getattr(run, name), getattr(other, name))


def whole_numbers(rng, *shape):
    """Vectors with many equal products, which float32 holds exactly in any order of summation."""
    return rng.integers(-2, 3, shape).astype(np.float32)


@pytest.fixture(params=["as on this CPU", "as on another device"], autouse=True)
def rounding(request, monkeypatch):
    """Small blocks; on another device, every quick score is off by nearly the slack."""
    monkeypatch.setattr(dense, "QUERIES", 7)
    monkeypatch.setattr(dense, "PASSAGES", 50)
    if request.param == "as on this CPU":
        return
    add = products.add_candidates
    generator = np.random.default_rng(1)

    def disturbed(best, begin, first, quick, slack, exact):
        errors = generator.choice([-0.7, 0.7], quick.shape) * slack[:, None]
        add(best, begin, first, (quick + torch.from_numpy(errors)).float(), slack, exact)

    monkeypatch.setattr(products, "add_candidates", disturbed)


@pytest.mark.parametrize("depth", [1, 3, 49, 50, 51, 300, 1000])
def test_search_is_argsort_and_ties_come_by_row(depth):
    rng = np.random.default_rng(depth)
    queries, passages = (rng.standard_normal((count, 16), np.float32) for count in (20, 300))
    check(search(queries, [passages], depth), queries, passages, depth)
    queries, passages = whole_numbers(rng, 15, 3), whole_numbers(rng, 333, 3)
    check(search(queries, [passages], depth), queries, passages, depth)


def test_shards_do_not_matter_and_a_shard_is_made_once():
    rng = np.random.default_rng(3)
    queries, passages, calls = whole_numbers(rng, 40, 4), whole_numbers(rng, 400, 4), []
    whole = search(queries, [passages], 30)

    def made(first, last):
        return Shard(last - first, lambda: calls.append(first) or passages[first:last])

    edges = [0, 1, 1, 120, 400]
    cut = [made(*pair) for pair in zip(edges, edges[1:], strict=False)]
    same(search(queries, cut, 30), whole)
    assert calls == [0, 1, 1, 120]


@pytest.mark.parametrize(
    ("queries", "passages", "expected"),
    [
        ([1.0, -1.0], [-0.0, 0.0, -0.0, 1.0, -1.0], [3, 0, 1, 2, 4, 4, 0, 1, 2, 3]),
        ([1.0], np.zeros(120), range(70)),
        ([1.0], -np.arange(1, 130), range(129)),
    ],
    ids=["zeros of both signs", "all equal", "negative ones"],
)
def test_scores_that_tie_or_are_negative_keep_their_order(queries, passages, expected):
    queries, passages = (np.array(numbers, np.float32)[:, None] for numbers in (queries, passages))
    run = search(queries, [passages], len(expected) // len(queries))
    assert run.passages.tolist() == list(expected)


def test_nothing_to_search_and_what_does_not_fit():
    none, ones = np.empty((0, 4), np.float32), np.ones((3, 4), np.float32)
    assert len(search(none, [ones], 2)) == 0
    run = search(ones, [none], 5)
    assert len(run) == 3 and not len(run.passages)
    broken = ones.copy()
    broken[1, 2] = np.nan
    for queries, shards, depth, words in (
        (broken, [ones], 2, "query vectors are not finite"),
        (ones, [ones, broken], 2, "from row 3 on are not finite"),
        (ones, [Shard(2**30, None)] * 2, 2, "more than 2,147,483,647 passages"),
    ):
        with pytest.raises(InputError, match=words):
            search(queries, shards, depth)


@pytest.mark.parametrize("spread", [1, 1e-2, 1e-4, 0])
def test_scores_and_order_depend_on_nothing_but_the_vectors(monkeypatch, spread):
    """Vectors of an odd length; the closer they are, the more scores differ in the last bits only."""
    rng = np.random.default_rng(4)
    vectors = (1 + spread * rng.standard_normal((500, 37))).astype(np.float32)
    queries, passages = vectors[:12], vectors[12:]
    every = np.stack([products.pairwise(queries, passages, q, np.arange(488)) for q in range(12)])
    rows = np.argsort(-every, axis=1, kind="stable")[:, :30]
    for size in (1000, 9, 41, 300):
        monkeypatch.setattr(dense, "PASSAGES", size)
        run = search(queries, [passages[:101], passages[101:]], 30)
        np.testing.assert_array_equal(run.passages.reshape(12, 30), rows)
        np.testing.assert_array_equal(
            run.scores.reshape(12, 30), np.take_along_axis(every, rows, 1)
        )
