"""Training a reranker: its gradient is that of the formula, what it learns from, its head."""

import numpy as np
import pytest
import torch
import transformers
from tiny_models import padded
from tiny_training import encoder, gradients, same, stage, train

from cdmae.finetuning import common, losses, reranker
from cdmae.models import checkpoint, transformer
from cdmae.models.packed import pack
from cdmae.training import setup
from cdmae.training.ranks import Ranks


def prepared(tiny, recipe, folder):
    """A model that begins with the encoder in a folder, in float64, and its first batch."""
    model = checkpoint.start_model(
        folder, "reranker", max_length=recipe.max_length, precision=recipe.precision, seed=3
    )
    model.network.double()
    data = common.read(recipe, model, **tiny.inputs(), seed=1, threads=1)
    return model, reranker.pairs(data, np.arange(6), 0, model)


def learn(model, batch, recipe, step=0):
    model.network.zero_grad(set_to_none=True)
    numbers = reranker.learn(model.network, batch, recipe, Ranks(), seed=1, step=step)
    return numbers, gradients(model.network)


def of_transformers(model):
    """The same weights in the class of transformers, which has a forward pass of its own."""
    from transformers import AutoConfig, AutoModelForSequenceClassification

    values = (
        {**vars(model.network.config), "num_labels": 1}
        if model.network.config.model_type == "bert"
        else None
    )
    config = AutoConfig.for_model(**values) if values else model.network.config
    network = AutoModelForSequenceClassification.from_config(config).double().eval()
    network.load_state_dict(model.network.state_dict())
    return network


def logits_of(network, pairs):
    """The logits of pairs by transformers' own forward."""
    ids, types = (np.split(values, pairs.starts[1:-1]) for values in (pairs.values, pairs.types))
    return network(**padded(ids, types=types)).logits[:, 0]


@pytest.mark.parametrize("kind", ["bert", "electra"])
@pytest.mark.parametrize("chunk", [1, 8, 1000])
def test_gradient_equals_the_naive_one_whatever_the_chunk(tiny, tmp_path, kind, chunk):
    folder = encoder(tmp_path / "e", tiny.encoder, dropout=0.0, kind=kind)
    recipe = stage("reranker", forward_factor=1, rdrop=0.0, chunk=chunk)
    model, batch = prepared(tiny, recipe, folder)
    numbers, found = learn(model, batch, recipe)
    network = of_transformers(model)
    loss = losses.listwise(logits_of(network, batch).view(6, 4))
    loss.backward()
    assert numbers["loss"].item() == pytest.approx(loss.item(), rel=1e-9)
    same(found, gradients(network))


def test_rdrop_without_dropout_is_the_listwise_loss(tiny, tmp_path):
    folder = encoder(tmp_path / "e", tiny.encoder, dropout=0.0)
    recipe = stage("reranker")
    model, batch = prepared(tiny, recipe, folder)
    with_it, found = learn(model, batch, recipe)
    without, expected = learn(model, batch, stage("reranker", rdrop=0.0))
    assert with_it["loss"].item() == pytest.approx(without["loss"].item(), rel=1e-9)
    same(found, expected)


def test_rdrop_sees_two_masks_and_both_are_repeatable(tiny):
    recipe = stage("reranker")
    model, batch = prepared(tiny, recipe, tiny.encoder)
    first, second = learn(model, batch, recipe)[0], learn(model, batch, recipe)[0]
    assert first["loss"] == second["loss"]
    assert first["loss"] > first["listwise"] * 1.0001  # the KL between the passes
    assert learn(model, batch, recipe, step=1)[0]["loss"] != first["loss"]


def test_the_forward_factor_keeps_the_positive_and_the_best_negatives(tiny):
    recipe = stage("reranker", group=8, forward_factor=2)
    model, batch = prepared(tiny, recipe, tiny.encoder)
    found = reranker.hardest(model.network, batch, np.arange(6), recipe, torch.device("cpu"))
    with torch.no_grad():
        scores = logits_of(of_transformers(model), batch).view(6, 8).numpy()
    assert found.shape == (6, 4)
    for row, kept in enumerate(found):
        best = sorted(range(1, 8), key=lambda place: -scores[row, place])[:3]
        assert (kept - 8 * row).tolist() == [0, *best]


@pytest.mark.parametrize("kind", ["bert", "electra"])
def test_the_head_computes_in_float32_under_autocast(tiny, tmp_path, kind):
    """Scores rounded to bfloat16 tie; the head reads the states of bfloat16 products as they are."""
    folder = encoder(tmp_path / "e", tiny.encoder, kind=kind)
    recipe = stage("reranker", precision="bf16")
    model, batch = prepared(tiny, recipe, folder)
    packed = pack(batch)
    network = model.network.float()
    with setup.autocast("bf16", torch.device("cpu")):
        found, states = (
            reranker.scores(network, packed),
            transformer.vectors(network.base_model, packed),
        )
    if kind == "bert":
        expected = network.classifier(torch.tanh(network.bert.pooler.dense(states)))
    else:
        expected = network.classifier(states[:, None])  # it reads the first row of each sequence
    torch.testing.assert_close(found, expected[:, 0].float(), rtol=1e-5, atol=1e-6)
    assert len(found.unique()) == len(found)


def test_an_electra_encoder_is_trained_too(tiny, tmp_path):
    folder = encoder(tmp_path / "e", tiny.encoder, kind="electra")
    found = train(reranker, tiny, tmp_path, stage("reranker", epochs=0.5), encoder=folder)
    assert transformers.AutoConfig.from_pretrained(found).architectures == [
        "ElectraForSequenceClassification"
    ]
    assert checkpoint.check(found, "reranker")["max_length"] == 48
