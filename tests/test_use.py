"""docs/use.md's programs run on an exported folder, where their packages are installed, and agree."""

import contextlib
import io
import re
import shutil
from pathlib import Path

import pytest

from cdmae.exporting import folder
from cdmae.models import checkpoint
from cdmae.retrieval import vectors as inference

PAGE = (Path(__file__).resolve().parents[1] / "docs/use.md").read_text()
PROGRAMS = re.findall(r"^```python\n(.*?)^```", PAGE, flags=re.MULTILINE | re.DOTALL)
PACKAGES = ("onnxruntime", "faiss", "transformers")


def package_of(program):
    """The package that a program is about."""
    named = [name for name in PACKAGES if re.search(rf"^(import|from) {name}", program, re.M)]
    return next(iter(named), "sentence_transformers")


@pytest.fixture(scope="module")
def retriever(tiny, tmp_path_factory):
    """The export of an untrained retriever."""
    pytest.importorskip("onnxscript")
    top = tmp_path_factory.mktemp("use")
    model = checkpoint.start_model(
        tiny.encoder, "retriever", query_length=16, passage_length=32, precision="fp32", seed=3
    )
    (top / "model").mkdir()
    checkpoint.save(top / "model", model, tiny.encoder, {"steps": 1})
    inference.write_vectors(
        encoder={"encoded_by": "vectors"},
        model=top / "model",
        source=tiny.tokens,
        output=top / "vectors",
    )
    source = folder.Source(
        str(top / "model"), "retriever", str(tiny.collection), str(top / "vectors")
    )
    folder.export(source, top / "retriever")
    return top / "retriever"


def printed(program, retriever, tmp_path, monkeypatch):
    """What a program prints next to the exported folder."""
    if not (tmp_path / "retriever").exists():
        shutil.copytree(retriever, tmp_path / "retriever")
    monkeypatch.chdir(tmp_path)
    with contextlib.redirect_stdout(io.StringIO()) as said:
        exec(program, {"__name__": "documentation"})
    return [float(number) for number in re.findall(r"-?\d+\.\d+", said.getvalue())]


def test_vectors_are_the_same_in_every_program(retriever, tmp_path, monkeypatch):
    found = {}
    for program in PROGRAMS:
        name = package_of(program)
        with contextlib.suppress(ModuleNotFoundError):
            found[name] = printed(program, retriever, tmp_path, monkeypatch)
    assert {"sentence_transformers", "transformers", "onnxruntime", "faiss"} <= found.keys()
    for name in ("transformers", "onnxruntime"):
        assert found[name] == pytest.approx(found["sentence_transformers"], abs=1e-4)
    assert found["faiss"] == sorted(found["faiss"], reverse=True)
