"""The loop of every trainer: its updates, its curve, its precision, and what stops it."""

import math
from dataclasses import replace

import numpy as np
import pytest
import tiny_pretraining
import torch
from tiny_objectives import as_objective
from tiny_training import TinyTask
from torch import nn

from cdmae.config.stages import Dense
from cdmae.errors import InputError
from cdmae.training import loop, setup, state

SETTINGS = Dense(collection="c", learning_rate=0.1, weight_decay=0.3, max_grad_norm=0.5)
INPUT = torch.tensor([3.0, -4.0])


class Linear(TinyTask):
    """Steps of a linear layer whose gradients grow.

    values: replace the numbers of each step; overflows: the steps with an infinite gradient.
    """

    def __init__(self, schedule, values=None, overflows=(), precision="fp32"):
        torch.manual_seed(1)
        super().__init__(nn.Linear(2, 1), replace(SETTINGS, precision=precision), schedule)
        self.values = values or {}
        self.overflows = overflows
        self.seen = []

    def learn(self, batch, step, scaler):
        self.seen.append(batch)
        self.scaler = scaler
        self.before = [weight.detach().clone() for weight in self.network.parameters()]
        loss = self.network(INPUT * (step + 1)).square().sum()
        scaler.scale(loss).backward()
        if step in self.overflows:
            self.network.bias.grad.fill_(torch.inf)
        return {"loss": loss.detach(), "spread": torch.ones(())} | self.values.get(step, {})


def train(task, folder):
    """Train; return the seconds, and the rows of the curve."""
    with state.opened(folder, "x") as saved:
        seconds, _ = loop.train(task, saved)
        return seconds, [list(map(float, row)) for row in saved.tables["steps.tsv"][1:]]


def test_an_update_is_adamw_with_clipped_gradients_and_decay_of_matrices(tmp_path):
    """Written by hand; the first of five steps is the warm-up."""
    task = Linear(loop.Schedule(steps=5, warmup=1, last=5, interval=1))
    network = task.network
    weights = [network.weight.detach().clone(), network.bias.detach().clone()]
    moments = [(torch.zeros_like(each), torch.zeros_like(each)) for each in weights]
    train(task, tmp_path)
    for step, rate in enumerate((0.0, 0.1, 0.075, 0.05, 0.025), 1):
        matrix, bias = (each.requires_grad_() for each in weights)
        loss = nn.functional.linear(INPUT * step, matrix, bias).square().sum()
        gradients = torch.autograd.grad(loss, weights)
        norm = torch.stack([each.norm() for each in gradients]).norm()
        assert norm > SETTINGS.max_grad_norm
        for index, decay in enumerate((SETTINGS.weight_decay, 0.0)):
            gradient = gradients[index] * SETTINGS.max_grad_norm / norm
            first, second = moments[index]
            first = 0.9 * first + 0.1 * gradient
            second = 0.999 * second + 0.001 * gradient**2
            moments[index] = first, second
            change = (first / (1 - 0.9**step)) / ((second / (1 - 0.999**step)).sqrt() + 1e-8)
            kept = weights[index].detach() * (1 - rate * decay)
            weights[index] = kept - rate * change
    torch.testing.assert_close(network.weight.data, weights[0], rtol=1e-4, atol=1e-6)
    torch.testing.assert_close(network.bias.data, weights[1], rtol=1e-4, atol=1e-6)


def test_the_last_step_may_come_before_the_end_of_the_schedule(tmp_path):
    """The curve has a row per interval, with its means, and one for the last step."""
    losses = {step: {"loss": torch.tensor(float(step))} for step in range(7)}
    task = Linear(loop.Schedule(steps=10, warmup=2, last=7, interval=3), losses)
    _, rows = train(task, tmp_path)
    assert task.seen == list(range(7))
    assert [row[:2] for row in rows] == [[3, 1], [6, 4], [7, 6]]
    assert [row[-1] for row in rows] == pytest.approx([0.1, 0.1 * 5 / 8, 0.1 * 4 / 8])


def test_the_time_of_a_training_includes_that_of_earlier_runs(tmp_path):
    schedule = loop.Schedule(steps=5, warmup=1, last=5, interval=1)
    train(Linear(schedule), tmp_path)
    with state.opened(tmp_path, "x") as saved:
        payload = saved.latest()
        saved.save(saved.step, payload | {"seconds": 3600.0})
    resumed = Linear(schedule)
    assert train(resumed, tmp_path)[0] >= 3600 and not resumed.seen


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"loss": math.nan}, "diverged: the loss of step 4 is nan"),
        ({"spread": 1e-6}, "collapsed: all inputs of step 4 are the same to the model"),
    ],
)
def test_a_failed_training_stops_before_it_is_saved(tmp_path, monkeypatch, wrong, message):
    """Between two rows of the curve, too; outputs may be equal during the warm-up."""
    monkeypatch.setenv("CDMAE_SAVE_SECONDS", "0")
    wrong = {name: torch.tensor(value) for name, value in wrong.items()}
    interval = 4 if "spread" in wrong else 9
    plan = loop.Schedule(steps=9, warmup=2, last=9, interval=interval)
    task = Linear(plan, {0: {"spread": torch.zeros(())}, 3: wrong})
    with pytest.raises(InputError, match=message + r".*; lower learning_rate \(now 0\.1\)"):
        train(task, tmp_path)
    assert [path.name for path in tmp_path.glob("*.pt")] == ["step-00000003.pt"]


# --- precision ------------------------------------------------------------------------------------


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


def test_a_step_whose_gradient_overflows_changes_nothing_but_the_scale(tmp_path):
    """Steps 3, 4, 6 and 9: the schedule continues, and the curve has the means of other steps."""
    plan = loop.Schedule(9, warmup=2, last=9, interval=2)
    task = Linear(plan, overflows=(2, 3, 5, 8), precision="fp16")
    _, rows = train(task, tmp_path)
    assert all(map(torch.equal, task.before, task.network.parameters()))
    assert task.scaler.get_scale() == 65536 / 16
    assert [row[0] for row in rows] == [2, 6, 8]
    assert np.isfinite(rows).all()


@pytest.mark.parametrize(
    ("precision", "message"),
    [
        ("fp16", "the gradients overflow in fp16, however small"),
        ("fp32", "the gradient norm of step 4 is inf"),
    ],
)
def test_a_gradient_that_overflows_at_any_scale_ends_the_training(tmp_path, precision, message):
    plan = loop.Schedule(40, warmup=2, last=40, interval=2)
    with pytest.raises(InputError, match=message):
        train(Linear(plan, overflows=range(3, 40), precision=precision), tmp_path)


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
