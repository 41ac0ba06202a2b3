"""Training queries for other libraries: three dialects of the same groups."""

import json
from dataclasses import replace

import numpy as np
import pytest

from cdmae.collections import pair_rows
from cdmae.collections.sources.beir import Settings
from cdmae.collections.store import write_collection
from cdmae.errors import InputError
from cdmae.exporting.triples import DIALECTS, Training, export
from cdmae.runs import Run, write_run

TEXTS = [f"passage number {row}" for row in range(8)]
POSITIVES = {"q0": [0, 1], "q1": [2], "q2": [3]}
MINED = {"q0": [4, 0, 5, 6], "q1": [7, 2, 0], "q2": [3]}  # q2 has no negative


@pytest.fixture
def training(tmp_path):
    """Three training queries with a run over them, in which relevant passages occur, too."""
    mine = tmp_path / "mine"
    (mine / "qrels").mkdir(parents=True)
    rows = [{"_id": f"p{row}", "title": "T", "text": text} for row, text in enumerate(TEXTS)]
    (mine / "corpus.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    asked = [{"_id": name, "text": f"query {name}"} for name in POSITIVES]
    (mine / "queries.jsonl").write_text("".join(json.dumps(row) + "\n" for row in asked))
    lines = [f"{name}\tp{row}\t1\n" for name, found in POSITIVES.items() for row in found]
    (mine / "qrels/train.tsv").write_text("".join(lines))
    write_collection(tmp_path / "collection", Settings(path=str(mine)).load())
    ranked = [np.array(found, np.int32) for found in MINED.values()]
    scores = [np.arange(len(found), 0, -1, dtype=np.float32) for found in MINED.values()]
    write_run(tmp_path / "negatives.parquet", Run.of(ranked, scores))
    everything = [np.arange(8, dtype=np.int32)] * 3
    taught = [10 * query + np.arange(8, dtype=np.float32) for query in range(3)]
    write_run(tmp_path / "teacher.parquet", Run.of(everything, taught))
    return Training(
        tmp_path / "collection",
        "train",
        tmp_path / "negatives.parquet",
        None,
        depth=10,
        margin=0.0,
        train_queries=0,
    )


def taught(training):
    """The same training with a teacher, which scores passage p of query q by 10 q + p."""
    teacher = training.negatives.with_name("teacher.parquet")
    return Training(
        training.collection,
        training.split,
        training.negatives,
        teacher,
        depth=10,
        margin=0.0,
        train_queries=0,
    )


def read(path):
    """The pairs of a file: for each query, its positives, its negatives and all scores by text."""
    found = {}
    for _, pair in pair_rows.read(path):
        positives, negatives, scores = found.setdefault(pair.query, (set(), [], {}))
        positives |= {passage.text.removeprefix("T ") for passage in pair.positives}
        names = [passage.text.removeprefix("T ") for passage in pair.negatives]
        negatives[:] = names
        listed = [passage.text.removeprefix("T ") for passage in pair.positives] + names
        scores.update(zip(listed, pair.scores, strict=bool(pair.scores)))
    return found


@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_dialect_is_read_back_as_the_same_groups(tmp_path, training, dialect):
    output = tmp_path / "triples.jsonl"
    counts = export(output, dialect, training, 2)
    assert counts["left out without negatives"] == 1
    assert read(output) == {
        "query q0": ({TEXTS[0], TEXTS[1]}, [TEXTS[4], TEXTS[5]], {}),
        "query q1": ({TEXTS[2]}, [TEXTS[7], TEXTS[0]], {}),
    }


@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_dialect_has_the_teacher_s_scores(tmp_path, training, dialect):
    output = tmp_path / "triples.jsonl"
    export(output, dialect, taught(training), 2)
    found = read(output)
    assert found["query q0"][2] == {TEXTS[0]: 0, TEXTS[1]: 1, TEXTS[4]: 4, TEXTS[5]: 5}
    assert found["query q1"][2] == {TEXTS[2]: 12, TEXTS[7]: 17, TEXTS[0]: 10}


def test_a_teacher_s_labels_are_the_positives(tmp_path, training):
    """Passage p of query q has the score 10 q + p: the last mined passage is the best."""
    labelled = replace(taught(training), labels=0.5)
    export(tmp_path / "triples.jsonl", "tevatron", labelled, 2)
    best = {f"query {name}": max(mined) for name, mined in MINED.items() if len(mined) > 1}
    found = read(tmp_path / "triples.jsonl")
    assert {query: positives for query, (positives, _, _) in found.items()} == {
        query: {TEXTS[passage]} for query, passage in best.items()
    }


def test_the_columns_are_the_libraries_own(tmp_path, training):
    output = tmp_path / "triples.jsonl"
    first = {}
    for dialect in DIALECTS:
        export(output, dialect, taught(training), 2)
        first[dialect] = json.loads(output.read_text().splitlines()[0])
    assert first["sentence-transformers"] == {
        "anchor": "query q0", "positive": "T passage number 0", "negative_1": "T passage number 4",
        "negative_2": "T passage number 5", "label": [0.0, 4.0, 5.0],
    }  # fmt: skip
    assert first["flagembedding"].keys() == {"query", "pos", "neg", "pos_scores", "neg_scores"}
    tevatron = first["tevatron"]
    assert tevatron.keys() == {"query_id", "query", "positive_passages", "negative_passages"}
    assert tevatron["negative_passages"][0] == {
        "docid": "p4", "title": "T", "text": "passage number 4", "score": 4.0,
    }  # fmt: skip


def test_rows_of_sentence_transformers_have_the_same_number_of_negatives(tmp_path, training):
    output = tmp_path / "triples.jsonl"
    counts = export(output, "sentence-transformers", training, 3)
    assert counts["left out with fewer than 3 negatives"] == 1
    assert read(output).keys() == {"query q0"}
    with pytest.raises(InputError, match="allowed: a smaller --negatives, or"):
        export(output, "sentence-transformers", training, 4)


def test_an_unknown_dialect(tmp_path, training):
    with pytest.raises(InputError, match="--triples is flag; allowed: sentence-transformers, "):
        export(tmp_path / "triples.jsonl", "flag", training, 3)
