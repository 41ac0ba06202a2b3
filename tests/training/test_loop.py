"""The loop of every trainer: its updates, its curve, and what stops it."""

import math

import pytest
import torch
from tiny_training import TinyTask
from torch import nn

from cdmae.config.stages import Dense
from cdmae.errors import InputError
from cdmae.training import loop, state

SETTINGS = Dense(collection="c", learning_rate=0.1, weight_decay=0.3, max_grad_norm=0.5)
INPUT = torch.tensor([3.0, -4.0])


class Linear(TinyTask):
    """Steps of a linear layer whose gradients grow; values: replace the numbers of each step."""

    def __init__(self, schedule, values=None):
        torch.manual_seed(1)
        super().__init__(nn.Linear(2, 1), SETTINGS, schedule)
        self.values = values
        self.seen = []

    def learn(self, batch, step, scaler):
        self.seen.append(batch)
        loss = self.network(INPUT * (step + 1)).square().sum()
        loss.backward()
        return {"loss": loss.detach(), "spread": torch.ones(())} | (self.values or {}).get(step, {})


def train(task, folder):
    """Train; return the seconds, and the rows of the curve."""
    with state.opened(folder, "x") as saved:
        seconds, _ = loop.train(task, saved)
        rows = saved.tables["steps.tsv"]
    return seconds, rows


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
    task = Linear(loop.Schedule(steps=10, warmup=2, last=7, interval=3))
    _, rows = train(task, tmp_path)
    assert task.seen == list(range(7))
    assert [row[0] for row in rows] == ["step", "3", "6", "7"]
    assert [float(row[-1]) for row in rows[1:]] == pytest.approx([0.1, 0.1 * 5 / 8, 0.1 * 4 / 8])


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
        ({"loss": math.inf}, "diverged: the loss of step 4 is inf"),
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
