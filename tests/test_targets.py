"""Around a search: queries that are passages themselves do not find themselves."""

import numpy as np
import pandas as pd
import pyarrow as pa

from cdmae.collections.store import Collection, read_queries, write_collection
from cdmae.retrieval import targets
from cdmae.runs import Run, read_run


def collection(folder, source="beir"):
    ids = ["1", "2", "3", "arg"]
    passages = pa.table({"passage_id": ids, "title": ["T"] * 4, "text": ["one", "two", "three", "An  argument."]})
    queries = pd.DataFrame({"query_id": ["arg", "2", "9"], "text": ["An argument.", "what is two?", "nine"]})
    write_collection(folder, Collection(passages, {"test": queries}, {}, {"source": source}))
    return folder


def test_a_passage_with_the_id_and_the_text_of_the_query_is_its_own(tmp_path):
    queries = read_queries(collection(tmp_path), "test")
    assert targets.own_passages(tmp_path, queries).tolist() == [3, -1, -1]
    assert targets.own_passages(collection(tmp_path / "b", "msmarco"), queries).tolist() == [-1, -1, -1]


def test_runs_are_searched_one_deeper_and_cut_and_empty_ones_stay_empty(tmp_path):
    asked = []

    def find(number, texts, depth):
        asked.append((number, texts, depth))
        rows = np.array([3, 0, 1, 2], np.int32)[:depth]
        scores = np.arange(len(rows), 0, -1, dtype=np.float32)
        return Run.of([rows, rows, rows[:0]], [scores, scores, scores[:0]])

    collection(tmp_path)
    targets.search([tmp_path], ["test"], [tmp_path / "run.parquet"], 2, find)
    assert asked == [(0, [["An argument.", "what is two?", "nine"]], 3)]
    run = read_run(tmp_path / "run.parquet")
    assert [run.ranked(query)[0].tolist() for query in range(3)] == [[0, 1], [3, 0], []]
    assert run.ranked(0)[1].tolist() == [2, 1]
    empty = Run.of([np.empty(0, np.int32)] * 2, [np.empty(0, np.float32)] * 2)
    assert targets.without(empty, np.array([[0, 1]]), 5).starts.tolist() == [0, 0, 0]


def test_the_splits_of_a_collection_are_searched_together(tmp_path):
    """Targets in any order; of the splits only one has queries that are passages, and both runs have their depth."""
    passages = pa.table({"passage_id": ["a", "b", "c"], "title": [""] * 3, "text": ["one", "two", "three"]})
    own = {
        "dev": pd.DataFrame({"query_id": ["a"], "text": ["one"]}),
        "test": pd.DataFrame({"query_id": ["q"], "text": ["?"]}),
    }
    for name in ("first", "second"):
        write_collection(tmp_path / name, Collection(passages, own, {}, {"source": "beir"}))
    asked = []

    def find(number, texts, depth):
        asked.append((number, texts, depth))
        rows = np.array([0, 1, 2], np.int32)[:depth] if number else np.array([2, 1, 0], np.int32)[:depth]
        return Run.of([rows] * len(texts), [-np.arange(len(rows), dtype=np.float32)] * len(texts))

    order = [("first", "test"), ("second", "dev"), ("first", "dev")]
    outputs = [tmp_path / f"{name}.{split}.parquet" for name, split in order]
    targets.search([tmp_path / name for name, _ in order], [split for _, split in order], outputs, 2, find)
    assert asked == [(0, [["?"], ["one"]], 3), (1, [["one"]], 3)]
    assert [read_run(path).passages.tolist() for path in outputs] == [[2, 1], [1, 2], [2, 1]]


def test_what_the_judgments_exclude_is_left_out_of_the_run_of_its_query(tmp_path, capsys):
    """As BRIGHT's: a grade of -100; the other queries, and the other split, keep the passage."""
    passages = pa.table({"passage_id": list("abcd"), "title": [""] * 4, "text": ["one", "two", "three", "four"]})
    queries = pd.DataFrame({"query_id": ["q0", "q1"], "text": ["?", "!"]})
    rows = [("q0", "b", 1), ("q0", "a", -100), ("q0", "c", -100), ("q1", "d", -100), ("q1", None, -100)]
    judged = {"test": pd.DataFrame(rows, columns=["query_id", "passage_id", "grade"])}
    judged["dev"] = judged["test"].iloc[:1]
    write_collection(tmp_path, Collection(passages, dict.fromkeys(judged, queries), judged, {"source": "beir"}))

    def find(number, texts, depth):
        rows = np.arange(4, dtype=np.int32)[:depth]
        return Run.of([rows] * 4, [-np.arange(len(rows), dtype=np.float32)] * 4)

    targets.search([tmp_path] * 2, ["test", "dev"], [tmp_path / "t.parquet", tmp_path / "d.parquet"], 2, find)
    found = [read_run(tmp_path / name) for name in ("t.parquet", "d.parquet")]
    assert [[run.ranked(query)[0].tolist() for query in range(2)] for run in found] == [[[1, 3], [0, 1]], [[0, 1]] * 2]
    assert "4 judgments of test exclude a passage" in capsys.readouterr().err
