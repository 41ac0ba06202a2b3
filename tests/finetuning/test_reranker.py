"""Training a reranker: its gradient is that of the formula, what it learns from, its head."""

import numpy as np
import pytest
import torch
from tiny_models import padded
from tiny_training import encoder, gradients, learn, prepared, same, stage

from cdmae.finetuning import losses, reranker
from cdmae.models import transformer
from cdmae.models.packed import pack
from cdmae.training import setup


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
    loss = losses.listwise(logits_of(network, batch.pairs).view(6, 4))
    loss.backward()
    assert numbers["loss"].item() == pytest.approx(loss.item(), rel=1e-9)
    same(found, gradients(network))


@pytest.mark.parametrize("factor", [1, 2])
@pytest.mark.parametrize("chunk", [3, 1000])
def test_a_teacher_adds_the_divergence_of_the_passages_to_learn_from(
    tiny, tmp_path, teacher, factor, chunk
):
    folder = encoder(tmp_path / "e", tiny.encoder, dropout=0.0)
    recipe = stage(
        "reranker",
        forward_factor=factor,
        rdrop=0.0,
        chunk=chunk,
        alpha=0.3,
        teacher_temperature=2.0,
    )
    model, batch = prepared(tiny, recipe, folder, teacher)
    numbers, found = learn(model, batch, recipe)
    network = of_transformers(model)
    logits = logits_of(network, batch.pairs).view(6, 4)
    taught = torch.from_numpy(batch.teacher).double() / 2.0
    if factor == 2:  # the positive and the best negative by the model's own scores
        kept = torch.stack([torch.zeros(6, dtype=torch.long), 1 + logits[:, 1:].argmax(1)], dim=1)
        logits, taught = logits.gather(1, kept), taught.gather(1, kept)
    divergence = torch.nn.functional.kl_div(
        logits.log_softmax(1), taught.softmax(1), reduction="batchmean"
    )
    loss = divergence + 0.3 * losses.listwise(logits)
    loss.backward()
    assert numbers["kl"].item() == pytest.approx(divergence.item(), rel=1e-6)
    assert numbers["loss"].item() == pytest.approx(loss.item(), rel=1e-6)
    same_direction = sum((found[key] * value).sum() for key, value in gradients(network).items())
    lengths = [
        sum(value.square().sum() for value in each.values()).sqrt()
        for each in (found, gradients(network))
    ]
    assert same_direction / lengths[0] / lengths[1] == pytest.approx(1, abs=1e-9)


@pytest.mark.parametrize("kind", ["bert", "electra"])
def test_the_head_computes_in_float32_under_autocast(tiny, tmp_path, kind):
    """Scores rounded to bfloat16 tie; the head reads the states of bfloat16 products as they are."""
    folder = encoder(tmp_path / "e", tiny.encoder, kind=kind)
    recipe = stage("reranker", precision="bf16")
    model, batch = prepared(tiny, recipe, folder)
    packed = pack(batch.pairs)
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
