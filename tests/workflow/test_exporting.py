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

    def exported(*words):
        commands.command(["export", *words, *SMOKE, "--to", str(tmp_path / "to"), "--no-onnx"])
        return tmp_path / "to"

    return exported


def test_a_retriever_is_exported_with_the_passages_of_its_collection(smoke, export):
    folder = export("cdmae-stage3")
    assert (folder / "README.md").read_text().startswith("---\n")
    passages = count_passages(smoke.results / "collections/pydocs")
    assert pq.read_metadata(folder / "passages.parquet").num_rows == passages
    assert faiss.read_index(str(folder / "passages.faiss")).ntotal == passages


def test_an_encoder_and_a_reranker_are_exported_alone(export, tmp_path):
    files = {path.name for path in export("cdmae").iterdir()}
    assert {"1_Pooling", "tokenizer.json"} <= files and "passages.parquet" not in files
    (tmp_path / "to").rename(tmp_path / "before")
    assert (export("cdmae-reranker") / "cdmae.json").exists()


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["bm25"], "bm25 is not a trained model"),
        ([], "missing argument 'NAME'"),
        (["cdmae-stage3", "--collection", "wiki"], "--collection is wiki"),
    ],
)
def test_other_names_are_refused(export, words, sentence):
    with pytest.raises(InputError) as refused:
        export(*words)
    assert sentence in str(refused.value)
