"""Benchmarks compare forms with the same loss, in processes with the same set-up."""

import argparse
import importlib
from pathlib import Path

import pytest
import torch

from benchmarks import encoding, finetuning, multi, pretraining, search, sparse
from cdmae.training import setup


@pytest.fixture
def set_up(monkeypatch):
    """The numbers of threads that processes were set up with; this one is left as it is."""
    asked = []
    monkeypatch.setattr(
        setup, "set_up", lambda threads: asked.append(threads) or torch.device("cpu")
    )
    return asked


@pytest.mark.parametrize(
    "name", sorted(path.stem for path in Path(encoding.__file__).parent.glob("[a-z]*.py"))
)
def test_every_benchmark_finds_what_it_measures(name):
    importlib.import_module(f"benchmarks.{name}")


class Line:
    """Asks for one step, and keeps the answer."""

    def __init__(self):
        self.asked = iter([True, False])
        self.answers = []

    def recv(self):
        return next(self.asked)

    def send(self, answer):
        self.answers.append(answer)


@pytest.mark.parametrize("objective", pretraining.PUBLISHED)
def test_both_forms_of_a_pretraining_step_have_the_same_loss(objective, set_up, monkeypatch):
    monkeypatch.setitem(pretraining.SIZES, "toy", (2, 64, 1))
    given = argparse.Namespace(
        size="toy", vocabulary=300, length=32, batch=6, threads=1, objective=objective
    )
    losses = []
    for form in ("naive", "ours"):
        line = Line()
        pretraining.work(form, given, line)
        losses.append(line.answers[0][1])
    assert losses[1] == pytest.approx(losses[0], rel=1e-5)
    assert set_up == [1, 1]


def test_all_forms_of_a_finetuning_step_have_the_same_loss_and_gradient(set_up, monkeypatch):
    monkeypatch.setitem(finetuning.SIZES, "toy", (2, 64, 300, 12, 24))
    given = argparse.Namespace(size="toy", queries=4, group=3, chunk=5, threads=1, repeats=1)
    first, *others = [
        finetuning.measure(form, given) for form in finetuning.FORMS if form != "ours_bf16"
    ]
    for other in others:
        assert other["loss"] == pytest.approx(first["loss"], rel=1e-5)
        assert other["gradient"] == pytest.approx(first["gradient"], rel=1e-4)
    assert set_up == [1] * 4


@pytest.mark.parametrize("head", [sparse, multi])
def test_all_forms_of_a_step_have_the_same_loss_and_gradient(head, set_up, monkeypatch):
    monkeypatch.setitem(finetuning.SIZES, "toy", (2, 64, 300, 12, 24))
    given = argparse.Namespace(size="toy", queries=4, group=3, chunk=5, threads=1, repeats=1)
    first, *others = [head.measure(form, given) for form in head.FORMS]
    for other in others:
        assert other["loss"] == pytest.approx(first["loss"], rel=1e-5)
        assert other["gradient"] == pytest.approx(first["gradient"], rel=1e-4)


def test_all_forms_of_encoding_have_the_same_vectors(set_up, monkeypatch):
    monkeypatch.setitem(finetuning.SIZES, "toy", (2, 64, 300, 12, 24))
    given = argparse.Namespace(size="toy", passages=20, threads=1, repeats=1)
    first, *others = [
        encoding.measure(form, given)["vectors"] for form in encoding.FORMS if form != "ours_bf16"
    ]
    for other in others:
        torch.testing.assert_close(torch.tensor(other), torch.tensor(first), atol=1e-5, rtol=1e-4)
    assert set_up == [1] * 3


def test_all_forms_of_maxsim_have_the_same_scores(capsys):
    given = argparse.Namespace(passages=30, queries=3, dimensions=16, depth=10, threads=1)
    search.multi_vectors(given)
    assert "10 candidates of 30 passages" in capsys.readouterr().out
