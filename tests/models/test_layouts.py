"""Published checkpoints differ in names and files: of each layout we make transformers' own
vectors.

The files are written as older tools wrote them, without our writer and without that of today's
transformers.
"""

import json

import numpy as np
import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file
from tiny_pretraining import started

from cdmae.models import checkpoint as models
from cdmae.retrieval import vectors
from cdmae.tokens import tokenise

SIZES = {
    "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64,
    "max_position_embeddings": 64,
}  # fmt: skip
LENGTHS = {"query_length": 16, "passage_length": 32}


def old_names(weights):
    """As in the original files, and in bert-base-uncased at the hub."""
    renamed = {
        name.replace("LayerNorm.weight", "LayerNorm.gamma"): value
        for name, value in weights.items()
    }
    return {
        name.replace("LayerNorm.bias", "LayerNorm.beta"): value for name, value in renamed.items()
    }


def without_sentences(weights):
    """As of a BertForMaskedLM: no pooler, no prediction of the next sentence."""
    return {
        name: value
        for name, value in weights.items()
        if not name.startswith(("bert.pooler", "cls.seq"))
    }


def one_file(folder, weights):
    save_file(weights, folder / "model.safetensors", {"format": "pt"})


def sharded(folder, weights):
    files = ("model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors")
    places = {name: files[number % 2] for number, name in enumerate(weights)}
    for file in files:
        part = {name: value for name, value in weights.items() if places[name] == file}
        save_file(part, folder / file, {"format": "pt"})
    (folder / "model.safetensors.index.json").write_text(
        json.dumps({"metadata": {}, "weight_map": places})
    )


LAYOUTS = {
    "gamma and beta": (old_names, one_file),
    "pytorch_model.bin": (
        without_sentences,
        lambda folder, weights: torch.save(weights, folder / "pytorch_model.bin"),
    ),
    "float16": (lambda weights: {name: value.half() for name, value in weights.items()}, one_file),
    "no prefix": (
        lambda weights: {name.removeprefix("bert."): value for name, value in weights.items()},
        one_file,
    ),
    "shards": (without_sentences, sharded),
    "vocab.txt": (without_sentences, one_file),
    "next sentence and pooler": (dict, one_file),
    "position_ids": (
        lambda weights: weights | {"bert.embeddings.position_ids": torch.arange(64)[None]},
        one_file,
    ),
}


def checkpoint(folder, pieces, layout, kind="bert"):
    """Write a random checkpoint in a layout and return its folder."""
    families = {
        "bert": transformers.BertForPreTraining,
        "electra": transformers.ElectraForPreTraining,
    }
    config = transformers.AutoConfig.for_model(kind, vocab_size=len(pieces), **SIZES)
    with torch.random.fork_rng():
        torch.manual_seed(5)
        model = families[kind](config)
        with torch.no_grad():
            for (
                weights
            ) in model.parameters():  # biases and norms must differ from 0 and 1 to be tested
                weights.add_(torch.randn(weights.shape) * 0.1)
    tied = "cls.predictions.decoder."
    change, write = LAYOUTS[layout]
    folder.mkdir()
    write(
        folder,
        change(
            {name: value for name, value in model.state_dict().items() if not name.startswith(tied)}
        ),
    )
    config.save_pretrained(folder)
    if layout == "vocab.txt":
        (folder / "vocab.txt").write_text(
            "\n".join(sorted(pieces.get_vocab(), key=pieces.get_vocab().get))
        )
    else:
        pieces.save_pretrained(folder)
    return folder


def vectors_by_transformers(folder, texts):
    """The [CLS] vectors of the queries by transformers itself."""
    how = {
        "padding": True,
        "truncation": True,
        "max_length": LENGTHS["query_length"],
        "return_tensors": "pt",
    }
    read = transformers.AutoTokenizer.from_pretrained(folder)(texts, **how)
    with torch.no_grad():
        network = transformers.AutoModel.from_pretrained(folder, dtype=torch.float32).eval()
        return network(**read).last_hidden_state[:, 0].numpy()


def vectors_of_ours(encoder, texts, folder):
    """The same by a retriever that starts from an encoder and is saved in `folder`; a reranker's
    encoder is equal.
    """
    retriever = models.start_model(encoder, "retriever", **LENGTHS, precision="fp32")
    reranker = models.start_model(encoder, "reranker", max_length=40, precision="fp32", seed=1)
    for name, value in retriever.network.base_model.state_dict().items():
        assert torch.equal(value, reranker.network.base_model.state_dict()[name]), name
    folder.mkdir()
    models.save(folder, retriever, encoder, {})
    return vectors.encode_queries(folder, texts)


@pytest.mark.parametrize(
    ("kind", "layout"),
    [
        *(("bert", layout) for layout in LAYOUTS),
        ("electra", "gamma and beta"),
        ("electra", "next sentence and pooler"),
    ],
)
def test_a_layout_gives_transformers_vectors(tiny, tmp_path, kind, layout):
    pieces = tokenise.load_tokenizer(tiny.encoder)
    original = checkpoint(tmp_path / "original", pieces, layout, kind)
    expected = vectors_by_transformers(original, tiny.queries)
    encoder = started(original, tmp_path / "start")
    assert not [
        name
        for name in load_file(encoder / "model.safetensors")
        if name.endswith(("gamma", "beta"))
    ]
    np.testing.assert_allclose(
        vectors_of_ours(encoder, tiny.queries, tmp_path / "ours"), expected, atol=1e-5
    )
    np.testing.assert_allclose(
        vectors_by_transformers(tmp_path / "ours", tiny.queries), expected, atol=1e-5
    )
