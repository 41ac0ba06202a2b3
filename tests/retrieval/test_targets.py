"""Around a search: queries that are passages themselves do not find themselves."""

import numpy as np
from made_up import run_of
from small_collections import stored

from cdmae.collections.store import read_queries
from cdmae.retrieval import targets
from cdmae.runs import Target, read_run


def lists_of(path):
    run = read_run(path)
    return [run.ranked(query)[0].tolist() for query in range(len(run))]


ARGUMENTS = [
    ("1", "T", "one"),
    ("2", "T", "two"),
    ("3", "T", "three"),
    ("arg", "T", "An  argument."),
]
ASKED = {"arg": "An argument.", "2": "what is two?", "9": "nine"}


def test_a_passage_with_the_id_and_the_text_of_the_query_is_its_own(tmp_path):
    folder = stored(tmp_path / "c", ARGUMENTS, {"test": ASKED})
    assert targets.own_passages(folder, read_queries(folder, "test")).tolist() == [3, -1, -1]


def test_runs_are_searched_one_deeper_and_cut_and_empty_ones_stay_empty(tmp_path):
    asked = []

    def find(target, texts, depth):
        asked.append((target, texts, depth))
        return run_of([3, 0, 1, 2][:depth], [3, 0, 1, 2][:depth], [])

    stored(tmp_path, ARGUMENTS, {"test": ASKED})
    target = Target("c", "test", tmp_path, output=tmp_path / "run.parquet")
    targets.search([target], 2, find)
    assert asked == [(target, list(ASKED.values()), 3)]
    assert lists_of(tmp_path / "run.parquet") == [[0, 1], [3, 0], []]
    assert read_run(tmp_path / "run.parquet").ranked(0)[1].tolist() == [2, 1]
    assert targets.without(run_of([], []), np.array([[0, 1]]), 5).starts.tolist() == [0, 0, 0]


def test_what_the_judgments_exclude_is_left_out_of_the_run_of_its_query(tmp_path, capsys):
    """As BRIGHT's: a grade of -100; the other queries, and the other split, keep the passage."""
    rows = [
        ("q0", "b", 1),
        ("q0", "a", -100),
        ("q0", "c", -100),
        ("q1", "d", -100),
        ("q1", None, -100),
    ]
    judged = {"test": rows, "dev": rows[:1]}
    passages = [(name, "T", f"text {name}") for name in "abcd"]
    stored(tmp_path, passages, dict.fromkeys(judged, {"q0": "?", "q1": "!"}), judged)
    outputs = [tmp_path / "t.parquet", tmp_path / "d.parquet"]

    def find(target, texts, depth):
        return run_of(*[range(4)[:depth]] * len(texts))

    splits = zip(("test", "dev"), outputs, strict=True)
    both = [Target("c", split, tmp_path, output=output) for split, output in splits]
    targets.search(both, 2, find)
    assert [lists_of(path) for path in outputs] == [[[1, 3], [0, 1]], [[0, 1]] * 2]
    assert "4 judgments of test exclude a passage" in capsys.readouterr().err
