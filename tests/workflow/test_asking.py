"""`./run search` and `./run export` read a finished run, whatever the kind of the system."""

import faiss
import numpy as np
import pyarrow.parquet as pq
import pytest

from cdmae import commands
from cdmae.collections.store import count_passages, read_queries
from cdmae.commands import answering, configs
from cdmae.errors import InputError
from cdmae.runs import read_run
from tests.workflow.conftest import SMOKE

pytestmark = pytest.mark.workflow


@pytest.mark.parametrize("system", ["bm25", "cdmae-stage1", "cdmae-reranker", "fused"])
def test_a_system_answers_as_its_run_does(here, system):
    queries = read_queries(here.results / "collections/pydocs", "dev")["text"][:20]
    engine = answering.engine_of(configs.configured(SMOKE[1:]), [system], ["pydocs"])
    run = read_run(here.results / f"runs/{system}/evaluated/pydocs.dev.parquet")
    for row, text in enumerate(queries):
        hits = engine.search(text, system, "pydocs", 10).hits
        expected = run.ranked(row)[1][:10]  # passages whose scores differ by rounding may swap
        np.testing.assert_allclose([hit.score for hit in hits], expected, rtol=1e-4, atol=1e-5)


def test_retrievers_are_exported_with_passages_and_other_models_alone(here, tmp_path):
    def export(name):
        folder = tmp_path / name
        commands.command(["export", name, *SMOKE, "--to", str(folder), "--no-onnx"])
        return folder

    folder = export("cdmae-stage3")
    passages = count_passages(here.results / "collections/pydocs")
    assert pq.read_metadata(folder / "passages.parquet").num_rows == passages
    assert faiss.read_index(str(folder / "passages.faiss")).ntotal == passages
    files = {path.name for path in export("cdmae").iterdir()}
    assert {"1_Pooling", "tokenizer.json"} <= files and "passages.parquet" not in files
    assert (export("cdmae-reranker") / "cdmae.json").exists()
    with pytest.raises(InputError, match="bm25"):
        export("bm25")
    (tmp_path / "kept").write_text("text")
    for taken in (tmp_path, tmp_path / "kept"):
        triples = ("export", "cdmae-stage1", *SMOKE, "--to", str(taken), "--triples", "1")
        with pytest.raises(InputError, match="which exists; expected a new file"):
            commands.command([*triples])
    assert (tmp_path / "kept").read_text() == "text"
