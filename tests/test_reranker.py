"""Training a reranker: its gradient is that of the formula, a batch can be learnt, a killed training loses nothing."""

import os
import signal

import numpy as np
import pandas as pd
import pytest
import torch
import transformers
from tiny_training import QUERIES, encoder, stage, tiny, together  # noqa: F401

from cdmae.errors import InputError, Interrupted
from cdmae.finetuning import common, losses, reranker
from cdmae.models import attention, checkpoint
from cdmae.training import setup
from cdmae.training.ranks import Ranks


def start(folder, recipe):
    model = checkpoint.start_reranker(folder, max_length=recipe.max_length, precision=recipe.precision, seed=3)
    model.network.double()
    return model


def batch_of(tiny, recipe, model):  # noqa: F811
    data = common.read(recipe, model, **tiny.inputs(), seed=1, threads=1)
    return reranker.pairs(data, np.arange(6), 0, model)


def learn(model, batch, recipe, step=0):
    model.network.zero_grad(set_to_none=True)
    numbers = reranker.learn(model.network, batch, recipe, Ranks(), seed=1, step=step)
    return numbers, {name: each.grad.clone() for name, each in model.network.named_parameters()}


def of_transformers(model):
    """The same weights in the class of transformers, which has a forward pass of its own."""
    from transformers import AutoConfig, AutoModelForSequenceClassification

    values = {**vars(model.network.config), "num_labels": 1} if model.network.config.model_type == "bert" else None
    config = AutoConfig.for_model(**values) if values else model.network.config
    network = AutoModelForSequenceClassification.from_config(config).double().eval()
    network.load_state_dict(model.network.state_dict())
    return network


def same(first, second) -> None:
    assert first.keys() == second.keys()
    largest = max(float(each.abs().max()) for each in second.values())
    for name, each in first.items():
        assert float((each - second[name]).abs().max()) < 1e-9 * largest, name


def padded(network, pairs):
    """The logits of pairs by transformers' own forward."""
    longest = int(pairs.lengths.max())
    ids, types, mask = (torch.zeros(len(pairs), longest, dtype=torch.long) for _ in range(3))
    for row, (begin, end) in enumerate(zip(pairs.starts, pairs.starts[1:], strict=False)):
        ids[row, : end - begin] = torch.from_numpy(pairs.ids[begin:end])
        types[row, : end - begin] = torch.from_numpy(pairs.types[begin:end])
        mask[row, : end - begin] = 1
    return network(input_ids=ids, token_type_ids=types, attention_mask=mask).logits[:, 0]


@pytest.mark.parametrize("kind", ["bert", "electra"])
@pytest.mark.parametrize("chunk", [1, 8, 1000])
def test_gradient_equals_the_naive_one_whatever_the_chunk(tiny, tmp_path, kind, chunk) -> None:  # noqa: F811
    folder = encoder(tmp_path / "e", tiny.encoder, dropout=0.0, kind=kind)
    recipe = stage("reranker", forward_factor=1, rdrop=0.0, chunk=chunk)
    model = start(folder, recipe)
    batch = batch_of(tiny, recipe, model)
    numbers, found = learn(model, batch, recipe)
    network = of_transformers(model)
    loss = losses.listwise(padded(network, batch).view(6, 4))
    loss.backward()
    assert numbers["loss"].item() == pytest.approx(loss.item(), rel=1e-9)
    same(found, {name: each.grad for name, each in network.named_parameters()})


def test_several_processes_add_up_to_one(tiny, tmp_path) -> None:  # noqa: F811
    folder = encoder(tmp_path / "e", tiny.encoder, dropout=0.0)
    recipe = stage("reranker", chunk=4)
    model = start(folder, recipe)
    batch = batch_of(tiny, recipe, model)
    numbers, whole = learn(model, batch, recipe)

    networks = [start(folder, recipe).network for _ in range(4)]  # transformers does not load in several threads

    def shared(group):
        network = networks[group.rank]
        found = reranker.learn(network, batch, recipe, group, seed=1, step=0)
        return found, {name: each.grad for name, each in network.named_parameters()}

    for found, part in together(4, shared):  # six queries: two processes have one more
        assert found["loss"].item() == pytest.approx(numbers["loss"].item(), rel=1e-9)
        assert found["accuracy"].item() == pytest.approx(numbers["accuracy"].item(), rel=1e-6)
        same(part, whole)


def test_rdrop_without_dropout_is_the_listwise_loss(tiny, tmp_path) -> None:  # noqa: F811
    folder = encoder(tmp_path / "e", tiny.encoder, dropout=0.0)
    recipe = stage("reranker")
    model = start(folder, recipe)
    batch = batch_of(tiny, recipe, model)
    with_it, found = learn(model, batch, recipe)
    without, expected = learn(model, batch, stage("reranker", rdrop=0.0))
    assert with_it["loss"].item() == pytest.approx(without["loss"].item(), rel=1e-9)
    same(found, expected)


