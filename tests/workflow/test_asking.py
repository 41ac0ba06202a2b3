"""`./run search` asks a system of any kind, and answers what its run says of the same words."""

import json
import re

import pandas as pd
import pytest

from cdmae.collections.store import read_passages, read_queries
from cdmae.runs import read_run
from tests.workflow.conftest import SMOKE

pytestmark = pytest.mark.workflow


@pytest.mark.parametrize("system", ["bm25", "cdmae-stage1", "cdmae-reranker", "fused"])
def test_it_answers_as_the_run_does(smoke, system):
    folder = smoke.results / "collections/pydocs"
    question = read_queries(folder, "dev")["text"][3]
    ranked = read_run(smoke.results / f"runs/{system}/pydocs.dev.parquet").ranked(3)[0][:3]
    names = read_passages(folder).take(ranked)["passage_id"].to_pylist()
    said = smoke.run("search", *SMOKE, "--system", system, "--collection", "pydocs", "--depth", "3", question)
    assert f"{system} on pydocs" in said
    assert [name for name in re.findall(r"\S+", said) if name in names] == names


def on_dev(path):
    """The MRR@10 of a system on pydocs dev, from its measures."""
    frame = pd.read_csv(path, sep="\t")
    return frame.query("collection == 'pydocs' and split == 'dev' and measure == 'RR@10'")["value"].mean()


def test_by_default_it_asks_the_best_on_dev(smoke):
    means = {path.stem: on_dev(path) for path in (smoke.results / "measures").glob("*.tsv")}
    assert f"{max(means, key=means.get)} on pydocs" in smoke.run("search", *SMOKE, "merge two sorted lists")


def test_a_fusion_tells_its_weights(smoke):
    about = json.loads((smoke.results / "fusions/fused.json").read_text())
    assert about["on"] == ["pydocs", "dev"] and sum(about["weights"]) == pytest.approx(1)
    assert on_dev(smoke.results / "measures/fused.tsv") == pytest.approx(about["value"], abs=1e-6)
