"""TREC files: ir_measures reads the ranking that was written; what cannot be written is refused."""

import gzip

import ir_measures
import numpy as np
import pyarrow as pa
import pytest

from cdmae.errors import InputError
from cdmae.retrieval import trec
from cdmae.runs import Run

QUERIES, PASSAGES = ["q-1", "q2", "七"], [f"d{i}" for i in range(6)]
RUN = Run.of(
    [np.array([4, 0, 2], np.int32), np.array([], np.int32), np.array([1, 3], np.int32)],
    [
        np.array([1.5, 1 / 3, -2e-7], np.float32),
        np.array([], np.float32),
        np.array([3e8, 1.1e8], np.float32),
    ],
)


def test_ir_measures_reads_the_same_ranking_and_a_run_of_other_queries_is_refused(tmp_path):
    trec.write_run(tmp_path / "run", RUN, QUERIES, PASSAGES, "us")
    assert (tmp_path / "run").read_text().splitlines()[:2] == [
        "q-1 Q0 d4 1 1.5 us",
        "q-1 Q0 d0 2 0.333333343 us",
    ]
    rows = list(ir_measures.read_trec_run(str(tmp_path / "run")))
    expected = [("q-1", "d4"), ("q-1", "d0"), ("q-1", "d2"), ("七", "d1"), ("七", "d3")]
    assert [(row.query_id, row.doc_id) for row in rows] == expected
    assert [np.float32(row.score) for row in rows] == RUN.scores.tolist()
    with pytest.raises(InputError, match="the run has 3 queries, but the split has 2"):
        trec.write_run(tmp_path / "run", RUN, QUERIES[:2], PASSAGES, "us")


def test_ties_are_told_apart_by_as_little_as_possible():
    scores = np.array(
        [2, 1, 1, 1, np.nextafter(np.float32(1), np.float32(0)), 0, 0, -1], np.float32
    )
    found = trec.distinct(scores)
    assert (np.diff(found) < 0).all() and found.dtype == np.float32
    np.testing.assert_allclose(found, scores, rtol=1e-6, atol=1e-40)
    same = np.array([3, 2, 1], np.float32)
    assert trec.distinct(same) is same


@pytest.mark.parametrize("odd", ["a b", "", "tab\t", "no\u00a0break", "\x1c", "\x85"])
def test_ids_with_white_space_are_escaped_aloud(tmp_path, capsys, odd):
    queries, passages = ["q-1", odd, "%20"], ["a%20b", *PASSAGES[1:4], odd, "%"]
    trec.write_run(tmp_path / "run", RUN, queries, passages, "us")
    said = capsys.readouterr().err.splitlines()
    assert [line.split()[1] for line in said] == ["query", "passage"]
    assert all(len(line.split()) == 6 for line in (tmp_path / "run").read_text().splitlines())
    rows = list(ir_measures.read_trec_run(str(tmp_path / "run")))
    written = trec.names(passages, "passage")
    assert [row.doc_id for row in rows] == [written[passage] for passage in RUN.passages]


LINES = "q2 Q0 d1 1 2.5 x\nq2\tQ0 d0 2 2.5 x\nq2 Q0 d5 9 3 x\n七 Q0 d3 1 -1e-3 x\n"


def test_a_run_is_read_by_score_then_rank_and_our_own_as_it_was_written(tmp_path, capsys):
    (tmp_path / "run").write_text(LINES)
    run = trec.read_run(tmp_path / "run", QUERIES, PASSAGES, depth=2)
    assert [run.ranked(row)[0].tolist() for row in range(3)] == [[], [5, 1], [3]]
    assert run.ranked(1)[1].tolist() == [3, 2.5]
    assert "2 of 3 queries have fewer than 2 passages, 1 have none" in capsys.readouterr().err
    passages = ["a b", *PASSAGES[1:]]
    trec.write_run(tmp_path / "run", RUN, QUERIES, passages, "us")
    again = trec.read_run(tmp_path / "run", QUERIES, pa.array(passages), depth=3)
    assert again.passages.tolist() == RUN.passages.tolist()
    assert again.scores.tolist() == RUN.scores.tolist()


RISING = LINES.replace("2 2.5", "2 2.7")  # of q2, the only query with several passages


def test_a_run_of_distances_is_refused(tmp_path):
    (tmp_path / "run").write_text(RISING)
    with pytest.raises(InputError, match="scores rise with the rank"):
        trec.read_run(tmp_path / "run", QUERIES, PASSAGES, depth=2)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("q9 Q0 d1 1 1 x", "line 5: query_id is q9; expected ids of the split"),
        ("q2 Q0 e1 1 1 x", "line 5: passage_id is e1; expected ids of the collection"),
        ("q2 Q0 d1 1 1 x", "line 5: passage_id is d1; expected each passage of a query once"),
        ("q2 Q0 d2 1 high x", "line 5: score is high; expected a number"),
        ("q2 Q0 d2 1 -1e39 x", "line 5: score is -1e39; expected a number of float32"),
        ("q2 d2 1 1 x", "line 5: expected the 6 columns"),
    ],
)
def test_a_line_that_is_wrong_is_named(tmp_path, line, said):
    (tmp_path / "run").write_text(f"{LINES}{line}\nq-1 Q0 d0 1 1 x\n")
    with pytest.raises(InputError) as caught:
        trec.read_run(tmp_path / "run", QUERIES, PASSAGES, depth=2)
    assert said in str(caught.value)
    assert str(tmp_path / "run") in str(caught.value)


def test_three_columns_are_ranks_as_in_ms_marco_also_compressed(tmp_path):
    with gzip.open(tmp_path / "run.gz", "wt") as file:
        file.write("q2\td1\t2\nq2\td0\t1\n")
    run = trec.read_run(tmp_path / "run.gz", QUERIES, PASSAGES, 9)
    assert run.ranked(1)[0].tolist() == [0, 1] and run.scores.tolist() == [1, 0.5]