def test_rdrop_sees_two_masks_and_both_are_repeatable(tiny) -> None:  # noqa: F811
    recipe = stage("reranker")
    model = start(tiny.encoder, recipe)
    batch = batch_of(tiny, recipe, model)
    first, second = learn(model, batch, recipe)[0], learn(model, batch, recipe)[0]
    assert first["loss"] == second["loss"]
    assert first["loss"] > first["listwise"] * 1.0001  # the KL between the passes
    assert learn(model, batch, recipe, step=1)[0]["loss"] != first["loss"]


def test_the_forward_factor_keeps_the_positive_and_the_best_negatives(tiny) -> None:  # noqa: F811
    recipe = stage("reranker", group=8, forward_factor=2)
    model = start(tiny.encoder, recipe)
    batch = batch_of(tiny, recipe, model)
    found = reranker.hardest(model.network, batch, np.arange(6), recipe, torch.device("cpu"))
    with torch.no_grad():
        scores = padded(of_transformers(model), batch).view(6, 8).numpy()
    assert found.shape == (6, 4)
    for row, kept in enumerate(found):
        best = sorted(range(1, 8), key=lambda place: -scores[row, place])[:3]
        assert (kept - 8 * row).tolist() == [0, *best]


@pytest.mark.parametrize("kind", ["bert", "electra"])
def test_the_head_computes_in_float32_under_autocast(tiny, tmp_path, kind) -> None:  # noqa: F811
    """Scores rounded to bfloat16 tie; the head reads the states of bfloat16 products as they are."""
    folder = encoder(tmp_path / "e", tiny.encoder, kind=kind)
    recipe = stage("reranker", precision="bf16")
    model = start(folder, recipe)
    packed = batch_of(tiny, recipe, model).pack(torch.device("cpu"))
    network = model.network.float()
    with setup.autocast("bf16", torch.device("cpu")):
        found, states = reranker.scores(network, packed), attention.cls(network.base_model, packed)
    if kind == "bert":
        expected = network.classifier(torch.tanh(network.bert.pooler.dense(states)))
    else:
        expected = network.classifier(states[:, None])  # it reads the first row of each sequence
    torch.testing.assert_close(found, expected[:, 0].float(), rtol=1e-5, atol=1e-6)
    assert len(found.unique()) == len(found)


def train(tiny, folder, recipe, **changed):  # noqa: F811
    how = {"name": "tiny", "settings": recipe, "seed": 1, "threads": 1, "state": folder / "state"}
    reranker.train(**how | tiny.inputs() | changed, output=folder / "model")
    return folder / "model"


def test_one_batch_can_be_overfitted(tiny, tmp_path) -> None:  # noqa: F811
    changed = {"group": 3, "depth": 2, "random_negatives": 0, "forward_factor": 1, "chunk": 100, "rdrop": 0.0}
    recipe = stage("reranker", queries=QUERIES, epochs=30.0, learning_rate=5e-3, **changed)
    still = encoder(tmp_path / "e", tiny.encoder, dropout=0.0)
    curve = pd.read_csv(train(tiny, tmp_path, recipe, encoder=still) / "steps.tsv", sep="\t")
    assert curve["loss"].iloc[0] > 1
    assert curve["loss"].iloc[-1] < 0.05
    assert curve["accuracy"].iloc[-1] == 1


def test_a_killed_training_ends_in_the_same_bits(tiny, tmp_path, monkeypatch) -> None:  # noqa: F811
    from safetensors.torch import load_file

    recipe = stage("reranker")
    whole = train(tiny, tmp_path / "whole", recipe)
    steps, learnt = iter(range(100)), reranker.learn

    def interrupt(*given, **how):
        if next(steps) == 2:
            os.kill(os.getpid(), signal.SIGUSR1)
        return learnt(*given, **how)

    monkeypatch.setattr(reranker, "learn", interrupt)
    with pytest.raises(Interrupted, match="SIGUSR1: tiny is saved at step 3"):
        train(tiny, tmp_path / "killed", recipe)
    killed = train(tiny, tmp_path / "killed", recipe)
    first, second = (load_file(folder / "model.safetensors") for folder in (whole, killed))
    assert all((first[name] == second[name]).all() for name in first)
    assert (whole / "steps.tsv").read_text() == (killed / "steps.tsv").read_text()


def test_divergence_ends_with_words(tiny, tmp_path) -> None:  # noqa: F811
    with pytest.raises(InputError, match="lower learning_rate"):
        train(tiny, tmp_path, stage("reranker", learning_rate=1e9, max_grad_norm=1e9, warmup_steps=0, epochs=9.0))


def test_an_electra_encoder_is_trained_too(tiny, tmp_path) -> None:  # noqa: F811
    folder = encoder(tmp_path / "e", tiny.encoder, kind="electra")
    found = train(tiny, tmp_path, stage("reranker", epochs=0.5), encoder=folder)
    assert transformers.AutoConfig.from_pretrained(found).architectures == ["ElectraForSequenceClassification"]
    assert checkpoint.check(found, "reranker")["max_length"] == 48
