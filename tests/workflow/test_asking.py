"""`./run search` asks a system of any kind, and answers what its run says of the same words."""

import json
import re

import pandas as pd
import pytest

from cdmae.collections.store import read_passages, read_queries
from cdmae.retrieval.fusion import Fusion
from cdmae.runs import read_run
from tests.workflow.conftest import SMOKE

pytestmark = pytest.mark.workflow


@pytest.mark.parametrize("system", ["bm25", "cdmae-stage1", "cdmae-reranker", "fused"])
def test_it_answers_as_the_run_does(smoke, system):
    folder = smoke.results / "collections/pydocs"
    question = read_queries(folder, "dev")["text"][3]
    ranked = read_run(smoke.results / f"runs/{system}/pydocs.dev.parquet").ranked(3)[0][:3]
    names = read_passages(folder).take(ranked)["passage_id"].to_pylist()
    said = smoke.run(
        "search", *SMOKE, "--system", system, "--collection", "pydocs", "--depth", "3", question
    )
    assert f"{system} on pydocs" in said
    assert [name for name in re.findall(r"\S+", said) if name in names] == names


def on_dev(path):
    """The MRR@10 of a system on pydocs dev, from its measures."""
    frame = pd.read_csv(path, sep="\t")
    return frame.query("collection == 'pydocs' and split == 'dev' and measure == 'RR@10'")[
        "value"
    ].mean()


def test_by_default_it_asks_the_best_on_dev(smoke):
    means = {path.stem: on_dev(path) for path in (smoke.results / "measures").glob("*.tsv")}
    assert f"{max(means, key=means.get)} on pydocs" in smoke.run(
        "search", *SMOKE, "merge two sorted lists"
    )


def test_a_fusion_tells_its_weights(smoke):
    about = json.loads((smoke.results / "fusions/fused.json").read_text())
    assert about["on"] == ["pydocs", "dev"] and sum(about["weights"]) == pytest.approx(1)
    assert on_dev(smoke.results / "measures/fused.tsv") == pytest.approx(about["value"], abs=1e-6)


def test_measures_that_a_changed_config_asks_for_must_be_made_first(smoke, tmp_path):
    (tmp_path / "other.yaml").write_text("evaluation: {measures: [nDCG@7]}\n")
    said = smoke.run(
        "search", *SMOKE, str(tmp_path / "other.yaml"), "merge two sorted lists", status=1
    )
    assert "has no nDCG@7 on pydocs dev; ./run updates the file" in said


MIXED = """
systems:
  mixed: {kind: fusion, of: [bm25, cdmae-stage1], method: convex, weights: [0.3, 0.7]}
  student: {kind: retriever, encoder: cdmae, stage: stage2, negatives: mixed}
"""


def test_a_fusion_of_the_runs_over_training_queries_gives_negatives(finished, tmp_path):
    (tmp_path / "mixed.yaml").write_text(MIXED)
    finished.run(
        *SMOKE,
        str(tmp_path / "mixed.yaml"),
        "results/smoke/trained/student",
        "--rerun-triggers",
        "mtime",
    )
    parts, mixed = (
        [read_run(finished.results / f"negatives/{name}.pydocs.train.parquet") for name in names]
        for names in (("bm25", "cdmae-stage1"), ("mixed",))
    )
    expected = Fusion(parts, "convex", 60).run([0.3, 0.7], 1000)
    depth = mixed[0].starts[1]
    assert depth > 0 and mixed[0].passages[:depth].tolist() == expected.passages[:depth].tolist()
