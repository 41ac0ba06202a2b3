"""Training queries for sentence-transformers are the training's groups."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from cdmae.collections import pair_rows
from cdmae.collections.store import Collection, write_collection
from cdmae.errors import InputError
from cdmae.exporting.triples import Training, export
from cdmae.finetuning.groups import Drawing
from cdmae.runs import Run, write_run

TEXTS = [f"passage number {row}" for row in range(8)]
POSITIVES = {"q0": [0, 1], "q1": [2], "q2": [3]}
MINED = {"q0": [4, 0, 5, 6], "q1": [7, 2, 0], "q2": [3]}  # q2 has no negative


@pytest.fixture
def training(tmp_path):
    """Three training queries with a run over them, in which relevant passages occur, too; the
    teacher scores passage p of query q by 10 q + p.
    """
    ids = [f"p{row}" for row in range(8)]
    passages = pa.table({"passage_id": ids, "title": ["T"] * 8, "text": TEXTS})
    asked = [(name, f"query {name}") for name in POSITIVES]
    judged = [(name, f"p{row}", 1) for name, found in POSITIVES.items() for row in found]
    queries = pd.DataFrame(asked, columns=["query_id", "text"])
    qrels = pd.DataFrame(judged, columns=["query_id", "passage_id", "grade"])
    collection = Collection(passages, {"train": queries}, {"train": qrels}, {})
    write_collection(tmp_path / "collection", collection)
    ranked = [np.array(found, np.int32) for found in MINED.values()]
    scores = [np.arange(len(found), 0, -1, dtype=np.float32) for found in MINED.values()]
    write_run(tmp_path / "negatives.parquet", Run.of(ranked, scores))
    taught = [10 * query + np.arange(8, dtype=np.float32) for query in range(3)]
    write_run(tmp_path / "teacher.parquet", Run.of([np.arange(8, dtype=np.int32)] * 3, taught))
    drawing = Drawing("train", depth=10, group=2, random_negatives=0, seed=0)
    return Training(tmp_path / "collection", tmp_path / "negatives.parquet", drawing)


def read(path):
    """The pairs of a file: for each query, its positives, its negatives and all scores by text."""
    found = {}
    for _, pair in pair_rows.read(path):
        positives, negatives, scores = found.setdefault(pair.query, (set(), [], {}))
        positives |= {passage.text.removeprefix("T ") for passage in pair.positives}
        negatives[:] = [passage.text.removeprefix("T ") for passage in pair.negatives]
        listed = [passage.text.removeprefix("T ") for passage in pair.positives] + negatives
        scores.update(zip(listed, pair.scores, strict=bool(pair.scores)))
    return found


def test_rows_are_read_back_as_the_groups_with_the_same_number_of_negatives(tmp_path, training):
    output = tmp_path / "triples.jsonl"
    assert export(output, training, 2) == (3, 1)
    assert read(output) == {
        "query q0": ({TEXTS[0], TEXTS[1]}, [TEXTS[4], TEXTS[5]], {}),
        "query q1": ({TEXTS[2]}, [TEXTS[7], TEXTS[0]], {}),
    }
    assert export(output, training, 3) == (2, 2)
    assert read(output).keys() == {"query q0"}
    with pytest.raises(InputError, match="expected a smaller --negatives"):
        export(output, training, 4)


def test_a_teacher_scores_every_passage_in_the_columns_of_the_library(tmp_path, training):
    output = tmp_path / "triples.jsonl"
    export(output, replace(training, teacher=tmp_path / "teacher.parquet"), 2)
    assert json.loads(output.read_text().splitlines()[0]) == {
        "anchor": "query q0", "positive": "T passage number 0", "negative_1": "T passage number 4",
        "negative_2": "T passage number 5", "label": [0.0, 4.0, 5.0],
    }  # fmt: skip
    assert read(output)["query q1"][2] == {TEXTS[2]: 12, TEXTS[7]: 17, TEXTS[0]: 10}
