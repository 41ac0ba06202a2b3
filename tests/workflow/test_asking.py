"""`./run search` asks a system of any kind, and answers what its run says of the same words."""

import json
import re

import numpy as np
import pandas as pd
import pytest

from cdmae import commands
from cdmae.collections.store import read_passages, read_queries
from cdmae.commands import answering, configs
from cdmae.errors import InputError
from cdmae.retrieval.fusion import Fusion
from cdmae.runs import read_run
from cdmae.serving.engine import Engine
from tests.workflow.conftest import SMOKE

pytestmark = pytest.mark.workflow


@pytest.fixture
def search(smoke, monkeypatch, capsys):
    """A function that runs `./run search` in this process, and returns what it said."""
    monkeypatch.setattr(configs, "ROOT", smoke.folder)
    monkeypatch.chdir(smoke.folder)

    def said(*words):
        commands.command(["search", *SMOKE, *words])
        printed = capsys.readouterr()
        return printed.err + printed.out

    return said


@pytest.mark.parametrize("system", ["bm25", "cdmae-stage1", "cdmae-reranker", "fused"])
def test_it_answers_as_the_run_does(smoke, search, system):
    folder = smoke.results / "collections/pydocs"
    question = read_queries(folder, "dev")["text"][3]
    ranked = read_run(smoke.results / f"runs/{system}/evaluated/pydocs.dev.parquet").ranked(3)[0][
        :3
    ]
    names = read_passages(folder).take(ranked)["passage_id"].to_pylist()
    said = search("--system", system, "--collection", "pydocs", "--depth", "3", question)
    assert f"{system} on pydocs" in said
    assert [name for name in re.findall(r"\S+", said) if name in names] == names
    config = configs.configured(SMOKE[1:])
    about = {"pydocs": {system: answering.described(config, system, "pydocs")}}
    depth = config.evaluation.depth
    engine = Engine(about, {"pydocs": folder}, depth=depth, lengths={})
    run = read_run(smoke.results / f"runs/{system}/evaluated/pydocs.dev.parquet")
    for row, text in enumerate(read_queries(folder, "dev")["text"][:20]):
        hits = engine.search(text, system, "pydocs", 10).hits
        expected = run.ranked(row)[1][:10]  # passages whose scores differ by rounding may swap
        np.testing.assert_allclose([hit.score for hit in hits], expected, rtol=1e-4, atol=1e-5)


def on_dev(path):
    """The MRR@10 of a system on pydocs dev, from its measures."""
    frame = pd.read_csv(path, sep="\t")
    return frame.query("collection == 'pydocs' and split == 'dev' and measure == 'RR@10'")[
        "value"
    ].mean()


def test_by_default_it_asks_the_system_that_the_report_recommends(smoke, search):
    page = (smoke.results / "report/index.html").read_text(encoding="utf-8")
    pick = re.search(r'<h2 class="verdict">\s*(\S+): MRR@10', page)[1]
    assert f"{pick} on pydocs" in search("merge two sorted lists")


def test_a_fusion_tells_its_weights(smoke):
    about = json.loads((smoke.results / "runs/fused/evaluated/weights.json").read_text())
    assert about["on"] == ["pydocs", "dev"] and sum(about["weights"]) == pytest.approx(1)
    assert on_dev(smoke.results / "measures/fused.tsv") == pytest.approx(about["value"], abs=1e-6)
    assert np.mean([*about["held_out"].values()]) <= about["value"]


def test_measures_that_a_changed_config_asks_for_must_be_made_first(search, overlay):
    other = overlay("evaluation: {measures: [nDCG@7]}\n")
    with pytest.raises(
        InputError, match="has no nDCG@7 on pydocs dev; ./run with the same config files"
    ):
        search(other, "merge two sorted lists")


MIXED = """
systems:
  mixed: {kind: fusion, of: [bm25, cdmae-stage1], method: convex, weights: [0.3, 0.7]}
  student: {kind: retriever, encoder: cdmae, stage: stage2, negatives: mixed}
"""


def test_a_fusion_of_the_runs_over_training_queries_gives_negatives(finished, overlay):
    target = "results/smoke/runs/mixed/pydocs.train"
    finished.run(*SMOKE, overlay(MIXED), target, "--rerun-triggers", "mtime")
    parts, mixed = (
        [read_run(finished.results / f"runs/{name}/pydocs.train") for name in names]
        for names in (("bm25", "cdmae-stage1"), ("mixed",))
    )
    expected = Fusion(parts, "convex", 60).run([0.3, 0.7], 1000)
    depth = mixed[0].starts[1]
    assert depth > 0 and mixed[0].passages[:depth].tolist() == expected.passages[:depth].tolist()
