"""Exact search: against argsort over the whole product, with ties, in blocks and passes, by numpy and by torch."""

import numpy as np
import pytest

from cdmae import search as module
from cdmae.errors import InputError
from cdmae.search import search


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


def whole_numbers(rng, *shape):
    """Vectors with many equal products, which float32 holds exactly in any order of summation."""
    return rng.integers(-2, 3, shape).astype(np.float32)


@pytest.fixture(params=["numpy", "torch"])
def engine(request, monkeypatch):
    """Small blocks; torch is made to run on the CPU, where no GPU is."""
    for kind in (module._Numpy, module._Torch):
        monkeypatch.setattr(kind, "queries", 7)
        monkeypatch.setattr(kind, "passages", 50)
    if request.param == "torch":
        monkeypatch.setattr(module, "_Numpy", lambda *_: module._Torch("cpu"))
    return request.param


@pytest.mark.parametrize("depth", [1, 10, 60, 300, 1000])
def test_search_is_argsort(engine, depth):
    rng = np.random.default_rng(depth)
    queries, passages = rng.standard_normal((20, 16), np.float32), rng.standard_normal((300, 16), np.float32)
    check(search(queries, [passages], depth), queries, passages, depth)


@pytest.mark.parametrize("depth", [1, 3, 49, 50, 51, 200])
def test_ties_come_by_row_and_are_cut_by_row(engine, depth):
    rng = np.random.default_rng(depth)
    queries, passages = whole_numbers(rng, 15, 3), whole_numbers(rng, 333, 3)
    run = search(queries, [passages], depth)
    rows, scores = reference(queries, passages, depth)
    np.testing.assert_array_equal(run.passages.reshape(rows.shape), rows)
    np.testing.assert_array_equal(run.scores.reshape(rows.shape), scores)


def test_shards_passes_and_threads_do_not_matter(engine, monkeypatch):
    rng = np.random.default_rng(3)
    queries, passages = whole_numbers(rng, 40, 4), whole_numbers(rng, 400, 4)
    whole = search(queries, [passages], 30)
    monkeypatch.setattr(module, "KEPT", 30 * 9)
    cut = [passages[:1], passages[1:1], passages[1:120], passages[120:]]
    for run in (search(queries, cut, 30), search(queries, cut, 30, threads=3)):
        for name in ("passages", "scores", "starts"):
            np.testing.assert_array_equal(getattr(run, name), getattr(whole, name))


def test_zeros_of_both_signs_tie(engine):
    passages = np.array([[-0.0], [0.0], [-0.0], [1.0], [-1.0]], np.float32)
    run = search(np.array([[1.0], [-1.0]], np.float32), [passages], 5)
    assert run.passages.tolist() == [3, 0, 1, 2, 4, 4, 0, 1, 2, 3]


def test_all_scores_equal(engine):
    passages = np.zeros((120, 2), np.float32)
    run = search(np.ones((1, 2), np.float32), [passages], 70)
    assert run.passages.tolist() == list(range(70))


def test_negative_scores_keep_their_order(engine):
    passages = -np.arange(1, 130, dtype=np.float32)[:, None]
    assert search(np.ones((1, 1), np.float32), [passages], 129).passages.tolist() == list(range(129))


def test_half_precision_shards_are_multiplied_in_single_precision(engine):
    rng = np.random.default_rng(1)
    passages = rng.standard_normal((200, 8)).astype(np.float16)
    queries = rng.standard_normal((5, 8), np.float32)
    check(search(queries, [passages], 20), queries, passages.astype(np.float32), 20)


def test_nothing_to_search():
    none = np.empty((0, 4), np.float32)
    assert len(search(none, [np.ones((3, 4), np.float32)], 2)) == 0
    run = search(np.ones((2, 4), np.float32), [none], 5)
    assert len(run) == 2 and not len(run.passages)


def test_what_does_not_fit_is_refused():
    ones = np.ones((3, 4), np.float32)
    with pytest.raises(InputError, match=r"shape \[3, 5\] and the queries' \[3, 4\]"):
        search(ones, [np.ones((3, 5), np.float32)], 2)
    with pytest.raises(InputError, match="depth is 0; allowed: from 1"):
        search(ones, [ones], 0)
    broken = ones.copy()
    broken[1, 2] = np.nan
    with pytest.raises(InputError, match="queries are not finite"):
        search(broken, [ones], 2)
    with pytest.raises(InputError, match="from row 3 on are not finite"):
        search(ones, [ones, broken], 2)


def test_precision_of_products_is_restored():
    import torch

    torch.set_float32_matmul_precision("high")
    try:
        with module._Torch("cpu"):
            assert torch.get_float32_matmul_precision() == "highest"
        assert torch.get_float32_matmul_precision() == "high"
    finally:
        torch.set_float32_matmul_precision("highest")
