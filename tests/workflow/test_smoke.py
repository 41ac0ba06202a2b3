"""The whole pipeline on the tiny collection: every stage wrote what the next one and the reader
need.
"""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from planned import plan

from cdmae.collections.store import read_queries
from cdmae.config import systems
from cdmae.evaluation.per_query import read_measures
from cdmae.files import read_json
from cdmae.runs import read_run

pytestmark = pytest.mark.workflow


@pytest.fixture
def at(smoke):
    """A function that finds a result."""
    return lambda path: str(smoke.results / path)


def test_every_job_wrote_its_outputs_its_log_and_its_cost(smoke, config):
    jobs = plan(config.values()).values()
    for job in jobs:
        assert all((smoke.folder / path).exists() for path in job.outputs), job.record
    logs, costs = smoke.results / "logs", smoke.results / "benchmarks"
    names = {path.relative_to(logs).with_suffix("") for path in logs.glob("**/*.log")}
    assert names == {path.relative_to(costs).with_suffix("") for path in costs.glob("**/*.tsv")}
    assert len(names) == len(jobs)


def test_the_terminal_shows_the_plan_each_job_its_progress_and_the_report(smoke):
    lines = smoke.ran.splitlines()
    assert "pretrain           5   missing output" in lines
    assert any(line.startswith("collections.pydocs: ") for line in lines)
    assert any(line.endswith(": train cdmae-stage3") for line in lines)
    assert lines[-1] == "report: results/smoke/report/index.html"
    assert max(map(len, lines)) <= 200 and not any(line.startswith("    ") for line in lines)


def test_encoders_and_negatives(at):
    folders = Path(at("encoders")).iterdir()
    steps = {folder.name: read_json(folder / "about.json").get("steps", 0) for folder in folders}
    # without pre-training, stage 1 is trained once
    assert steps == {"none": 0, "mae": 30, "cdmae": 30, "mae@43": 30, "cdmae@43": 30}
    curve = pd.read_csv(at("encoders/cdmae/steps.tsv"), sep="\t")
    assert curve["step"].iloc[-1] == 30 and np.isfinite(curve.to_numpy(dtype=float)).all()
    for system in ("bm25", "cdmae-stage1", "cdmae-stage2"):
        run = read_run(at(f"runs/{system}/pydocs.train"))
        assert len(run) == 200
        assert np.diff(run.starts).max() == 50, "the depth that the stages ask for"


def test_runs_and_measures(config, at):
    for system in config.systems:
        for collection, split in systems.targets(config):
            run = read_run(at(f"runs/{system}/evaluated/{collection}.{split}.parquet"))
            assert len(run) == len(read_queries(at(f"collections/{collection}"), split))
            for query in range(0, len(run), 10):
                passages, scores = run.ranked(query)
                assert len(set(passages.tolist())) == len(passages) and (np.diff(scores) <= 0).all()
        found = read_measures(at(f"measures/{system}.tsv"))
        assert found["value"].between(0, 1).all()
        assert set(found["measure"]) == set(config.evaluation.measures)
    values = read_measures(at("measures/bm25.tsv"))
    of = values.query("measure == 'RR@10' and collection == 'pydocs'")
    assert of["value"].mean() > 0.1, "BM25 finds things"


def test_models_are_whole_and_have_cards(config, at):
    """That they load elsewhere, the README's example shows."""
    for system in systems.trained(config):
        model = Path(at(f"models/{system}"))
        files = {path.name for path in model.iterdir()}
        assert {"model.safetensors", "config.json", "tokenizer.json"} <= files
        assert {path.name for path in Path(at(f"trained/{system}")).glob("[!.]*")} <= files
        text = (model / "README.md").read_text()
        assert system in text and "RR@10" in text


def test_report(config, smoke):
    page = (smoke.results / "report/index.html").read_text()
    assert "cdmae-stage3" in page and "<svg" in page
    assert 'src="http' not in page, "the page opens offline"
    for file in ("results.csv", "comparisons.csv", "results.md", "results.tex"):
        assert "cdmae-stage3" in (smoke.results / "report" / file).read_text()
    facts = json.loads((smoke.results / "facts.json").read_text())
    assert facts["versions"]["torch"] and facts["config"]["seed"] == [42, 43]
    assert facts["machine"]["processor"] in page
