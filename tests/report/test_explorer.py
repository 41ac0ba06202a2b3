"""The explorer of queries, against loops over plain lists."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import synthetic_run
from planned import plan

from cdmae.collections.store import Collection, write_collection
from cdmae.files import read_json, write_json
from cdmae.importance.shading import Span
from cdmae.report import facts as facts_module
from cdmae.report.plots import rank_scatter
from cdmae.report.sections import explorer
from cdmae.runs import Run, write_run

QUERIES, PASSAGES, DEPTH = 200, 60, 20
RELEVANT = {query: query * 7 % PASSAGES for query in range(QUERIES)}
SCORES = np.arange(PASSAGES, 0, -1, dtype=np.float32)


def a_run(seed):
    """Random rankings."""
    rng = np.random.default_rng(seed)
    ranked = [rng.permutation(PASSAGES)[:DEPTH].astype(np.int32) for _ in range(QUERIES)]
    return Run.of(ranked, [SCORES[:DEPTH]] * QUERIES)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """The facts of a run of five systems over readable passages."""
    folder = tmp_path_factory.mktemp("explorer")
    path = synthetic_run.make(folder, targets={"pydocs": {"dev": QUERIES}}, parts=())
    text = pa.table({
        "passage_id": [f"p{row}" for row in range(PASSAGES)], "title": [""] * PASSAGES,
        "text": [f"passage <{row}>" for row in range(PASSAGES)],
    })  # fmt: skip
    asked = pd.DataFrame({
        "query_id": [f"q{row}" for row in range(QUERIES)],
        "text": [f"question <{row}>" for row in range(QUERIES)],
    })  # fmt: skip
    pairs = [(f"q{query}", f"p{passage}", 1) for query, passage in RELEVANT.items()]
    qrels = pd.DataFrame(pairs, columns=["query_id", "passage_id", "grade"])
    splits = dict.fromkeys(("train", "dev"))
    collection = Collection(text, dict.fromkeys(splits, asked), dict.fromkeys(splits, qrels), {})
    write_collection(folder / "docs", collection)
    files = read_json(path)
    names = ("bm25", "mae-stage1", "cdmae-stage1", "cdmae-stage2", "fused")
    files |= {
        "collections": {"pydocs": str(folder / "docs")},
        "runs": {name: str(folder / f"{name}.parquet") for name in names},
        "deciding": ["pydocs", "dev"],
    }
    for seed, name in enumerate(names):
        write_run(folder / f"{name}.parquet", a_run(seed))
    write_json(path, files)
    return facts_module.read(path)


def test_ranks_and_first_passages_are_those_of_the_runs(run):
    section = explorer.section(run)
    data = section.values["data"]["queries"]
    names = ("bm25", "mae-stage1", "cdmae-stage1", "cdmae-stage2", "fused")
    runs = {name: a_run(seed) for seed, name in enumerate(names)}
    assert data["systems"][0] == "bm25" and len(data["systems"]) == explorer.MOST
    texts = [text for text, *_ in data["texts"]]
    for index, name in enumerate(data["systems"]):
        for query, rank in enumerate(data["ranks"][index]):
            ranked = runs[name].ranked(query)[0].tolist()
            found = RELEVANT[query] in ranked
            assert rank == (ranked.index(RELEVANT[query]) + 1 if found else 0)
        for at, query in enumerate(data["explained"]):
            shown = [texts[passage] for passage in data["first"][at][index]]
            first = runs[name].ranked(query)[0][: explorer.FIRST].tolist()
            assert shown == [f"passage <{row}>" for row in first]
    for at, query in enumerate(data["explained"]):
        assert data["asked"][at] == f"question <{query}>"
        assert [texts[row] for row in data["judged"][at]] == [f"passage <{RELEVANT[query]}>"]
    assert explorer.EXPLAINED <= len(data["explained"]) < QUERIES
    assert [figure.name for figure in section.figures] == ["rank-scatter"]


def test_a_run_without_runs_has_no_explorer(run, tmp_path):
    bare = synthetic_run.make(tmp_path, targets={"pydocs": {"dev": 10}}, parts=())
    assert explorer.section(facts_module.read(bare)) is None


def test_a_word_has_the_shade_of_its_darkest_part():
    class Shades:
        """Shades with known spans."""

        def spans(self, text):
            return [Span("the ", 0), Span("hash", 3), Span("able", 5), Span(" x", 1)]

    assert explorer.digits(Shades(), "the hashable x") == "051"


def test_a_scatter_counts_the_queries_on_either_side():
    figure = rank_scatter("a", "b", np.array([[1, 5, 0, 3], [2, 1, 7, 3]]), 10)
    assert figure.description == "Ranks in a and in b: b is better on 2 queries, a on 1"


def test_the_report_declares_the_files_of_the_first_screen_and_the_explorer(values):
    inputs = plan(values, "report")["report", ""].inputs
    assert inputs["indexes"] == ["out/bm25/docs"]
    assert set(inputs["runs"]) == {f"out/runs/{name}/evaluated" for name in values["systems"]}
