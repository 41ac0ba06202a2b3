"""Search by the sum of two heads' scores: exact, and the same as the sum of two searches."""

import numpy as np
import pytest
from scipy import sparse

from cdmae.retrieval.kinds import dual
from cdmae.retrieval.kinds.dual import DualVectors
from cdmae.retrieval.search import search
from cdmae.retrieval.shards import Shard

WEIGHT = 0.75


def drawn(count, seed, ties=False):
    """Vectors; with `ties`, of small whole numbers, whose sums are exact and often equal."""
    generator = np.random.default_rng(seed)
    dense = generator.standard_normal((count, 24)).astype(np.float32)
    weights = generator.random((count, 50)) * (generator.random((count, 50)) < 0.15)
    if ties:
        dense = np.rint(dense)
        weights = np.rint(4 * weights)
    return DualVectors(dense, sparse.csr_array(weights.astype(np.float32)), WEIGHT)


def cut(vectors, edges):
    return [vectors[first:last] for first, last in zip(edges[:-1], edges[1:], strict=True)]


@pytest.mark.parametrize("ties", [False, True])
def test_the_ranking_is_that_of_both_heads_fused(ties, monkeypatch):
    """Every passage's score by each head alone, added; in any blocks."""
    queries, passages = drawn(30, 1, ties), drawn(400, 2, ties)
    alone = []
    for uses in ("dense", "sparse"):
        own = passages.head(uses)
        alone.append(search(queries.head(uses), [Shard(own.shape[0], lambda own=own: own)], 400))
    scores = np.zeros((2, 30, 400))
    for head, run in enumerate(alone):
        for query in range(30):
            rows, values = run.ranked(query)  # a sparse run leaves out passages that score 0
            scores[head, query, rows] = values
    fused = (WEIGHT * scores[0] + scores[1]).astype(np.float32)
    order = np.argsort(-fused, axis=1, kind="stable")
    for depth in (1, 25, 400, 500):
        for block, asked, edges in ((1000, 256, [0, 400]), (37, 7, [0, 150, 150, 400])):
            monkeypatch.setattr(dual, "PASSAGES", block)
            monkeypatch.setattr(dual, "QUERIES", asked)
            run = search(queries, cut(passages, edges), depth)
            found = run.passages.reshape(30, -1)
            np.testing.assert_array_equal(found, order[:, :depth])
            expected = np.take_along_axis(fused, found, 1)
            np.testing.assert_array_equal(run.scores.reshape(30, -1), expected)
