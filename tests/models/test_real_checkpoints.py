"""Two published checkpoints as starts and as foreign models: elsewhere they give the same vectors
and scores.
"""

import re

import numpy as np
import pytest
import torch
from card_facts import FACTS, measures
from tiny_pretraining import started
from tiny_training import stage

from cdmae.collections.store import read_passages
from cdmae.files import read_json
from cdmae.finetuning import retriever
from cdmae.finetuning.task import Inputs
from cdmae.models import checkpoint as models
from cdmae.report import card
from cdmae.retrieval import external, vectors
from cdmae.tokens import tokenise
from cdmae.tokens.corpus import write_tokens

LONG = (
    "When was the first bridge over the river built, who paid for it and how many people crossed it in a year? "
    * 4
)
TEXTS = ["how do I join two lists?", LONG]


@pytest.fixture(scope="module")
def inputs(tiny, tiny_bert, tmp_path_factory):
    """What both trainers take, with the small checkpoint for a start."""
    folder = tmp_path_factory.mktemp("inputs") / "start"
    encoder, passages = (
        started(tiny_bert, folder),
        read_passages(tiny.collection, ["title", "text"]),
    )
    write_tokens(folder / "tokens", tokenise.tokenise(passages, encoder, 1))
    return {**tiny.inputs(), "encoder": encoder, "tokens": folder / "tokens"}


def train(trainer, inputs, folder, kind, **changed):
    lengths = (
        {"max_length": 40} if kind == "reranker" else {"query_length": 16, "passage_length": 32}
    )
    recipe = stage(kind, epochs=1.0, **lengths, **changed)
    trainer.train(
        name="x",
        settings=recipe,
        files=Inputs(**inputs),
        seed=1,
        state=folder / "state",
        output=folder / "model",
    )
    return folder / "model"


@pytest.mark.parametrize(
    ("pooling", "similarity"), [("cls", "dot"), ("mean", "dot"), ("mean", "cosine")]
)
def test_a_retriever_of_the_small_one_is_elsewhere_what_it_is_here(
    inputs, tmp_path, pooling, similarity, monkeypatch
):
    """As its card tells to use it."""
    model = train(retriever, inputs, tmp_path, "retriever", pooling=pooling, similarity=similarity)
    lengths = read_json(model / "cdmae.json")
    monkeypatch.chdir(tmp_path)
    text = card.card(FACTS, measures(), lengths, model.name)
    (program,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    told = {}
    exec(program, told)
    ours = vectors.encode_queries(model, TEXTS)
    np.testing.assert_allclose(told["model"].encode_query(TEXTS), ours, atol=1e-5)
    np.testing.assert_allclose(told["queries"][0], ours[0], atol=1e-5)
    assert told["model"].similarity_fn_name == similarity
    assert (np.abs(np.linalg.norm(ours, axis=1) - 1).max() < 1e-6) == (similarity == "cosine")
    assert np.abs(told["model"].encode_document(TEXTS)[1] - ours[1]).max() > 1e-3, (
        "passages are cut later"
    )


def test_minilm_is_a_start_whose_head_is_new(minilm, tmp_path, capfd):
    """With its own pooling and similarity its vectors are those of sentence-transformers."""
    from sentence_transformers import SentenceTransformer
    from transformers import AutoModel, AutoTokenizer

    encoder = started(minilm, tmp_path / "start")
    said = capfd.readouterr().err
    assert f"{minilm} has no LM head; new, random weights: cls.predictions.bias" in said
    for pooling, similarity in {"cls": "dot", "mean": "cosine"}.items():
        lengths = {"query_length": 32, "passage_length": 64, "precision": "fp32"}
        model = models.start_model(
            encoder, "retriever", **lengths, pooling=pooling, similarity=similarity
        )
        (tmp_path / pooling).mkdir()
        models.save(tmp_path / pooling, model, encoder, {})
    how = {"padding": True, "truncation": True, "max_length": 32, "return_tensors": "pt"}
    read = AutoTokenizer.from_pretrained(minilm)(TEXTS, **how)
    with torch.no_grad():
        theirs = AutoModel.from_pretrained(minilm).eval()(**read).last_hidden_state[:, 0]
    np.testing.assert_allclose(vectors.encode_queries(tmp_path / "cls", TEXTS), theirs, atol=1e-5)
    theirs = SentenceTransformer(str(minilm), device="cpu")
    theirs.max_seq_length = 32
    np.testing.assert_allclose(
        vectors.encode_queries(tmp_path / "mean", TEXTS), theirs.encode(TEXTS), atol=1e-5
    )


def test_minilm_is_a_foreign_model_with_its_own_pooling(minilm):
    from sentence_transformers import SentenceTransformer

    theirs = SentenceTransformer(str(minilm), device="cpu").encode(TEXTS)
    ours = external.Encoder({"model": str(minilm)}).queries(TEXTS)
    np.testing.assert_allclose(ours, theirs, atol=1e-6)
