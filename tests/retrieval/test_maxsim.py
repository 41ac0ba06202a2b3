"""Search among multi-vectors: equal to the definition in NumPy, whatever the blocks and threads."""

import numpy as np
import pytest

from cdmae.models.ragged import starts_of
from cdmae.retrieval import vectors
from cdmae.retrieval.kinds import multi
from cdmae.retrieval.kinds.multi import MultiVectors
from cdmae.retrieval.search import search
from cdmae.runs import Run


def drawn(lengths, width, seed, paired=False, half=False):
    """Draw vectors of length 1; paired: those of COIL, each text's first is [CLS]'s."""
    generator = np.random.default_rng(seed)
    starts = starts_of(lengths)
    values = generator.standard_normal((starts[-1], width)).astype(np.float32)
    values /= np.linalg.norm(values, axis=1, keepdims=True)
    pieces = generator.integers(0, 20, starts[-1]).astype(np.int32)
    if paired:
        pieces[starts[:-1]] = -1  # [CLS]
    made = MultiVectors(values, starts, pieces, paired)
    return made.rounded() if half else made


def by_hand(queries, passages):
    """The definition, float64 [Q, P]: sum_i max_j q_i . d_j; paired: see `heads.multi`."""
    found = np.zeros((len(queries), len(passages)))
    for row in range(len(queries)):
        query = queries[row : row + 1]
        for column in range(len(passages)):
            passage = passages[column : column + 1]
            products = query.values.astype(np.float64) @ passage.values.astype(np.float64).T
            if queries.paired:
                products *= query.pieces[:, None] == passage.pieces
                cls = query.pieces < 0
                found[row, column] = products[cls].sum() + products[~cls].max(1).clip(0).sum()
            else:
                found[row, column] = products.max(1).sum()
    return found


def cut(passages, size):
    edges = range(0, len(passages), size)
    pieces = [passages[first : first + size] for first in edges]
    return [vectors.Shard(len(piece), lambda piece=piece: piece) for piece in pieces]


def same(first, second):
    assert first.starts.tolist() == second.starts.tolist()
    assert first.passages.tolist() == second.passages.tolist()
    assert first.scores.tobytes() == second.scores.tobytes()


@pytest.mark.parametrize("width", [128, 7])
@pytest.mark.parametrize("paired", [False, True])
def test_search_equals_the_definition_for_any_blocks_and_threads(paired, width, monkeypatch):
    generator = np.random.default_rng(3)
    queries = drawn(generator.integers(1, 12, 9), width, 1, paired)
    passages = drawn(generator.integers(1, 30, 150), width, 2, paired, half=True)
    expected = by_hand(queries, passages)
    run = search(queries, cut(passages, 150), 40)
    for query in range(len(queries)):
        found, scores = run.ranked(query)
        assert found.tolist() == np.argsort(-expected[query], kind="stable")[:40].tolist()
        np.testing.assert_allclose(scores, expected[query][found], rtol=1e-5, atol=1e-6)
    monkeypatch.setattr(multi, "QUERIES", 4)
    monkeypatch.setattr(multi, "PAIRS", 64)
    for size in (150, 37, 1):
        same(search(queries, cut(passages, size), 40, threads=3), run)
        everything = Run.of([np.arange(150)] * 9, [np.zeros(150)] * 9)
        same(search(queries, cut(passages, size), 40, candidates=everything), run)


def test_candidates_alone_are_ranked(monkeypatch):
    """Also without candidates, and in ranges of the passages."""
    queries = drawn([3, 8, 5], 16, 1)
    passages = drawn([4] * 50, 16, 2, half=True)
    lists = [[7, 3, 49, 0], [], [20, 21]]
    candidates = Run.of(
        [np.array(each, np.int32) for each in lists], [np.zeros(len(e)) for e in lists]
    )
    expected = by_hand(queries, passages)
    shards = cut(passages, 9)
    run = search(queries, shards, 3, candidates=candidates)
    for query, listed in enumerate(lists):
        ranked = sorted(listed, key=lambda row: -expected[query][row])[:3]
        assert run.ranked(query)[0].tolist() == ranked


def test_equal_scores_are_ranked_by_row():
    queries = drawn([4], 8, 1)
    one = drawn([6], 8, 2, half=True)
    passages = multi.joined([one] * 5)
    run = search(queries, cut(passages, 2), 3)
    assert run.passages.tolist() == [0, 1, 2]
    assert len(set(run.scores.tolist())) == 1
