"""Vector feedback: Rocchio's formula on vectors, and a system of this kind."""

import numpy as np
import pytest

from cdmae.config.load import load
from cdmae.errors import InputError
from cdmae.retrieval import feedback, vectors
from cdmae.retrieval.asking import Question, ask, encoder
from cdmae.retrieval.search import search, write_runs
from cdmae.retrieval.vectors import read_vectors
from cdmae.runs import Run, read_run, write_run
from tests.retrieval.test_inference import retriever_of

PASSAGES = np.array([[1, 0], [0, 1], [0, 3], [4, 0]], np.float32)


def test_a_query_moves_towards_the_mean_of_its_best_passages():
    """By hand: .5 (1, 2) + 2 ((0, 1) + (4, 0)) / 2 = (4.5, 2); the passages are in two shards."""
    queries = np.array([[1, 2], [6, 0]], np.float32)
    first = Run.of([np.array([1, 3, 0]), np.array([], int)], [np.ones(3), np.ones(0)])
    shards = [PASSAGES[:3], PASSAGES[3:]]
    moved = feedback.refined(queries, shards, first, depth=2, alpha=0.5, beta=2.0)
    np.testing.assert_allclose(moved, [[4.5, 2], [3, 0]])
    assert moved.dtype == np.float32


def test_runs_are_a_second_search(tiny, tmp_path):
    (tmp_path / "model").mkdir()
    model = retriever_of(tiny, tmp_path / "model", query_length=16, passage_length=32)
    vectors.write_vectors(
        encoder={"encoded_by": "vectors"},
        model=model,
        tokens=tiny.tokens,
        output=tmp_path / "vectors",
    )
    shards = read_vectors(tmp_path / "vectors")
    queries = vectors.encode_queries(model, tiny.queries)
    first = search(queries, shards, 10)
    write_run(tmp_path / "first.parquet", first)
    how = {"encoder": {"encoded_by": "vectors"}, "model": model, "vectors": [tmp_path / "vectors"]}
    where = {"collections": [tiny.collection], "splits": ["train"], "lengths": [0]}
    written = {"first": [tmp_path / "first.parquet"], "outputs": [tmp_path / "again.parquet"]}
    weights = {"feedback": {"depth": 3, "alpha": 0.9, "beta": 0.1}}
    write_runs(**how, **where, **written, **weights, depth=5, tokens=[], candidates=[])
    run = read_run(tmp_path / "again.parquet")
    passages = np.concatenate([shard[:] for shard in shards])
    best = first.ranked(4)[0][:3]
    scores = passages @ (0.9 * queries[4] + 0.1 * passages[best].mean(0))
    assert run.ranked(4)[0].tolist() == np.argsort(-scores, kind="stable")[:5].tolist()
    assert len(run) == len(tiny.queries)


def test_a_users_query_gets_the_answer_of_the_run(tiny, tmp_path):
    (tmp_path / "model").mkdir()
    model = retriever_of(tiny, tmp_path / "model", query_length=16, passage_length=32)
    vectors.write_vectors(
        encoder={"encoded_by": "vectors"},
        model=model,
        tokens=tiny.tokens,
        output=tmp_path / "vectors",
    )
    dense = {
        "answered_by": "search", "encoded_by": "vectors", "model": model, "vectors": tmp_path / "vectors", "parts": [],
    }  # fmt: skip
    weights = {"depth": 3, "alpha": 0.5, "beta": 0.5}
    system = {"answered_by": "feedback", "encoded_by": "", "parts": [dense], **weights}
    found = ask(system, Question(tiny.queries[0], 7)).run
    shards = read_vectors(tmp_path / "vectors")
    query = encoder(dense).queries([tiny.queries[0]])
    moved = feedback.refined(query, shards, search(query, shards, 7), **weights)
    np.testing.assert_array_equal(found.passages, search(moved, shards, 7).passages)


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"of": "bm25"}, "systems.again.of is bm25, of kind bm25; expected a dense system"),
        ({"depth": 101}, "systems.again.depth is 101; expected up to evaluation.depth, 100"),
        ({"alpha": 0, "beta": 0}, "systems.again: alpha is 0 and beta is 0; expected one of them"),
        ({}, "systems.again.kind needs evaluation.keep_vectors, which is false"),
    ],
)
def test_what_a_config_may_not_say(values, changed, words):
    values["systems"]["again"] = {"kind": "feedback", "of": "one", **changed}
    values["evaluation"]["depth"] = 100
    values["systems"]["cross"]["depth"] = 50
    values["evaluation"]["measures"] = ["RR@10"]
    if changed:
        load(
            {**values, "systems": values["systems"] | {"again": {"kind": "feedback", "of": "one"}}}
        )
    else:
        values["evaluation"]["keep_vectors"] = False
    with pytest.raises(InputError, match=words):
        load(values)
