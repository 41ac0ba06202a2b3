"""Trained models are folders that transformers loads as they are, to our very numbers."""

import subprocess
import sys

import pytest

from cdmae.errors import InputError
from cdmae.models import checkpoint

HOW = {"query_length": 16, "passage_length": 32, "precision": "fp32"}


def save(model, folder, tokenizer):
    folder.mkdir()
    checkpoint.save(folder, model, tokenizer, {"steps": 1})
    return folder


def test_check_says_what_the_folder_is(tiny, tmp_path):
    model = checkpoint.start_model(tiny.encoder, "retriever", **HOW)
    retriever = save(model, tmp_path / "retriever", tiny.encoder)
    found = checkpoint.check(retriever, "retriever")
    assert HOW.items() <= found.items()
    assert (found["head"], found["pooling"], found["similarity"]) == ("dense", "cls", "dot")
    with pytest.raises(InputError, match="contains a retriever, not a reranker"):
        checkpoint.check(retriever, "reranker")
    with pytest.raises(InputError, match="no cdmae.json"):
        checkpoint.load(tiny.encoder, "retriever")


def test_searching_stored_vectors_imports_no_transformers():
    """Its import takes longer than the search of a small collection."""
    program = "import sys; from cdmae.retrieval import search, vectors; sys.exit('transformers' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program]).returncode == 0
