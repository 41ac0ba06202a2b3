"""Lucene's indexes of sparse vectors, and measures of sparsity."""

import numpy as np
import pytest
from scipy import sparse

from cdmae.config.kinds import Retriever
from cdmae.fields import rules_of
from cdmae.retrieval import impacts, kinds, sparsity, vectors
from cdmae.retrieval.kinds import sparse as kind
from cdmae.retrieval.search import search


def drawn(rows, density, seed):
    """Draw weights that are multiples of 1/8, so that sums are exact and scores tie."""
    generator = np.random.default_rng(seed)
    weights = generator.integers(1, 16, (rows, 50)) / 8
    return sparse.csr_array((weights * (generator.random((rows, 50)) < density)).astype(np.float32))


def cut(matrix, size):
    edges = range(0, matrix.shape[0], size)
    parts = [matrix[first : first + size] for first in edges]
    return [vectors.Shard(part.shape[0], lambda part=part: part) for part in parts]


def indexed(folder, shards, engine, k1=0.0, b=0.0):
    """Write vectors and their index, and open it."""
    with vectors.Progress(1, unit="passages", label="write") as progress:
        vectors.write(folder, shards, [], progress)
    impacts.add(folder, engine, k1, b)
    return vectors.read_vectors(folder)


def test_lucene_finds_the_same_as_the_product_of_the_rounded_vectors(tmp_path):
    """Also ties, several shards, an empty query and an empty passage."""
    queries = sparse.vstack([drawn(5, 0.1, 1), drawn(1, 0.0, 1)], format="csr") / 100
    passages = sparse.vstack([drawn(300, 0.1, 2), drawn(1, 0.0, 1)], format="csr") * 1.37
    passages[:, 0] = 0.004  # becomes 0
    index = indexed(tmp_path / "v", cut(passages, 200), "lucene")
    run = search(queries * 100, index, 40)
    exact = search(
        impacts.rounded(queries * 100).astype(np.float32),
        cut(impacts.rounded(passages).astype(np.float32), 170),
        40,
    )
    assert run.starts.tolist() == exact.starts.tolist()
    assert run.passages.tolist() == exact.passages.tolist()
    np.testing.assert_allclose(run.scores, exact.scores, rtol=1e-6)
    assert len(kinds.read_shards(tmp_path / "v")) == 2


def test_sparsity_counts_entries_and_shared_word_pieces(tmp_path):
    queries = drawn(20, 0.1, 1)
    passages = drawn(60, 0.2, 2)
    kind.write(tmp_path, "00000", passages)
    found = sparsity.measure(queries, tmp_path)
    products = (queries.toarray() > 0).astype(int) @ (passages.toarray() > 0).T
    assert found == pytest.approx(
        {
            "query_entries": queries.nnz / 20,
            "passage_entries": passages.nnz / 60,
            "flops": products.mean(),
            "megabytes": (tmp_path / "00000.npz").stat().st_size / 1e6,
        }
    )


def test_lucene_reads_weights_as_term_frequencies_of_bm25(tmp_path):
    """DeepCT: BM25 by hand over the rounded weights, with the constants of its authors.

    They leave the learnt weights an effect: frequencies of 20 and 100 do not score nearly the same.
    """
    weights = np.zeros((40, 50), np.float32)
    generator = np.random.default_rng(5)
    for row in range(39):  # the last passage is empty
        pieces = generator.choice(50, 6, replace=False)
        weights[row, pieces] = generator.integers(1, 7, 6) / 100  # Lucene stores lengths up to 40
    queries = drawn(5, 0.1, 1)
    queries.data[:] = generator.integers(1, 3, queries.nnz)
    shards = cut(sparse.csr_array(weights), 25)
    how = {key: rules_of(Retriever)[key].default for key in ("k1", "b")}
    assert how == {"k1": 10, "b": 0.9}
    assert 20 / (20 + how["k1"]) < 0.75 * 100 / (100 + how["k1"])
    index = indexed(tmp_path / "v", shards, "bm25", **how)
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
