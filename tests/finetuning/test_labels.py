"""Training queries without judgments, whose relevant passages a teacher finds among the mined ones."""

import numpy as np
import pytest
from tiny_training import QUERIES, data_of, stage

from cdmae.collections.store import Collection, read_passages, read_queries, write_collection
from cdmae.finetuning.labels import Labels
from cdmae.models import checkpoint
from cdmae.retrieval import reranking
from cdmae.runs import Run, read_run, write_run


def test_labels_by_hand(tmp_path):
    """Of three mined passages, the first has e / (e + 1 + 1) = 0.576; a temperature sharpens it.

    Passage 9 is not among the best three, and passage 3 has no score.
    """
    mined = Run.of([[1, 2, 3, 9], [4, 5, 6, 9], [7]], [[4.0, 3.0, 2.0, 1.0]] * 2 + [[1.0]])
    scores = Run.of([[9, 1, 2], [4, 5, 6], []], [[8.0, 1.0, 0.0], [1.0, 0.0, 0.0], []])
    write_run(tmp_path / "t.parquet", scores)
    for share, temperature, expected in (
        (0.5, 1.0, [(0, 1), (1, 4)]),
        (0.6, 1.0, [(0, 1)]),  # two passages: e / (e + 1) = 0.73
        (0.8, 1.0, []),
        (0.8, 0.4, [(0, 1), (1, 4)]),  # 0.92 and 0.86
        (0.2, 1.0, [(0, 1), (0, 2), (1, 4), (1, 5), (1, 6)]),
    ):
        found = Labels(tmp_path / "t.parquet", share, temperature).qrels(mined, 3)
        assert list(zip(found["query"], found["passage"], strict=True)) == expected
        assert set(found["grade"]) <= {1}
        assert [dtype.kind for dtype in found.dtypes] == ["i"] * 3


RECIPE = {"split": "asked", "random_negatives": 0, "labels": 0.9}


@pytest.fixture
def unjudged(tiny, tmp_path):
    """The tiny collection with its queries in the split `asked`, without judgments."""
    queries = {"asked": read_queries(tiny.collection, "train")}
    passages = read_passages(tiny.collection)
    write_collection(tmp_path / "unjudged", Collection(passages, queries, {}, {}))
    return tmp_path / "unjudged"


def test_labelled_passages_are_the_positives_and_other_queries_are_left_out(
    tiny, tmp_path, unjudged
):
    """Every other query has a clear best among its mined passages."""
    mined = read_run(tiny.negatives)
    lists = [mined.ranked(query)[0][:15] for query in range(QUERIES)]
    scores = [np.zeros(15) for _ in lists]
    for query in range(0, QUERIES, 2):
        scores[query][query % 15] = 9.0
    write_run(tmp_path / "t.parquet", Run.of(lists, scores))
    recipe = stage("retriever", **RECIPE)
    model = checkpoint.start_model(tiny.encoder, "retriever", **recipe.model())
    data = data_of(tiny, recipe, model, collection=unjudged, teacher=tmp_path / "t.parquet")
    even = range(0, QUERIES, 2)
    assert data.examples.queries.tolist() == list(even)
    assert data.examples.positives.values.tolist() == [lists[q][q % 15] for q in even]
    for row, query in enumerate(even):
        assert lists[query][query % 15] not in data.examples.mined[row]


def test_the_teacher_scores_the_best_mined_passages_of_every_query(tiny, tmp_path, unjudged):
    reranker = tmp_path / "reranker"
    made = checkpoint.start_model(tiny.encoder, "reranker", max_length=40, precision="fp32", seed=1)
    reranker.mkdir()
    checkpoint.save(reranker, made, tiny.encoder, {})
    settings = stage("retriever", **RECIPE).drawn()
    assert settings["labelled"]
    how = {
        "model": reranker, "collection": unjudged, "tokens": tiny.tokens,
        "negatives": tiny.negatives, "settings": settings | {"seed": 9},
    }  # fmt: skip
    reranking.teacher(**how, output=tmp_path / "t.parquet")
    run = read_run(tmp_path / "t.parquet")
    mined = read_run(tiny.negatives)
    for query in range(QUERIES):
        best = mined.ranked(query)[0][:15]
        assert sorted(run.ranked(query)[0].tolist()) == sorted(best.tolist())
