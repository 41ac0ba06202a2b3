"""Exact search of dense vectors: against argsort over the whole product, with ties, in blocks, on a
CPU and as on a GPU.
"""

import faiss
import numpy as np
import pytest

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


def rounded_otherwise(_, queries, passages, count, *, metric, device):
    """What faiss.knn_gpu may find: every score off by nearly the slack, up or down, and any
    passages among equals.
    """
    rng = np.random.default_rng(count)
    scores = queries.astype(np.float64) @ passages.T.astype(np.float64)
    norms = (np.linalg.norm(each, axis=1) for each in (queries, passages))
    allowed = queries.shape[1] * 2.0**-24 * np.outer(*norms)
    scores += rng.choice([-1.9, 1.9], scores.shape) * allowed
    columns = np.argsort(-scores, axis=1)[:, :count]
    return np.take_along_axis(scores, columns, 1).astype(np.float32), columns


@pytest.fixture(params=["cpu", "cuda:1"])
def device(request, monkeypatch):
    """Small blocks; where no GPU is, one is played."""
    monkeypatch.setattr(dense, "QUERIES", 7)
    monkeypatch.setattr(dense, "PASSAGES", 50)
    monkeypatch.setattr(faiss, "get_num_gpus", lambda: 2)
    monkeypatch.setattr(faiss, "StandardGpuResources", object, raising=False)
    monkeypatch.setattr(faiss, "knn_gpu", rounded_otherwise)
    return request.param


@pytest.mark.parametrize("depth", [1, 3, 49, 50, 51, 300, 1000])
def test_search_is_argsort_and_ties_come_by_row(device, depth):
    rng = np.random.default_rng(depth)
    queries, passages = (rng.standard_normal((count, 16), np.float32) for count in (20, 300))
    check(search(queries, [passages], depth, device=device), queries, passages, depth)
    queries, passages = whole_numbers(rng, 15, 3), whole_numbers(rng, 333, 3)
    check(search(queries, [passages], depth, device=device), queries, passages, depth)


def test_shards_and_threads_do_not_matter_and_a_shard_is_made_once(device):
    rng = np.random.default_rng(3)
    queries, passages, calls = whole_numbers(rng, 40, 4), whole_numbers(rng, 400, 4), []
    whole = search(queries, [passages], 30, device=device)

    def made(first, last):
        return Shard(last - first, lambda: calls.append(first) or passages[first:last])

    edges = [0, 1, 1, 120, 400]
    cut = [made(*pair) for pair in zip(edges, edges[1:], strict=False)]
    for threads in (1, 3):
        same(search(queries, cut, 30, threads=threads, device=device), whole)
    assert calls == [0, 1, 1, 120] * 2


@pytest.mark.parametrize(
    ("queries", "passages", "expected"),
    [
        ([1.0, -1.0], [-0.0, 0.0, -0.0, 1.0, -1.0], [3, 0, 1, 2, 4, 4, 0, 1, 2, 3]),
        ([1.0], np.zeros(120), range(70)),
        ([1.0], -np.arange(1, 130), range(129)),
    ],
    ids=["zeros of both signs", "all equal", "negative ones"],
)
def test_scores_that_tie_or_are_negative_keep_their_order(device, queries, passages, expected):
    queries, passages = (np.array(numbers, np.float32)[:, None] for numbers in (queries, passages))
    run = search(queries, [passages], len(expected) // len(queries), device=device)
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
    ):
        with pytest.raises(InputError, match=words):
            search(queries, shards, depth)


@pytest.mark.parametrize("spread", [1, 1e-2, 1e-4, 0])
def test_scores_and_order_depend_on_nothing_but_the_vectors(device, monkeypatch, spread):
    """Vectors of an odd length; the closer they are, the more scores differ in the last bits only."""
    rng = np.random.default_rng(4)
    vectors = (1 + spread * rng.standard_normal((500, 37))).astype(np.float32)
    queries, passages = vectors[:12], vectors[12:]
    monkeypatch.setattr(dense, "PASSAGES", 1000)
    whole = search(queries, [passages], 30)
    every = products.pairwise(queries, passages, np.tile(np.arange(488), (12, 1)))
    rows = np.argsort(-every, axis=1, kind="stable")[:, :30]
    np.testing.assert_array_equal(whole.passages.reshape(12, 30), rows)
    np.testing.assert_array_equal(whole.scores.reshape(12, 30), np.take_along_axis(every, rows, 1))
    for size, threads in ((9, 1), (41, 1), (300, 2)):
        monkeypatch.setattr(dense, "PASSAGES", size)
        shards = [passages[:101], passages[101:]]
        same(search(queries, shards, 30, threads=threads, device=device), whole)
