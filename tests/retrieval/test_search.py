"""Vectors of every kind: an exact search in any blocks and shards, as on a CPU or a GPU, and files."""

from dataclasses import replace

import faiss
import numpy as np
import pytest
from scipy import sparse

from cdmae.errors import InputError
from cdmae.models.ragged import starts_of
from cdmae.retrieval import impacts, kinds, products, sparsity, vectors
from cdmae.retrieval.kinds import dense
from cdmae.retrieval.kinds.dual import DualVectors
from cdmae.retrieval.kinds.multi import MultiVectors
from cdmae.retrieval.search import search
from cdmae.retrieval.shards import Shard
from cdmae.runs import Run

KINDS = {kind.__name__.split(".")[-1]: kind for kind in kinds.KINDS}


def drawn(name, count, seed, *, ties=False):
    """Draw the vectors of texts; ties: of small whole numbers, whose products are often equal."""
    generator = np.random.default_rng(seed)

    def numbers(*shape):
        made = generator.standard_normal(shape).astype(np.float32)
        return np.rint(made) if ties else made

    if name in ("multi", "coil"):
        starts = starts_of(generator.integers(1, 12, count))
        pieces = generator.integers(0, 20, starts[-1]).astype(np.int32)
        pieces[starts[:-1]] = -1 if name == "coil" else 0  # [CLS]
        return MultiVectors(numbers(starts[-1], 7), starts, pieces, name == "coil").rounded()
    weights = np.abs(numbers(count, 50)) * (generator.random((count, 50)) < 0.15)
    weights = sparse.csr_array(weights.astype(np.float32))
    if name == "sparse":
        return weights
    vectors = numbers(count, 37)
    return vectors if name == "dense" else DualVectors(vectors, weights, 0.75)


def definition(queries, passages):
    """The score of each query with each passage, float64 [Q, P]."""
    if isinstance(queries, DualVectors):
        of_dense = definition(queries.dense, passages.dense)
        return queries.weight * of_dense + definition(queries.sparse, passages.sparse)
    if not isinstance(queries, MultiVectors):
        products = queries.astype(np.float64) @ passages.astype(np.float64).T
        return products.toarray() if sparse.issparse(products) else products
    products = queries.values.astype(np.float64) @ passages.values.astype(np.float64).T
    if queries.paired:
        products *= queries.pieces[:, None] == passages.pieces
    maxima = np.maximum.reduceat(products, passages.starts[:-1], axis=1)
    if queries.paired:
        # A [CLS] vector meets the other one; a product of other word-pieces is at least 0.
        met = products[:, passages.starts[:-1]]
        maxima = np.where(queries.pieces[:, None] < 0, met, maxima.clip(0))
    return np.add.reduceat(maxima, queries.starts[:-1], axis=0)


def cut(passages, *edges):
    """Cut vectors into shards at the given rows."""
    edges = [0, *edges, passages.shape[0] if sparse.issparse(passages) else len(passages)]
    pairs = zip(edges[:-1], edges[1:], strict=True)
    return [Shard(last - first, lambda f=first, e=last: passages[f:e]) for first, last in pairs]


def written(folder, shards):
    """Write shards into a folder."""
    for number, shard in enumerate(shards):
        made = shard[:]
        kinds.of(made).write(folder, f"{number:05d}", made)


