"""What the report reads from runs, against loops over plain lists."""

import dataclasses
import itertools
import re

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import synthetic_run
from planned import plan

from cdmae.collections.store import Collection, write_collection
from cdmae.files import read_json, write_json
from cdmae.report import facts as facts_module
from cdmae.report.page import write
from cdmae.report.sections import alarms, insight
from cdmae.runs import Run, write_run

QUERIES, PASSAGES, DEPTH = 30, 60, 20
SCORES = np.arange(PASSAGES, 0, -1, dtype=np.float32)
RELEVANT = {query: [query, (query * 7 + 1) % PASSAGES] for query in range(QUERIES)}


def a_run(seed, queries=QUERIES, depth=DEPTH):
    """Random rankings, some shorter than others."""
    rng = np.random.default_rng(seed)
    ranked = [
        rng.permutation(PASSAGES)[: depth - query % 3].astype(np.int32) for query in range(queries)
    ]
    return Run.of(ranked, [SCORES[: len(row)] for row in ranked])


def keys_of(relevant):
    return np.array(
        [
            query * insight._WIDTH + passage
            for query, passages in relevant.items()
            for passage in passages
        ]
    )


def negatives_of(run, query, depth):
    """The best `depth` of a query without its relevant passages."""
    return [
        passage
        for passage in run.ranked(query)[0][:depth].tolist()
        if passage not in RELEVANT[query]
    ]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Facts of a run with runs, negatives and a teacher, and the page made of them."""
    folder = tmp_path_factory.mktemp("insight")
    config = synthetic_run.config()
    for stage in config["stages"].values():
        stage["depth"] = DEPTH
    path = synthetic_run.make(folder, config, targets={"pydocs": {"dev": QUERIES}}, parts=())
    files = read_json(path)
    rows = range(QUERIES)
    text = pa.table({
        "passage_id": [f"p{row}" for row in range(PASSAGES)], "title": [""] * PASSAGES,
        "text": [f"passage number {row}" for row in range(PASSAGES)],
    })  # fmt: skip
    qrels = pd.DataFrame(
        [
            (f"q{query}", f"p{passage}", 1)
            for query, passages in RELEVANT.items()
            for passage in passages
        ],
        columns=["query_id", "passage_id", "grade"],
    )
    qrels.loc[qrels["query_id"] == "q0", "passage_id"] = None  # not in the collection
    asked = pd.DataFrame(
        {"query_id": [f"q{row}" for row in rows], "text": [f"question <{row}>" for row in rows]}
    )
    both = {"train": asked, "dev": asked}
    write_collection(folder / "docs", Collection(text, both, dict.fromkeys(both, qrels), {}))
    files["collections"] = {"pydocs": str(folder / "docs")}
    files |= {
        "mined": {},
        "teachers": {"cdmae-stage3": str(folder / "teacher.parquet")},
        "runs": {},
    }
    files["deciding"] = ["pydocs", "dev"]
    for seed, stage in enumerate((1, 2, 3)):
        files["mined"][f"cdmae-stage{stage}"] = str(folder / f"mined-{stage}.parquet")
        write_run(folder / f"mined-{stage}.parquet", a_run(seed))
    write_run(folder / "teacher.parquet", a_run(9, depth=PASSAGES - 5))
    for seed, name in enumerate(("mae-stage1", "cdmae-stage1")):
        files["runs"][name] = str(folder / f"{name}.parquet")
        write_run(folder / f"{name}.parquet", a_run(20 + seed))
    write_json(path, files)
    return facts_module.read(path)


def test_overlap_is_the_mean_jaccard_index_of_the_lists_without_judged_passages():
    first, second = a_run(1), a_run(2)
    negatives_of_both = [insight.lists(run, keys_of(RELEVANT), DEPTH) for run in (first, second)]
    for depth in (1, 5, DEPTH):
        values = []
        for query in range(QUERIES):
            a, b = (set(negatives_of(run, query, DEPTH)[:depth]) for run in (first, second))
            values.append(len(a & b) / len(a | b))
        assert insight.jaccard(*negatives_of_both, depth, QUERIES) == pytest.approx(np.mean(values))
    assert insight.jaccard(negatives_of_both[0], negatives_of_both[0], 5, QUERIES) == 1


def test_long_runs_are_sampled_evenly():
    assert insight.evenly(10, 4).tolist() == [0, 3, 6, 9]
    listed = insight.lists(a_run(1), keys_of(RELEVANT), 5)
    for row in range(QUERIES):
        mine = listed[listed["query"] == row]
        assert mine["passage"].tolist() == negatives_of(a_run(1), row, 5)
        assert mine["rank"].tolist() == list(range(1, len(mine) + 1))


def test_every_pair_of_stages_is_compared_down_to_the_shallower(run):
    depths = (
        insight.overlaps(run).groupby(["negatives of", "and of"], sort=False)["best K"].agg(list)
    )
    names = ("bm25", "cdmae-stage1", "cdmae-stage2")
    assert depths.index.tolist() == list(itertools.combinations(names, 2))
    assert depths.iloc[0] == [1, 2, 5, 10, DEPTH]


def test_the_audit_counts_negatives_above_the_best_judged_passage_by_rank():
    mined, teacher = a_run(3), a_run(9, depth=PASSAGES - 5)
    counted = {}
    for query in range(QUERIES):
        scores = dict(zip(*(column.tolist() for column in teacher.ranked(query)), strict=True))
        best = max(
            (scores[passage] for passage in RELEVANT[query] if passage in scores), default=None
        )
        if best is None:
            continue
        ranks = {
            passage: rank + 1 for rank, passage in enumerate(negatives_of(mined, query, DEPTH))
        }
        for passage, value in scores.items():
            if passage not in RELEVANT[query]:
                high = next((end for end in insight.RANKS if ranks.get(passage, 0) <= end), 0)
                counted.setdefault(high if passage in ranks else 0, []).append(value > best)
    lists = insight.lists(mined, keys_of(RELEVANT), DEPTH)
    buckets = insight.above_positive(teacher, lists, keys_of(RELEVANT))
    assert buckets["negatives"].tolist() == [
        "rank 1 to 5",
        "rank 6 to 10",
        "rank 11 to 20",
        "random negatives",
    ]
    for bucket, high in zip(buckets.itertuples(), (5, 10, 20, 0), strict=True):
        assert bucket.scored == len(counted[high])
        assert bucket.above == pytest.approx(np.mean(counted[high]))


@pytest.mark.parametrize(("random_first", "alarm"), [(True, True), (False, False)])
def test_a_teacher_that_prefers_random_negatives_to_mined_ones_is_an_alarm(
    run, tmp_path, random_first, alarm
):
    """It scores the judged passages, the best mined ones and passages that are not mined."""
    ranked = []
    for query in range(QUERIES):
        mined = negatives_of(a_run(2), query, DEPTH)
        others = [row for row in range(PASSAGES) if row not in {*mined, *RELEVANT[query]}][:4]
        between = [*RELEVANT[query]]
        order = [*others, *between, *mined] if random_first else [*mined, *between, *others]
        ranked.append(np.array(order))
    write_run(tmp_path / "teacher.parquet", Run.of(ranked, [SCORES[: len(r)] for r in ranked]))
    paths = run.paths | {"teachers": {"cdmae-stage3": str(tmp_path / "teacher.parquet")}}
    taught = dataclasses.replace(run, paths=paths)
    shares = insight.audit(taught)["cdmae-stage3"]
    assert (shares.random, shares.mined) == ((1, 0) if random_first else (0, 1))
    assert bool(alarms.misled(taught)) == alarm
    words = "hardly ever right answers"
    assert (words in str(insight.negatives(taught).text)) == alarm
    if alarm:
        assert alarms.misled(taught)[0].name == "cdmae-reranker"


def test_ranks_of_the_first_relevant_passage_by_whose_ratio_queries_are_chosen():
    run = a_run(5)
    ranks = insight.first_ranks(run, keys_of(RELEVANT))
    for query in range(QUERIES):
        places = [
            rank + 1
            for rank, passage in enumerate(run.ranked(query)[0].tolist())
            if passage in RELEVANT[query]
        ]
        assert ranks[query] == (places[0] if places else 0)
    before, after = [9, 1, 0, 4, 3, 0, 0], [3, 1, 1, 8, 3, 0, 7]
    rows = insight.select(np.array([before, after]), np.arange(7))
    assert rows == {"improved": [2, 0, 6], "worsened": [3], "hardest": [5]}


def test_cases_name_what_stood_first(run):
    assert insight.compared(run) == ("mae-stage1", "cdmae-stage1")
    before, after = a_run(20), a_run(21)
    for case in insight.cases(run).itertuples():
        assert case.query != "question <0>"  # its relevant passage cannot be shown
        query = int(re.search(r"\d+", case.query)[0])
        assert case.first_before == f"passage number {before.ranked(query)[0][0]}"
        assert case.first_after == f"passage number {after.ranked(query)[0][0]}"
        assert case.relevant == f"passage number {min(RELEVANT[query])}"


def test_the_sections_show_them_folded_and_escaped(run, tmp_path):
    section = insight.negatives(run)
    assert [figure.name for figure in section.figures] == ["negatives-overlap", "negatives-audit"]
    assert str(section.text).count("<details>") == 1
    body = str(insight.queries(run).text)
    assert body.count("<details>") == 3 and "question &lt;" in body and "question <" not in body
    write(run, tmp_path / "report")
    text = (tmp_path / "report" / "index.html").read_text()
    places = [
        text.index(f'<section id="{name}"')
        for name in ("answer", "results", "negatives", "queries")
    ]
    assert places == sorted(places)


def test_a_report_declares_the_runs_it_reads_and_those_it_lacks_leave_no_section(tmp_path, values):
    run = facts_module.read(synthetic_run.make(tmp_path, targets={"pydocs": {"dev": 10}}, parts=()))
    assert insight.negatives(run) is None and insight.queries(run) is None
    inputs = plan(values, "report")["report", ""].inputs
    assert inputs["mined"] == ["out/runs/bm25/docs.train", "out/runs/one/docs.train"]
    assert inputs["teachers"] == ["out/teachers/three.parquet"]
    named = plan(values, "report")["report", ""]
    assert "out/runs/one/evaluated" in named.inputs["runs"]
