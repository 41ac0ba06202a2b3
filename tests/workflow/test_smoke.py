"""The whole pipeline on the tiny collection: every job wrote what the next one and the reader need."""

import numpy as np
import pytest

from cdmae.collections.store import read_queries
from cdmae.config import systems
from cdmae.evaluation.per_query import read_measures
from cdmae.runs import read_run

pytestmark = pytest.mark.workflow


def test_the_terminal_shows_the_plan_each_job_its_progress_and_the_report(smoke):
    lines = smoke.ran.splitlines()
    assert "pretrain           5   missing output" in lines
    assert any(line.startswith("collections.pydocs: ") for line in lines)
    assert any(line.endswith(": train cdmae-stage3") for line in lines)
    assert lines[-1] == "report: results/smoke/report/index.html"
    assert max(map(len, lines)) <= 200 and not any(line.startswith("    ") for line in lines)


def test_runs_and_measures(smoke, config):
    for system in config.systems:
        for collection, split in systems.targets(config):
            run = read_run(smoke.results / f"runs/{system}/evaluated/{collection}.{split}.parquet")
            queries = read_queries(smoke.results / f"collections/{collection}", split)
            assert len(run) == len(queries)
            passages, scores = run.ranked(0)
            assert len(set(passages.tolist())) == len(passages) and (np.diff(scores) <= 0).all()
        found = read_measures(smoke.results / f"measures/{system}.tsv")
        assert set(found["measure"]) == set(config.evaluation.measures)
    values = read_measures(smoke.results / "measures/bm25.tsv")
    of = values.query("measure == 'RR@10' and collection == 'pydocs'")
    assert of["value"].mean() > 0.1, "BM25 finds passages"
