"""Trained models are folders that transformers loads as they are, to our very numbers."""

import subprocess
import sys

import numpy as np
import pytest
import torch
import transformers

from cdmae.errors import InputError
from cdmae.models import checkpoint
from cdmae.retrieval import vectors as inference

HOW = {"query_length": 16, "passage_length": 32, "precision": "fp32"}


def save(model, folder, tokenizer):
    folder.mkdir()
    checkpoint.save(folder, model, tokenizer, {"steps": 1})
    return folder


@pytest.fixture
def retriever(tiny, tmp_path):
    model = checkpoint.start_model(tiny.encoder, "retriever", **HOW)
    return save(model, tmp_path / "retriever", tiny.encoder)


def test_automodel_gives_our_vectors_and_finds_every_weight(retriever, tiny, capfd, caplog):
    shards = inference.Encoder({"model": retriever}).passages(tiny.tokens)
    ours = np.concatenate([shard[:] for shard in shards])
    capfd.readouterr()
    model = transformers.AutoModel.from_pretrained(retriever)
    pieces = transformers.AutoTokenizer.from_pretrained(retriever)
    assert "MISSING" not in capfd.readouterr().err + caplog.text
    assert not model.pooler.dense.weight.any()
    read = pieces(tiny.passages, padding=True, truncation=True, return_tensors="pt")
    assert read["input_ids"].shape[1] == 32
    with torch.no_grad():
        theirs = model.eval()(**read).last_hidden_state[:, 0].numpy()
    assert ours.dtype == np.float32
    np.testing.assert_allclose(ours, theirs, atol=2e-6)


def test_check_says_what_the_folder_is(retriever, tiny):
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
