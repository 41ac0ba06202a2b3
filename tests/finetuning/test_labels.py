"""Training queries without judgments, whose relevant passages a teacher finds among the mined ones."""

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from tiny_training import PASSAGES, QUERIES, encoder, stage, train

from cdmae.collections.store import Collection, read_passages, read_queries, write_collection
from cdmae.finetuning import retriever
from cdmae.finetuning.labels import Labels
from cdmae.models import checkpoint, sequences
from cdmae.retrieval import reranking
from cdmae.runs import Run, read_run, write_run
from cdmae.tokens.corpus import read_tokens


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


def without_judgments(tiny, folder, qrels=None):
    """The tiny collection with its queries in the split `asked`."""
    queries = {"asked": read_queries(tiny.collection, "train")}
    judged = {} if qrels is None else {"asked": qrels}
    passages = read_passages(tiny.collection)
    write_collection(folder, Collection(passages, queries, judged, {}))
    return folder


@pytest.fixture
def judged_by(tiny, tmp_path):
    """A teacher's run over the best passages of the mined run: every other query has a clear best."""
    mined = read_run(tiny.negatives)
    lists = [mined.ranked(query)[0][:15] for query in range(QUERIES)]
    scores = [np.zeros(15) for _ in lists]
    for query in range(0, QUERIES, 2):
        scores[query][query % 15] = 9.0
    write_run(tmp_path / "labels.parquet", Run.of(lists, scores))
    best = {query: int(lists[query][query % 15]) for query in range(0, QUERIES, 2)}
    return tmp_path / "labels.parquet", best


RECIPE = {"split": "asked", "random_negatives": 0, "distillation": "none"}


def test_a_training_with_labels_is_one_with_these_judgments(tiny, tmp_path, judged_by):
    """The same weights, to the bit."""
    teacher, best = judged_by
    recipe = stage("retriever", labels=0.9, **RECIPE)
    start = encoder(tmp_path / "e", tiny.encoder, dropout=0.0)
    unjudged = without_judgments(tiny, tmp_path / "c")
    labelled = train(
        retriever, tiny, tmp_path / "one", recipe, encoder=start, collection=unjudged,
        teacher=teacher,
    )  # fmt: skip
    qrels = pd.DataFrame(
        [(f"q{query}", f"p{passage}", 1) for query, passage in best.items()],
        columns=["query_id", "passage_id", "grade"],
    )
    judged = without_judgments(tiny, tmp_path / "judged", qrels)
    plain = replace(recipe, labels=0.0)
    known = train(
        retriever, tiny, tmp_path / "two", plain, encoder=start, collection=judged, teacher=teacher
    )
    name = "model.safetensors"
    assert (labelled / name).read_bytes() == (known / name).read_bytes()


def test_the_teacher_scores_the_best_mined_passages_of_every_query(tiny, tmp_path):
    reranker = tmp_path / "reranker"
    made = checkpoint.start_model(tiny.encoder, "reranker", max_length=40, precision="fp32", seed=1)
    reranker.mkdir()
    checkpoint.save(reranker, made, tiny.encoder, {})
    collection = without_judgments(tiny, tmp_path / "c")
    settings = stage("retriever", labels=0.9, **RECIPE).drawn()
    assert settings["labelled"]
    how = {
        "model": reranker, "collection": collection, "tokens": tiny.tokens,
        "negatives": tiny.negatives, "settings": settings | {"seed": 9},
    }  # fmt: skip
    reranking.teacher(**how, output=tmp_path / "t.parquet")
    run = read_run(tmp_path / "t.parquet")
    mined = read_run(tiny.negatives)
    queries = sequences.queries(tiny.queries, reranker, 1)
    judge = checkpoint.load(reranker, "reranker")
    passages = read_tokens(tiny.tokens)
    for query in range(QUERIES):
        best = mined.ranked(query)[0][:15]
        found, scores = run.ranked(query)
        assert sorted(found.tolist()) == sorted(best.tolist())
        expected = reranking.score(judge, queries, np.full(len(found), query), passages, found)
        np.testing.assert_allclose(scores, expected, atol=2e-6)
    assert math.isfinite(run.scores.sum()) and run.passages.max() < PASSAGES
