"""`./run export` reads a finished run, whatever the kind of the model."""

import faiss
import pyarrow.parquet as pq
import pytest

from cdmae import commands
from cdmae.collections.store import count_passages
from cdmae.commands import configs
from cdmae.errors import InputError
from tests.workflow.conftest import SMOKE

pytestmark = pytest.mark.workflow


@pytest.fixture
def export(smoke, monkeypatch, tmp_path):
    """A function that exports without ONNX into a new folder, and returns the folder."""
    monkeypatch.setattr(configs, "ROOT", smoke.folder)
    monkeypatch.chdir(smoke.folder)

    def exported(name):
        to = tmp_path / name
        commands.command(["export", name, *SMOKE, "--to", str(to), "--no-onnx"])
        return to

    return exported


def test_retrievers_are_exported_with_passages_and_other_models_alone(smoke, export):
    folder = export("cdmae-stage3")
    passages = count_passages(smoke.results / "collections/pydocs")
    assert pq.read_metadata(folder / "passages.parquet").num_rows == passages
    assert faiss.read_index(str(folder / "passages.faiss")).ntotal == passages
    files = {path.name for path in export("cdmae").iterdir()}
    assert {"1_Pooling", "tokenizer.json"} <= files and "passages.parquet" not in files
    assert (export("cdmae-reranker") / "cdmae.json").exists()
    with pytest.raises(InputError, match="bm25 is not a trained model"):
        export("bm25")
