"""The loop's updates are those of AdamW written by hand: clipping, weight decay, schedule."""

import pytest
import torch
from tiny_training import TinyTask
from torch import nn

from cdmae.config.heads import Dense
from cdmae.training import loop, state

SETTINGS = Dense(collection="c", learning_rate=0.1, weight_decay=0.3, max_grad_norm=0.5)
INPUT = torch.tensor([3.0, -4.0])


@pytest.fixture
def network():
    torch.manual_seed(1)
    return nn.Linear(2, 1)


def train(network, folder):
    """Five steps, the first of which is the warm-up, whose gradients become larger."""

    class Growing(TinyTask):
        def learn(self, batch, step, scaler):
            loss = network(INPUT * (step + 1)).square().sum()
            loss.backward()
            return {"loss": loss.detach(), "spread": torch.ones(())}

    plan = loop.Schedule(steps=5, warmup=1, last=5, interval=1)
    with state.opened(folder, "x") as saved:
        return loop.train(Growing(network, SETTINGS, plan), saved)


def test_the_loop_is_adamw_with_clipped_gradients_and_decay_of_matrices(network, tmp_path):
    weights = [network.weight.detach().clone(), network.bias.detach().clone()]
    moments = [(torch.zeros_like(each), torch.zeros_like(each)) for each in weights]
    train(network, tmp_path)
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


def test_the_time_of_a_training_includes_that_of_earlier_runs(network, tmp_path, monkeypatch):
    """Of a run whose last state says that it took an hour."""
    monkeypatch.setenv("CDMAE_SAVE_SECONDS", "0")
    train(network, tmp_path)
    with state.opened(tmp_path, "x") as saved:
        payload = saved.latest()
        for path in tmp_path.glob("step-*"):
            path.unlink()
        saved.save(saved.step, payload | {"seconds": 3600.0})
    seconds, _ = train(network, tmp_path)
    assert seconds >= 3600
