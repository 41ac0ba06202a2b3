"""TREC files: ir_measures reads the ranking that was written; what cannot be written is refused."""

import ir_measures
import numpy as np
import pytest

from cdmae.errors import InputError
from cdmae.retrieval import trec
from cdmae.runs import Run

QUERIES, PASSAGES = ["q-1", "q2", "七"], [f"d{i}" for i in range(6)]
RUN = Run.of(
    [np.array([4, 0, 2], np.int32), np.array([], np.int32), np.array([1, 3], np.int32)],
    [np.array([1.5, 1 / 3, -2e-7], np.float32), np.array([], np.float32), np.array([3e8, 1.1e8], np.float32)],
)


def test_ir_measures_reads_the_same_ranking(tmp_path):
    trec.write_run(tmp_path / "run", RUN, QUERIES, PASSAGES, "us")
    assert (tmp_path / "run").read_text().splitlines()[:2] == ["q-1 Q0 d4 1 1.5 us", "q-1 Q0 d0 2 0.333333343 us"]
    rows = list(ir_measures.read_trec_run(str(tmp_path / "run")))
    assert [(row.query_id, row.doc_id) for row in rows] == [
        ("q-1", "d4"), ("q-1", "d0"), ("q-1", "d2"), ("七", "d1"), ("七", "d3"),
    ]  # fmt: skip
    assert [np.float32(row.score) for row in rows] == RUN.scores.tolist()


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
    said = capsys.readouterr().err.splitlines()
    assert said == [
        "1 query ids hold white space, which separates the columns: written as in addresses, a%20b",
        "1 passage ids hold white space, which separates the columns: written as in addresses, a%20b",
    ]
    assert all(len(line.split()) == 6 for line in (tmp_path / "run").read_text().splitlines())
    rows = list(ir_measures.read_trec_run(str(tmp_path / "run")))
    written = trec.names(passages, "passage")
    assert [row.doc_id for row in rows] == [written[passage] for passage in RUN.passages]


def test_escaped_ids_stay_distinct():
    odd = ["a b", "a%20b", "a%2520b", "", "%", "%25", "a\u00a0b"]
    assert len(set(trec.names(odd, "query"))) == len(odd)
    assert trec.names(odd[1:3], "query") == odd[1:3]


def test_a_run_of_other_queries_is_refused(tmp_path):
    with pytest.raises(InputError, match="the run has 3 queries and the split 2"):
        trec.write_run(tmp_path / "run", RUN, QUERIES[:2], PASSAGES, "us")
