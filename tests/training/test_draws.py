"""Every draw follows the numbers of its key: the same for equal ones, another one for each that
differs.
"""

from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import pytest
import torch
from safetensors.torch import load_file
from tiny_objectives import first, network_of
from tiny_training import gradients, prepared, simple_task, stage, train

from cdmae.finetuning.groups import Drawing, Examples
from cdmae.finetuning.selection import select
from cdmae.pretraining import trainer
from cdmae.runs import Run
from cdmae.training import setup
from cdmae.training.ranks import Ranks


def gradient_of(learn, network, **key):
    network.zero_grad(set_to_none=True)
    learn(network, **key)
    return torch.cat([each.flatten() for each in gradients(network).values()])


def of_pretraining(tiny, name="mae", *, parts=False):
    """parts: whether a step consists of several micro-batches or chunks."""
    network = network_of(name)
    network.model.config.hidden_dropout_prob = 0.5
    rows = 10 if parts else 4096
    return network, partial(trainer.learn, batch=first(name), rows=rows, group=Ranks())


def of_contrast(tiny, *, parts=False):
    return of_pretraining(tiny, "cocondenser", parts=parts)


def of_retriever(tiny, *, parts=False):
    return of_finetuning(tiny, stage("retriever", chunk=2 if parts else 64))


def of_reranker(tiny, *, parts=False):
    return of_finetuning(tiny, stage("reranker", chunk=4 if parts else 64, forward_factor=1))


def of_finetuning(tiny, recipe):
    model, batch = prepared(tiny, recipe, tiny.encoder)
    training = simple_task(model, recipe)

    def learn(_, *, seed, step):
        replace(training, seed=seed).learn(batch, step)

    return model.network, learn


@pytest.mark.parametrize("learning", [of_pretraining, of_contrast, of_retriever, of_reranker])
def test_dropout_follows_seed_and_step(tiny, learning):
    network, learn = learning(tiny)
    one = gradient_of(learn, network, seed=1, step=0)
    assert torch.equal(one, gradient_of(learn, network, seed=1, step=0))
    assert not torch.equal(one, gradient_of(learn, network, seed=2, step=0))
    assert not torch.equal(one, gradient_of(learn, network, seed=1, step=1))


@pytest.mark.parametrize("learning", [of_pretraining, of_contrast, of_retriever, of_reranker])
def test_every_part_of_a_step_has_dropout_of_its_own(tiny, learning, monkeypatch):
    """Each micro-batch or chunk draws with its own key of seed, step, part and process."""
    keys = []
    original = setup.generator

    def generator(on, *key):
        keys.append(key)
        return original(on, *key)

    network, learn = learning(tiny, parts=True)
    monkeypatch.setattr(setup, "generator", generator)
    learn(network, seed=1, step=0)
    parts = [(part, rank) for _, purpose, _, part, rank in keys if purpose == "dropout"]
    expected = {(part, 0) for part in range(len(parts))}
    assert set(parts) <= expected and len(set(parts)) > 1


@pytest.fixture
def examples():
    """A function of the seed: twelve queries whose lists are equal, in 400 passages."""
    lists = [np.arange(10) for _ in range(12)]
    run = Run.of(lists, [np.arange(10, 0, -1, dtype=np.float32)] * 12)
    pairs = [(query, query % 10, 1) for query in range(12)]
    qrels = pd.DataFrame(pairs, columns=["query", "passage", "grade"]).astype("int32")

    def of(seed, random_negatives=5):
        drawing = Drawing("train", 10, 4, random_negatives, seed)
        texts = np.arange(400)
        found, _ = select(run, qrels, texts, drawing, pd.Series(range(12)))
        return Examples(**found, texts=texts, drawing=drawing)

    return of


def test_random_negatives_follow_seed_and_query(examples):
    one, again, other = examples(1), examples(1), examples(2)
    drawn = [one.pool(query)[-5:].tolist() for query in range(12)]
    assert drawn == [again.pool(query)[-5:].tolist() for query in range(12)]
    assert len(set(map(tuple, drawn))) == 12
    assert all(drawn[query] != other.pool(query)[-5:].tolist() for query in range(12))


def test_groups_follow_seed_epoch_and_query(examples):
    """Without random negatives, which follow seed and query themselves: equal pools, in the order
    of the draws.
    """
    one, other = (examples(seed, random_negatives=0) for seed in (1, 2))
    rows = np.array([2, 3, 4, 5])
    drawn = one.draw(rows, 0)[:, 1:]
    assert (drawn == one.draw(rows[::-1], 0)[::-1, 1:]).all(), "whatever else is in the batch"
    found = {tuple(row) for row in drawn.tolist()}
    found |= {tuple(row) for row in one.draw(rows, 1)[:, 1:].tolist()}
    found |= {tuple(row) for row in other.draw(rows, 0)[:, 1:].tolist()}
    assert len(found) >= 11, "9 x 8 x 7 groups are possible"


def test_the_order_of_queries_follows_seed_and_epoch(examples):
    one, other = examples(1), examples(2)
    assert (one.order(0, 3) == examples(1).order(0, 3)).all()
    assert (one.order(0, 3) != one.order(1, 3)).any()
    assert (one.order(0, 3) != other.order(0, 3)).any()


def test_the_new_head_of_a_reranker_follows_the_seed(tiny, tmp_path):
    recipe = stage("reranker", epochs=0.25, learning_rate=1e-9)
    folders = [tmp_path / str(seed) for seed in (1, 2)]
    one, other = (
        load_file(train(tiny, folder, recipe, seed=int(folder.name)) / "model.safetensors")
        for folder in folders
    )
    new = [name for name in one if (one[name] - other[name]).abs().max() > 1e-3]
    assert any(name.startswith("classifier") for name in new)
