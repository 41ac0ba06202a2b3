"""Around a search: queries that are passages themselves do not find themselves."""

import numpy as np
import pandas as pd
import pyarrow as pa

from cdmae.collections.store import Collection, read_queries, write_collection
from cdmae.retrieval import targets
from cdmae.runs import Run, read_run


def write(folder, passages, queries, judged=None, source="beir"):
    """A collection of passages by id, and queries by split and id."""
    table = pa.table(
        {
            "passage_id": list(passages),
            "title": ["T"] * len(passages),
            "text": list(passages.values()),
        }
    )
    frames = {
        split: pd.DataFrame(texts.items(), columns=["query_id", "text"])
        for split, texts in queries.items()
    }
    write_collection(folder, Collection(table, frames, judged or {}, {"source": source}))
    return folder


def a_run(*lists):
    """A run of lists of rows, their scores falling to 1."""
    rows = [np.array(ranked, np.int32) for ranked in lists]
    return Run.of(rows, [np.arange(len(ranked), 0, -1, dtype=np.float32) for ranked in lists])


def lists_of(path):
    run = read_run(path)
    return [run.ranked(query)[0].tolist() for query in range(len(run))]


ARGUMENTS = {"1": "one", "2": "two", "3": "three", "arg": "An  argument."}
ASKED = {"arg": "An argument.", "2": "what is two?", "9": "nine"}


def test_a_passage_with_the_id_and_the_text_of_the_query_is_its_own(tmp_path):
    folder = write(tmp_path / "c", ARGUMENTS, {"test": ASKED})
    assert targets.own_passages(folder, read_queries(folder, "test")).tolist() == [3, -1, -1]


def test_runs_are_searched_one_deeper_and_cut_and_empty_ones_stay_empty(tmp_path):
    asked = []

    def find(number, texts, depth):
        asked.append((number, texts, depth))
        return a_run([3, 0, 1, 2][:depth], [3, 0, 1, 2][:depth], [])

    write(tmp_path, ARGUMENTS, {"test": ASKED})
    targets.search([tmp_path], ["test"], [tmp_path / "run.parquet"], 2, find)
    assert asked == [(0, list(ASKED.values()), 3)]
    assert lists_of(tmp_path / "run.parquet") == [[0, 1], [3, 0], []]
    assert read_run(tmp_path / "run.parquet").ranked(0)[1].tolist() == [2, 1]
    assert targets.without(a_run([], []), np.array([[0, 1]]), 5).starts.tolist() == [0, 0, 0]


def test_what_the_judgments_exclude_is_left_out_of_the_run_of_its_query(tmp_path, capsys):
    """As BRIGHT's: a grade of -100; the other queries, and the other split, keep the passage."""
    rows = [
        ("q0", "b", 1),
        ("q0", "a", -100),
        ("q0", "c", -100),
        ("q1", "d", -100),
        ("q1", None, -100),
    ]
    judged = {"test": pd.DataFrame(rows, columns=["query_id", "passage_id", "grade"])}
    judged["dev"] = judged["test"].iloc[:1]
    passages = dict(zip("abcd", ("one", "two", "three", "four"), strict=True))
    write(tmp_path, passages, dict.fromkeys(judged, {"q0": "?", "q1": "!"}), judged)
    outputs = [tmp_path / "t.parquet", tmp_path / "d.parquet"]

    def find(number, texts, depth):
        return a_run(*[range(4)[:depth]] * len(texts))

    targets.search([tmp_path] * 2, ["test", "dev"], outputs, 2, find)
    assert [lists_of(path) for path in outputs] == [[[1, 3], [0, 1]], [[0, 1]] * 2]
    assert "4 judgments of test exclude a passage" in capsys.readouterr().err
