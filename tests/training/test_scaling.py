"""Precision: what `auto` chooses, and training in fp16, whose gradients overflow."""

import numpy as np
import pytest
import tiny_pretraining
import torch
from any_kind import as_objective
from tiny_training import TinyTask, stage, task_of
from torch import nn

from cdmae.config.stages import Dense
from cdmae.errors import InputError
from cdmae.models import checkpoint
from cdmae.training import loop, setup, state

CPU = torch.device("cpu")


@pytest.mark.parametrize(
    ("capability", "bf16", "chosen"),
    [((6, 1), False, "fp32"), ((7, 0), False, "fp16"), ((8, 0), True, "bf16")],
)
def test_precision_auto_follows_the_device(monkeypatch, capability, bf16, chosen):
    """Of a P40, a V100 and an A100, and of CPUs with and without instructions for bf16."""
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda _=None: capability)
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda including_emulation: bf16)
    monkeypatch.setattr(torch.cpu, "_is_avx512_bf16_supported", lambda: bf16)
    assert setup.precision("auto", torch.device("cuda", 0)) == chosen
    assert setup.precision("auto", CPU) == ("bf16" if bf16 else "fp32")
    assert setup.precision("fp32", CPU) == "fp32"


class Overflowing(TinyTask):
    """Steps of a linear layer; overflows: the steps with an infinite gradient."""

    def __init__(self, steps, overflows, precision="fp16"):
        torch.manual_seed(2)
        settings = Dense(collection="c", learning_rate=0.1, precision=precision)
        plan = loop.Schedule(steps, warmup=2, last=steps, interval=2)
        super().__init__(nn.Linear(3, 1), settings, plan)
        self.overflows = overflows

    def learn(self, batch, step, scaler):
        self.before = [weight.detach().clone() for weight in self.network.parameters()]
        self.scaler = scaler
        loss = self.network(torch.arange(3.0) + batch).square().mean()
        scaler.scale(loss).backward()
        if step in self.overflows:
            self.network.bias.grad.fill_(torch.inf)
        return {"loss": loss.detach(), "spread": torch.ones(())}


def train(task, folder):
    with state.opened(folder, "x") as saved:
        loop.train(task, saved)
        return np.array([list(map(float, row)) for row in saved.tables["steps.tsv"][1:]])


def test_a_step_whose_gradient_overflows_changes_nothing_but_the_scale(tmp_path):
    """Steps 3, 4, 6 and 9: the schedule continues, and the curve has the means of other steps."""
    task = Overflowing(9, overflows=(2, 3, 5, 8))
    rows = train(task, tmp_path)
    assert all(map(torch.equal, task.before, task.network.parameters()))
    assert task.scaler.get_scale() == 65536 / 16
    assert rows[:, 0].tolist() == [2, 6, 8]
    assert np.isfinite(rows).all()


def test_a_gradient_that_overflows_at_any_scale_ends_the_training(tmp_path):
    with pytest.raises(InputError, match="the gradients overflow in fp16, however small"):
        train(Overflowing(40, overflows=range(3, 40)), tmp_path / "long")
    with pytest.raises(InputError, match="the gradient norm of step 4 is inf"):
        train(Overflowing(8, overflows=[3], precision="fp32"), tmp_path / "wide")


def test_a_killed_training_resumes_with_its_scale(inputs, tmp_path):
    """A contrast of dot products has gradients that overflow at first."""
    how = {"precision": "fp16", "temperature": 0.05, "steps": 8}
    settings = as_objective("contriever", tiny_pretraining.SETTINGS, **how)
    whole = tiny_pretraining.run(inputs, tmp_path / "whole", settings)
    curve = (whole / "steps.tsv").read_text()
    assert 1 < len(curve.splitlines()) < 9, "some steps overflow, and not all"
    tiny_pretraining.cut_off(1, inputs, tmp_path / "cut", settings)
    resumed = tiny_pretraining.run(inputs, tmp_path / "cut", settings)
    assert not tiny_pretraining.differences(whole, resumed)
    assert (resumed / "steps.tsv").read_text() == curve


HEADS = {
    "retriever": {"alpha": 0.3},
    "sparse": {"flops_warmup": 2.0},
    "recall": {"pieces": "own", "target": "recall"},
    "multi": {},
    "unified": {"flops_warmup": 2.0},
    "joint": {},
    "reranker": {"rdrop": 1.0},
}
KINDS = {"recall": "sparse", "joint": "retriever"}


@pytest.mark.parametrize("head", HEADS)
def test_the_gradient_of_a_step_in_fp16_is_that_of_float32(tiny, teacher, tmp_path, head):
    """In several chunks: gradients are cached, and every one of them is scaled."""
    kind = KINDS.get(head, head)
    more = {"teacher": teacher} if head == "retriever" else {}
    if head == "joint":
        model = checkpoint.start_model(tiny.encoder, "reranker", **stage("reranker").model())
        checkpoint.save(tmp_path, model, tiny.encoder, {})
        more = {"joint_teacher": tmp_path}
    gradients = []
    for precision in ("fp32", "fp16"):
        recipe = stage(kind, chunk=4, precision=precision, **HEADS[head])
        model = checkpoint.start_model(tiny.encoder, recipe.kind, seed=3, **recipe.model())
        made = task_of(tiny, recipe, model, **more)
        scaler = setup.Scaler(precision, CPU)
        scaler.update(1024.0)  # at which nothing overflows
        made.learn(next(made.batches(1)), 1, scaler)
        weights = list(made.network.parameters())
        scale = scaler.get_scale()
        gradients.append(torch.cat([weight.grad.flatten() / scale for weight in weights]))
    exact, narrow = gradients
    # where products are about equal, a maximum over word-pieces is another one's in fp16
    allowed = 0.3 if head == "multi" else 0.05
    assert (narrow - exact).norm() < allowed * exact.norm()
