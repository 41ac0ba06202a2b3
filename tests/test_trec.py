"""TREC files: what is written is read back the same, by us and by ir_measures; what cannot be written is refused."""

import ir_measures
import numpy as np
import pandas as pd
import pytest

from cdmae.errors import InputError
from cdmae.retrieval import trec
from cdmae.runs import Run

QUERIES, PASSAGES = ["q-1", "q2", "七"], [f"d{i}" for i in range(6)]
RUN = Run.of(
    [np.array([4, 0, 2], np.int32), np.array([], np.int32), np.array([1, 3], np.int32)],
    [np.array([1.5, 1 / 3, -2e-7], np.float32), np.array([], np.float32), np.array([3e8, 1.1e8], np.float32)],
)
QRELS = pd.DataFrame({"query": [0, 0, 2], "passage": [1, 4, 3], "grade": [0, 2, -1]}).astype(
    {"query": np.int32, "passage": np.int32, "grade": np.int16}
)


def test_runs_survive_the_round_trip(tmp_path):
    trec.write_run(tmp_path / "run", RUN, QUERIES, PASSAGES, "us")
    assert (tmp_path / "run").read_text().splitlines()[:2] == ["q-1 Q0 d4 1 1.5 us", "q-1 Q0 d0 2 0.333333343 us"]
    back = trec.read_run(tmp_path / "run", QUERIES, PASSAGES)
    for name in ("passages", "scores", "starts"):
        np.testing.assert_array_equal(getattr(back, name), getattr(RUN, name))


def test_ir_measures_reads_the_same_ranking(tmp_path):
    trec.write_run(tmp_path / "run", RUN, QUERIES, PASSAGES, "us")
    rows = list(ir_measures.read_trec_run(str(tmp_path / "run")))
    assert [(row.query_id, row.doc_id) for row in rows] == [
        ("q-1", "d4"), ("q-1", "d0"), ("q-1", "d2"), ("七", "d1"), ("七", "d3"),
    ]  # fmt: skip
    assert [np.float32(row.score) for row in rows] == RUN.scores.tolist()


def test_judgments_survive_the_round_trip(tmp_path):
    trec.write_qrels(tmp_path / "qrels", QRELS, QUERIES, PASSAGES)
    pd.testing.assert_frame_equal(trec.read_qrels(tmp_path / "qrels", QUERIES, PASSAGES), QRELS)
    found = [(row.query_id, row.doc_id, row.relevance) for row in ir_measures.read_trec_qrels(str(tmp_path / "qrels"))]
    assert found == [("q-1", "d1", 0), ("q-1", "d4", 2), ("七", "d3", -1)]


def test_ties_are_told_apart_by_as_little_as_possible():
    scores = np.array([2, 1, 1, 1, np.nextafter(np.float32(1), np.float32(0)), 0, 0, -1], np.float32)
    found = trec.distinct(scores)
    assert (np.diff(found) < 0).all() and found.dtype == np.float32
    np.testing.assert_allclose(found, scores, rtol=1e-6, atol=1e-40)
    same = np.array([3, 2, 1], np.float32)
    assert trec.distinct(same) is same


@pytest.mark.parametrize("odd", ["a b", "", "tab\t", "no\u00a0break", "line\n", "\x1c", "wide\u3000", "\x85", "a\x0bb"])
def test_ids_with_white_space_are_escaped_aloud(tmp_path, capsys, odd):
    queries, passages = ["q-1", odd, "%20"], ["a%20b", *PASSAGES[1:4], odd, "%"]
    trec.write_run(tmp_path / "run", RUN, queries, passages, "us")
    trec.write_qrels(tmp_path / "qrels", QRELS, queries, passages)
    said = capsys.readouterr().err.splitlines()
    assert said[:2] == [
        "1 query ids hold white space, which separates the columns: written as in addresses, a%20b",
        "1 passage ids hold white space, which separates the columns: written as in addresses, a%20b",
    ]
    assert all(len(line.split()) == 6 for line in (tmp_path / "run").read_text().splitlines())
    assert len(list(ir_measures.read_trec_run(str(tmp_path / "run")))) == len(RUN.passages)
    np.testing.assert_array_equal(trec.read_run(tmp_path / "run", queries, passages).passages, RUN.passages)
    pd.testing.assert_frame_equal(trec.read_qrels(tmp_path / "qrels", queries, passages), QRELS)


def test_escaped_ids_stay_distinct():
    odd = ["a b", "a%20b", "a%2520b", "", "%", "%25", "a\u00a0b"]
    assert len(set(trec.names(odd, "query"))) == len(odd)
    assert trec.names(odd[1:3], "query") == odd[1:3]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("q2 Q0 d1 1 0.5\n", "line 1 has 5 columns; allowed: query id, Q0, passage id, rank, score, system"),
        ("q2 Q0 d1 1 0.5 us\nq9 Q0 d1 1 0.5 us\n", "line 2: the collection has no id 'q9'"),
        ("q2 Q0 d9 1 0.5 us\n", "line 1: the collection has no id 'd9'"),
        ("q2 Q0 d1 1 0.5 us\n\nq2 Q0 d1 2 0.4 us\n", "line 3: passage d1 stands twice for query q2"),
        ("q2 Q0 d1 one 0.5 us\n", "rank and score are one and 0.5; allowed: numbers"),
    ],
)
def test_malformed_runs_are_refused_with_the_line(tmp_path, text, message):
    (tmp_path / "run").write_text(text)
    with pytest.raises(InputError, match=message):
        trec.read_run(tmp_path / "run", QUERIES, PASSAGES)


def test_runs_of_other_tools_are_ordered_by_score_then_rank(tmp_path):
    (tmp_path / "run").write_text("q2 Q0 d3 2 1.0 us\nq2 Q0 d5 3 9.0 us\nq2 Q0 d1 1 1.0 us\n")
    assert trec.read_run(tmp_path / "run", QUERIES, PASSAGES).passages.tolist() == [5, 1, 3]


def test_malformed_judgments_are_refused_with_the_line(tmp_path):
    (tmp_path / "qrels").write_text("q2 0 d1 relevant\n")
    with pytest.raises(InputError, match="line 1: the grade is relevant; allowed: a whole number"):
        trec.read_qrels(tmp_path / "qrels", QUERIES, PASSAGES)
    (tmp_path / "qrels").write_bytes(b"q2 0 d1 \xff\n")
    with pytest.raises(InputError, match="is not UTF-8 text"):
        trec.read_qrels(tmp_path / "qrels", QUERIES, PASSAGES)


def test_a_run_of_other_queries_is_refused(tmp_path):
    with pytest.raises(InputError, match="the run has 3 queries and the split 2"):
        trec.write_run(tmp_path / "run", RUN, QUERIES[:2], PASSAGES, "us")
