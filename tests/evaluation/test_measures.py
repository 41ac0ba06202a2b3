"""Measures: examples by hand, and the exported run's on runs with ties, gaps and odd grades."""

import math

import ir_measures
import numpy as np
import pandas as pd
import pytest
from made_up import run_of
from small_collections import stored

from cdmae.collections.store import read_qrels
from cdmae.errors import InputError
from cdmae.evaluation import measures
from cdmae.evaluation.measures import measure
from cdmae.retrieval import trec
from cdmae.runs import Run, write_run

NAMES = [
    f"{name}{rel}@{k}"
    for name in ("RR", "R", "P", "AP")
    for rel in ("", "(rel=2)")
    for k in (1, 10)
]
NAMES += ["Success@3", "nDCG@10", "nDCG", "RR", "AP(rel=2)", "Rprec", "Bpref", "Judged@3"]


def qrels_of(*rows):
    return pd.DataFrame(rows, columns=["query", "passage", "grade"]).astype(np.int32)


def values(run, qrels, name):
    return measure(run, qrels, [f"q{i}" for i in range(len(run))], [name])["value"].tolist()


def test_nothing_may_be_judged_or_found():
    assert measure(run_of([1], [2]), qrels_of(), ["a", "b"], ["R@10"]).empty
    assert values(run_of([], []), qrels_of((0, 3, 1)), "R@10") == [0]


def test_all_judged_passages_that_the_collection_lacks_count_in_any_order():
    """They share the row after the last; excluded ones have a grade of -100."""
    qrels = qrels_of(
        (1, 3, 1), (0, 9, 2), (0, 10, 1), (0, 10, 1), (0, 10, 3), (0, 2, -100), (1, 10, 1)
    )
    run = run_of([4, 7, 1, 9], [3, 5])
    assert values(run, qrels, "R@10") == pytest.approx([1 / 4, 1 / 2])
    ideal = 3 + 2 / math.log2(3) + 1 / math.log2(4) + 1 / math.log2(5)
    assert values(run, qrels, "nDCG@10")[0] == pytest.approx(2 / math.log2(5) / ideal)
    excluded = qrels_of((0, 3, -100), (0, 5, 1))
    assert values(run_of([3, 5]), excluded, "Bpref") == [0], "judged as irrelevant"


def test_measures_are_those_of_the_exported_run(tmp_path, monkeypatch):
    """On runs with ties, gaps, odd ids and grades; trec_eval would order ties by passage id."""
    monkeypatch.setattr(measures, "AT_ONCE", 50)  # two queries of 24 hits
    random = np.random.default_rng(3)
    query_ids = [f"q {number}" for number in range(40)]
    passage_ids = [f"p %{row}" for row in range(30)]
    passages = []
    scores = []
    judged = []
    for query in range(len(query_ids)):
        rows = random.permutation(30)[: random.integers(0, 25)].astype(np.int32)
        score = random.integers(0, random.choice([1, 2, 100]), len(rows)).astype(np.float32)
        order = np.lexsort((rows, -score))
        passages.append(rows[order])
        scores.append(score[order])
        for row in random.permutation(30)[: random.integers(0, 12)].tolist():
            judged.append((query_ids[query], passage_ids[row], int(random.integers(-1, 4))))
    judged += [(judged[0][0], None, grade) for grade in (1, 2)]  # the collection lacks them
    run = Run.of(passages, scores)
    write_run(tmp_path / "docs.dev.parquet", run)
    rows = [(name, "", "text") for name in passage_ids]
    asked = {"dev": dict.fromkeys(query_ids, "text")}
    folder = stored(tmp_path / "docs", rows, asked, {"dev": judged})
    trec.export(tmp_path, folder, "docs.dev", "us", tmp_path / "run")
    trec.export_qrels(folder, "docs.dev", tmp_path / "qrels")
    named = list(ir_measures.read_trec_qrels(f"{tmp_path}/qrels"))
    parsed = [ir_measures.parse_measure(name) for name in NAMES]
    theirs = ir_measures.iter_calc(parsed, named, ir_measures.read_trec_run(f"{tmp_path}/run"))
    expected = {(metric.query_id, str(metric.measure)): metric.value for metric in theirs}
    frame = measure(run, read_qrels(folder, "dev"), query_ids, NAMES)
    assert len(frame) == len(expected)
    for query_id, name, value in frame.itertuples(index=False):
        of = query_id.replace(" ", "%20"), name
        assert value == pytest.approx(expected[of], abs=1e-12), of


@pytest.mark.parametrize(
    ("grade", "names", "lowest"),
    [(0, ["RR@10", "nDCG@10"], 1), (-100, ["nDCG@10"], 1), (1, ["RR(rel=2)@10", "R(rel=3)@5"], 2)],
)
def test_judgments_without_a_relevant_passage_are_refused(grade, names, lowest):
    sentence = f"docs, split dev, have no relevant passage: their highest grade is {grade}"
    with pytest.raises(InputError, match=f"^{sentence}; .* a grade of {lowest} or more"):
        measure(run_of([0, 1]), qrels_of((0, 1, grade)), ["q"], names, "docs, split dev,")
