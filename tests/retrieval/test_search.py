"""Exact search: against argsort over the whole product, with ties, in blocks, on a CPU and as on a
GPU.
"""

import faiss
import numpy as np
import pytest

from cdmae.errors import InputError
from cdmae.retrieval import products
from cdmae.retrieval import search as module
from cdmae.retrieval.search import search
from cdmae.retrieval.vectors import Shard


def reference(queries, passages, depth):
    """The definition: all scores, a stable sort."""
    scores = queries @ passages.T
    rows = np.argsort(-scores, axis=1, kind="stable")[:, :depth]
    return rows.astype(np.int32), np.take_along_axis(scores, rows, 1)


def check(run, queries, passages, depth):
    rows, scores = reference(queries, passages, depth)
    assert len(run) == len(queries)
    np.testing.assert_array_equal(run.passages.reshape(rows.shape), rows)
    np.testing.assert_allclose(run.scores.reshape(scores.shape), scores, rtol=1e-5, atol=1e-6)


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
    allowed = (
        queries.shape[1]
        * 2.0**-24
        * np.outer(*(np.linalg.norm(each, axis=1) for each in (queries, passages)))
    )
    scores += rng.choice([-1.9, 1.9], scores.shape) * allowed
    columns = np.argsort(-scores, axis=1)[:, :count]
    return np.take_along_axis(scores, columns, 1).astype(np.float32), columns


def test_rows_beyond_int32_are_refused_and_not_wrapped(monkeypatch):
    shards = [Shard((2**30, 2), None), Shard((2**30, 2), None)]
    with pytest.raises(
        InputError,
        match="more than 2,147,483,647 passages .at least 2,147,483,648., which cannot be",
    ):
        search(np.ones((1, 2), np.float32), shards, 3)


@pytest.fixture(params=["cpu", "cuda:1"])
def device(request, monkeypatch):
    """Small blocks; where no GPU is, one is played."""
    monkeypatch.setattr(module, "QUERIES", 7)
    monkeypatch.setattr(module, "PASSAGES", 50)
    monkeypatch.setattr(faiss, "get_num_gpus", lambda: 2)
    monkeypatch.setattr(faiss, "StandardGpuResources", object, raising=False)
    monkeypatch.setattr(faiss, "knn_gpu", rounded_otherwise)
    return request.param


@pytest.mark.parametrize("depth", [1, 10, 60, 300, 1000])
def test_search_is_argsort(device, depth):
    rng = np.random.default_rng(depth)
    queries, passages = (
        rng.standard_normal((20, 16), np.float32),
        rng.standard_normal((300, 16), np.float32),
    )
    check(search(queries, [passages], depth, device=device), queries, passages, depth)


@pytest.mark.parametrize("depth", [1, 3, 49, 50, 51, 200])
def test_ties_come_by_row_and_are_cut_by_row(device, depth):
    rng = np.random.default_rng(depth)
    queries, passages = whole_numbers(rng, 15, 3), whole_numbers(rng, 333, 3)
    run = search(queries, [passages], depth, device=device)
    check(run, queries, passages, depth)
    np.testing.assert_array_equal(run.scores, reference(queries, passages, depth)[1].ravel())


def test_shards_and_threads_do_not_matter(device):
    rng = np.random.default_rng(3)
    queries, passages = whole_numbers(rng, 40, 4), whole_numbers(rng, 400, 4)
    whole = search(queries, [passages], 30, device=device)
    cut = [passages[:1], passages[1:1], passages[1:120], passages[120:]]
    for threads in (1, 3):
        same(search(queries, cut, 30, threads=threads, device=device), whole)


def test_shards_that_are_made_when_they_are_read_are_read_once(device):
    """For several sets of queries at a time, each with the run that it would have alone."""
    rng = np.random.default_rng(4)
    passages, calls = whole_numbers(rng, 130, 4), []

    def made(first, last):
        return Shard((last - first, 4), lambda: calls.append(first) or passages[first:last])

    shards = [made(0, 110), made(110, 110), made(110, 130)]  # the first is longer than a block
    sets = [whole_numbers(rng, count, 4) for count in (5, 0, 9)]
    runs = search(np.concatenate(sets), shards, 30, device=device).split(map(len, sets))
    assert calls == [0, 110, 110]
    for queries, run in zip(sets, runs, strict=True):
        same(run, search(queries, [passages], 30, device=device))


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


