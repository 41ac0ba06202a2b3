"""Dropout and new weights follow the numbers of their keys: the same for equal ones, others for each
that differs.
"""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from tiny_objectives import first, network_of, reader
from tiny_training import gradients, stage, task_in_float64

from cdmae.finetuning.task import Inputs
from cdmae.pretraining import trainer
from cdmae.training import setup
from cdmae.training.ranks import Ranks
from cdmae.training.state import State


def gradient_of(learn, network, **key):
    network.zero_grad(set_to_none=True)
    learn(network, **key)
    return torch.cat([each.flatten() for each in gradients(network).values()])


def of_pretraining(tiny, name="mae", *, parts=False):
    """parts: whether a step consists of several micro-batches or chunks."""
    task = trainer.PretrainingTask(network_of(name), reader(name), State(Path(), "x", Ranks()), 1)
    task.network.model.config.hidden_dropout_prob = 0.5
    task.rows = 10 if parts else 4096

    def learn(_, *, seed, step):
        task.seed = seed
        task.learn(first(name), step)

    return task.network, learn


def of_contrast(tiny, *, parts=False):
    return of_pretraining(tiny, "cocondenser", parts=parts)


def of_retriever(tiny, *, parts=False):
    return of_finetuning(tiny, stage("retriever", chunk=2 if parts else 64))


def of_reranker(tiny, *, parts=False):
    return of_finetuning(tiny, stage("reranker", chunk=4 if parts else 64, forward_factor=1))


def of_finetuning(tiny, recipe):
    training = task_in_float64(tiny, recipe, tiny.encoder)
    batch = training.draw(np.arange(6), 0)

    def learn(_, *, seed, step):
        replace(training, seed=seed).learn(batch, step)

    return training.network, learn


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
    if learning is of_contrast:  # whose gradient is that of the pass before
        assert all(parts.count(part) == 2 for part in parts)


def test_each_purpose_has_numbers_of_its_own():
    keys = [(1, "start", 0), (2, "start", 0), (1, "head", 0), (1, "start", 1), (1, "start")]
    assert len({setup.seed_of(*key) for key in keys}) == len(keys)


def test_the_new_head_of_a_reranker_follows_the_seed(tiny):
    files = Inputs(**tiny.inputs())
    one, other = (files.model(stage("reranker"), seed).network.state_dict() for seed in (1, 2))
    new = [name for name in one if not torch.equal(one[name], other[name])]
    assert any(name.startswith("classifier") for name in new)
