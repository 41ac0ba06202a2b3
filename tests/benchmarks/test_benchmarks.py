"""Benchmarks compare forms that learn and compute the same."""

import argparse
import importlib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from benchmarks import encoding, finetuning, forms, multi, pretraining, search, sparse
from cdmae.pretraining import trainer
from cdmae.training.ranks import Ranks

CPU = torch.device("cpu")


@pytest.mark.parametrize(
    "name", sorted(path.stem for path in Path(encoding.__file__).parent.glob("[a-z]*.py"))
)
def test_every_benchmark_finds_what_it_measures(name):
    importlib.import_module(f"benchmarks.{name}")


def results(benchmark, given):
    """Return the result of each form of a benchmark, by its name."""
    return {form: np.asarray(benchmark.start(form, given)()) for form in benchmark.FORMS}


@pytest.mark.parametrize("objective", pretraining.PUBLISHED)
def test_both_forms_of_a_pretraining_step_learn_the_same(objective, monkeypatch):
    """The peer in chunks; its gradient, too, is that of ours."""
    monkeypatch.setitem(pretraining.SIZES, "toy", (2, 64, 1))
    given = argparse.Namespace(
        size="toy", vocabulary=300, length=32, batch=6, chunk=4, objective=objective
    )
    found = results(pretraining, given)
    assert found["ours"] == pytest.approx(found["sorted"], rel=1e-5)
    assert found["ours_bf16"] == pytest.approx(found["sorted_bf16"], rel=1e-2)
    ours, peer = pretraining.networks(given)
    batch = pretraining.step(given)
    settings = replace(ours.settings, precision="fp32")
    gradients = []
    for learn in (
        lambda: peer.learn(batch, 4, CPU, "fp32"),
        lambda: trainer.learn(ours, batch, settings, Ranks(), seed=1, step=0),
    ):
        ours.zero_grad()
        learn()
        weights = [weight.grad for weight in ours.parameters() if weight.grad is not None]
        gradients.append(torch.cat([each.flatten() for each in weights]))
    assert (gradients[0] - gradients[1]).norm() < 1e-4 * gradients[0].norm()


@pytest.mark.parametrize("head", [finetuning, sparse, multi])
def test_all_forms_of_a_finetuning_step_have_the_same_loss_and_gradient(head, monkeypatch):
    monkeypatch.setitem(finetuning.SIZES, "toy", (2, 64, 300, 12, 24))
    given = argparse.Namespace(size="toy", queries=4, group=3, chunk=5)
    losses = {}
    gradients = {}
    for form in head.FORMS:
        model = head.network("toy")
        work = head.filled("toy", 4, 3) if head is multi else finetuning.batch("toy", 4, 3)
        losses[form] = head.step(form, model, work, given)
        weights = [weight.grad for weight in model.parameters() if weight.grad is not None]
        gradients[form] = torch.cat([each.flatten() for each in weights]).norm().item()
    for form in head.FORMS:
        near = 0.02 if form.endswith(forms.BF16) else 1e-5
        assert losses[form] == pytest.approx(losses["ours"], rel=near)
        assert gradients[form] == pytest.approx(gradients["ours"], rel=10 * near)


def test_all_forms_of_encoding_have_the_same_vectors(monkeypatch):
    monkeypatch.setitem(finetuning.SIZES, "toy", (2, 64, 300, 12, 24))
    found = results(encoding, argparse.Namespace(size="toy", passages=40))
    for form, vectors in found.items():
        near = {"atol": 0.05, "rtol": 0} if form.endswith(forms.BF16) else {"atol": 1e-5, "rtol": 0}
        np.testing.assert_allclose(vectors, found["ours"], **near)


def wrong(form, given):
    """A benchmark whose forms have other results."""
    return lambda: np.array([1.0 if form == "ours" else given.other])


def test_forms_take_turns_in_processes_and_must_agree(capsys):
    given = argparse.Namespace(threads=1, rounds=2, other=1.0)
    forms.compare(wrong, {"peer": "a peer", "ours": "ours"}, given, "nothing")
    assert "a peer" in capsys.readouterr().out
    given.other = 1.001
    with pytest.raises(SystemExit, match="ours differs by"):
        forms.compare(wrong, {"peer": "a peer", "ours": "ours"}, given, "nothing")


def test_all_forms_of_maxsim_have_the_same_scores(capsys):
    given = argparse.Namespace(passages=30, queries=3, dimensions=16, depth=10, threads=1)
    search.multi_vectors(given)
    assert "10 candidates of 30 passages" in capsys.readouterr().out
