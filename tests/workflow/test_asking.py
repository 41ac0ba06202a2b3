"""`./run search` asks a system of any kind, and answers what its run says of the same words."""

import re

import numpy as np
import pytest

from cdmae import commands
from cdmae.collections.store import read_passages, read_queries
from cdmae.commands import answering, configs
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


def test_by_default_it_asks_the_system_that_the_report_recommends(smoke, search):
    page = (smoke.results / "report/index.html").read_text(encoding="utf-8")
    pick = re.search(r'<h2 class="verdict">\s*(\S+): MRR@10', page)[1]
    assert f"{pick} on pydocs" in search("merge two sorted lists")