def same(run, other):
    for name in ("passages", "scores", "starts"):
        np.testing.assert_array_equal(getattr(run, name), getattr(other, name))


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("name", [*KINDS, "coil"])
def test_a_search_ranks_by_the_definition_whatever_the_blocks(name, ties, monkeypatch):
    """Ties by row; sparse vectors find no passage that scores 0."""
    kind = KINDS.get(name, kinds.multi)
    queries = drawn(name, 21, 1, ties=ties)
    passages = drawn(name, 300, 2, ties=ties)
    scores = definition(queries, passages)
    for depth in (1, 49, 300, 500):
        whole = search(queries, cut(passages), depth)
        for query, own in enumerate(scores):
            expected = np.argsort(-own, kind="stable")
            if name == "sparse":
                expected = expected[own[expected] > 0]
            found, values = whole.ranked(query)
            assert found.tolist() == expected[:depth].tolist()
            np.testing.assert_allclose(values, own[found], rtol=1e-5, atol=1e-5)
        with monkeypatch.context() as patch:
            patch.setattr(kind, "QUERIES", 7)
            patch.setattr(kind, "PASSAGES", 50)
            patch.setattr(kinds.multi, "PAIRS", 64)
            same(search(queries, cut(passages, 1, 1, 120), depth, threads=3), whole)
    assert len(search(queries[:0], cut(passages), 5)) == 0


def test_only_the_candidates_of_a_query_are_ranked():
    queries = drawn("multi", 3, 1)
    passages = drawn("multi", 50, 2)
    lists = [[7, 3, 49, 0], [], [20, 21]]
    candidates = Run.of([np.array(rows, np.int32) for rows in lists], [np.zeros(4), [], [0, 0]])
    run = search(queries, cut(passages, 9, 30), 3, candidates=candidates)
    expected = definition(queries, passages)
    for query, listed in enumerate(lists):
        ranked = sorted(listed, key=lambda row: -expected[query][row])[:3]
        assert run.ranked(query)[0].tolist() == ranked


def arrays(made):
    """All numbers of some vectors."""
    if isinstance(made, MultiVectors):
        return made.values, made.starts, made.pieces
    if isinstance(made, DualVectors):
        return made.dense, made.sparse.toarray()
    return (made.toarray() if sparse.issparse(made) else made,)


@pytest.mark.parametrize("name", KINDS)
def test_shards_are_read_as_they_were_written(tmp_path, name):
    kind = KINDS[name]
    made = drawn(name, 11, 3)
    written(tmp_path / "v", cut(made, 5, 10))
    read = vectors.read_vectors(tmp_path / "v")
    assert [len(shard) for shard in read] == [5, 5, 1]
    whole = kind.joined([shard[:] for shard in read])
    for first, second in zip(arrays(whole), arrays(made), strict=True):
        np.testing.assert_array_equal(first, second)


# --- dense vectors, whose products are computed in two ways ---------------------------------------


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
    """Small blocks; where no GPU is, one is played, which returns at most 40 hits."""
    monkeypatch.setattr(dense, "QUERIES", 7)
    monkeypatch.setattr(dense, "PASSAGES", 50)
    monkeypatch.setattr(dense, "GPU_MOST", 40)
    monkeypatch.setattr(faiss, "get_num_gpus", lambda: 2)
    monkeypatch.setattr(faiss, "StandardGpuResources", object, raising=False)
    monkeypatch.setattr(faiss, "knn_gpu", rounded_otherwise)
    return request.param


@pytest.mark.parametrize("spread", [1, 1e-2, 1e-4, 0])
def test_scores_and_order_depend_on_nothing_but_the_vectors(device, monkeypatch, spread):
    """Vectors of an odd length; the closer they are, the more scores differ in the last bits only."""
    rng = np.random.default_rng(4)
    vectors = (1 + spread * rng.standard_normal((500, 37))).astype(np.float32)
    queries, passages = vectors[:12], vectors[12:]
    every = products.pairwise(queries, passages, np.tile(np.arange(488), (12, 1)))
    rows = np.argsort(-every, axis=1, kind="stable")[:, :30]
    for size, threads in ((1000, 1), (9, 1), (41, 1), (300, 2)):
        monkeypatch.setattr(dense, "PASSAGES", size)
        run = search(queries, cut(passages, 101), 30, threads=threads, device=device)
        np.testing.assert_array_equal(run.passages.reshape(12, 30), rows)
        np.testing.assert_array_equal(
            run.scores.reshape(12, 30), np.take_along_axis(every, rows, 1)
        )