def test_half_precision_shards_are_multiplied_in_single_precision(device):
    rng = np.random.default_rng(1)
    passages = rng.standard_normal((200, 8)).astype(np.float16)
    queries = rng.standard_normal((5, 8), np.float32)
    check(search(queries, [passages], 20, device=device), queries, passages.astype(np.float32), 20)


def test_nothing_to_search():
    none = np.empty((0, 4), np.float32)
    assert len(search(none, [np.ones((3, 4), np.float32)], 2)) == 0
    run = search(np.ones((2, 4), np.float32), [none], 5)
    assert len(run) == 2 and not len(run.passages)


def test_what_does_not_fit_is_refused():
    ones = np.ones((3, 4), np.float32)
    with pytest.raises(InputError, match="have 5 dimensions and the query vectors 4"):
        search(ones, [np.ones((3, 5), np.float32)], 2)
    with pytest.raises(InputError, match="depth is 0; allowed: from 1"):
        search(ones, [ones], 0)
    broken = ones.copy()
    broken[1, 2] = np.nan
    with pytest.raises(InputError, match="query vectors are not finite"):
        search(broken, [ones], 2)
    with pytest.raises(InputError, match="from row 3 on are not finite"):
        search(ones, [ones, broken], 2)
    with pytest.raises(InputError, match="from row 0 on are not finite"):
        search(ones, [ones * np.float32(1e20)], 2)


@pytest.mark.parametrize("spread", [1, 1e-2, 1e-4, 0])
def test_scores_and_order_depend_on_nothing_but_the_vectors(device, monkeypatch, spread):
    """Vectors of an odd length; the closer they are, the more scores differ in the last bits only."""
    rng = np.random.default_rng(4)
    vectors = (1 + spread * rng.standard_normal((500, 37))).astype(np.float32)
    queries, passages = vectors[:12], vectors[12:]
    monkeypatch.setattr(module, "PASSAGES", 1000)
    whole = search(queries, [passages], 30)
    every = products.pairwise(queries, passages, np.tile(np.arange(488), (12, 1)))
    rows = np.argsort(-every, axis=1, kind="stable")[:, :30]
    np.testing.assert_array_equal(whole.passages.reshape(12, 30), rows)
    np.testing.assert_array_equal(whole.scores.reshape(12, 30), np.take_along_axis(every, rows, 1))
    np.testing.assert_allclose(
        every, queries.astype(np.float64) @ passages.T.astype(np.float64), rtol=1e-5, atol=1e-4
    )
    for size, threads in ((9, 1), (41, 1), (300, 2)):
        monkeypatch.setattr(module, "PASSAGES", size)
        same(
            search(queries, [passages[:101], passages[101:]], 30, threads=threads, device=device),
            whole,
        )


def test_where_faiss_cannot_use_the_gpu_the_cpu_searches_and_its_threads_are_restored(
    monkeypatch, capsys
):
    ones = np.ones((3, 4), np.float32)
    monkeypatch.setattr(faiss, "get_num_gpus", lambda: 0)
    assert search(ones, [ones], 2, device="cuda").passages.tolist() == [0, 1] * 3
    assert (
        "found no usable GPU (GPUs need faiss-gpu); searching on the CPU" in capsys.readouterr().err
    )
    monkeypatch.setattr(faiss, "get_num_gpus", lambda: 1)
    monkeypatch.setattr(faiss, "StandardGpuResources", object, raising=False)
    many = np.ones((3000, 4), np.float32)
    assert search(ones, [many], 2000, device="cuda").passages[:2000].tolist() == list(range(2000))
    assert (
        "at most 2,048 hits, too few for depth 2,000; searching on the CPU"
        in capsys.readouterr().err
    )
    before = faiss.omp_get_max_threads()
    search(np.ones((3, 4), np.float32), [np.ones((3, 4), np.float32)], 2, threads=before + 1)
    assert faiss.omp_get_max_threads() == before