def test_vectors_that_are_not_finite_are_refused():
    ones = np.ones((3, 4), np.float32)
    broken = ones.copy()
    broken[1, 2] = np.nan
    for queries, shards, words in (
        (broken, [ones], "query vectors are not finite"),
        (ones, [ones, broken], "from row 3 on are not finite"),
    ):
        with pytest.raises(InputError, match=words):
            search(queries, shards, 2)
    with pytest.raises(InputError, match="exceed 65,504"):
        large = drawn("multi", 3, 1)
        search(large, [replace(large, values=np.full((len(large.values), 7), 1e9))], 2)


# --- sparse vectors: Lucene's indexes, and measures -----------------------------------------------


def indexed(folder, shards, engine, k1=0.0, b=0.0):
    """Write vectors and their index, and open it."""
    written(folder, shards)
    impacts.add(folder, engine, k1, b)
    return vectors.read_vectors(folder)


def test_lucene_finds_the_same_as_the_product_of_the_rounded_vectors(tmp_path):
    """Also ties, several shards, an empty query and an empty passage."""
    nothing = sparse.csr_array((1, 50), dtype=np.float32)
    queries, passages = (
        sparse.vstack([drawn("sparse", count, count, ties=True), nothing], format="csr")
        for count in (5, 300)
    )
    passages *= 1.37
    passages[:, 0] = 0.004  # becomes 0
    index = indexed(tmp_path / "v", cut(passages, 200), "lucene")
    run = search(queries, index, 40)
    rounded = [impacts.rounded(each).astype(np.float32) for each in (queries, passages)]
    exact = search(rounded[0], cut(rounded[1], 170), 40)
    assert run.starts.tolist() == exact.starts.tolist()
    assert run.passages.tolist() == exact.passages.tolist()
    np.testing.assert_allclose(run.scores, exact.scores, rtol=1e-6)
    assert len(kinds.read_shards(tmp_path / "v")) == 2


def test_sparsity_counts_entries_and_shared_word_pieces(tmp_path):
    queries = drawn("sparse", 20, 1)
    passages = drawn("sparse", 60, 2)
    kinds.sparse.write(tmp_path, "00000", passages)
    found = sparsity.measure(queries, tmp_path)
    products = (queries.toarray() > 0).astype(int) @ (passages.toarray() > 0).T
    assert found == pytest.approx(
        {
            "passage_entries": passages.nnz / 60,
            "flops": products.mean(),
            "megabytes": (tmp_path / "00000.npz").stat().st_size / 1e6,
        }
    )


def test_lucene_reads_weights_as_term_frequencies_of_bm25(tmp_path):
    """DeepCT: BM25 by hand over the rounded weights."""
    weights = np.zeros((40, 50), np.float32)
    generator = np.random.default_rng(5)
    for row in range(39):  # the last passage is empty
        pieces = generator.choice(50, 6, replace=False)
        # rounded up; Lucene stores lengths up to 40
        weights[row, pieces] = generator.integers(1, 7, 6) / 100 - 0.004
    queries = drawn("sparse", 5, 1)
    queries.data[:] = generator.integers(1, 3, queries.nnz)
    index = indexed(tmp_path / "v", cut(sparse.csr_array(weights), 25), "bm25", k1=10, b=0.9)
    run = search(queries, index, 40)

    frequencies = np.rint(weights * 100)
    lengths = frequencies.sum(1)
    mean = lengths.sum() / 39
    contain = (frequencies > 0).sum(0)
    idf = np.log(1 + (39 - contain + 0.5) / (contain + 0.5))
    norm = 10 * (1 - 0.9 + 0.9 * lengths / mean)
    saturated = frequencies / (frequencies + norm[:, None])
    expected = queries.toarray() @ (idf * saturated).T
    for query, scores in enumerate(expected):
        found, values = run.ranked(query)
        assert len(found) == (scores > 0).sum()
        np.testing.assert_allclose(values, scores[found], atol=2e-4)
        assert (np.diff(values) <= 0).all()
