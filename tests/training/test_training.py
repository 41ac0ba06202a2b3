"""Parts of the trainers: schedule, generators, precision, signals."""

import os
import signal

import pytest
import torch

from cdmae.training import setup


def test_learning_rate_by_hand():
    """10 steps, 4 of warm-up, peak 8: up in quarters, down in sixths."""
    rates = [setup.learning_rate(step, 10, 4, 8.0) for step in range(11)]
    assert rates == pytest.approx([0, 2, 4, 6, 8, 8 * 5 / 6, 8 * 4 / 6, 4, 8 * 2 / 6, 8 / 6, 0])
    assert [setup.learning_rate(step, 4, 0, 1.0) for step in (0, 2, 4)] == [1.0, 0.5, 0.0]
    # the paper's checkpoint: its step does not shorten the schedule
    assert setup.learning_rate(80_000, 86_346, 8_635, 3e-4) == pytest.approx(2.45e-5, rel=1e-3)


def test_generators_are_functions_of_their_key():
    """The same key gives the same numbers, every other key gives others; torch's own generator is
    left alone.
    """
    state = torch.get_rng_state()

    def draw(*key):
        return tuple(torch.rand(4, generator=setup.generator(torch.device("cpu"), *key)).tolist())

    keys = [(1, "a", 2, 3), (2, "a", 2, 3), (1, "b", 2, 3), (1, "a", 3, 2), (1, "a", 2), (1, "a")]
    assert len({draw(*key) for key in keys}) == len(keys)
    assert draw(*keys[0]) == draw(*keys[0])
    assert torch.equal(state, torch.get_rng_state())


@pytest.mark.parametrize(
    ("capability", "bf16", "chosen"),
    [((6, 1), False, "fp32"), ((7, 0), False, "fp16"), ((8, 0), True, "bf16")],
)
def test_precision_auto_follows_the_device(monkeypatch, capability, bf16, chosen):
    """Of a P40, a V100 and an A100, and of CPUs with and without instructions for bf16."""
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda _=None: capability)
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda including_emulation: bf16)
    monkeypatch.setattr(torch.cpu, "_is_avx512_bf16_supported", lambda: bf16)
    cpu = torch.device("cpu")
    assert setup.precision("auto", torch.device("cuda", 0)) == chosen
    assert setup.precision("auto", cpu) == ("bf16" if bf16 else "fp32")
    assert setup.precision("fp32", cpu) == "fp32"


@pytest.mark.parametrize("name", ["fp32", "bf16", "fp16"])
def test_products_have_the_precision_of_the_setting(name):
    dtypes = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}
    with setup.autocast(name, torch.device("cpu")):
        assert (torch.ones(2, 2) @ torch.ones(2, 2)).dtype == dtypes[name]


@pytest.mark.parametrize("number", setup.SIGNALS)
def test_signals_are_requests(number):
    """A repeated signal, too; afterwards the old handlers are back."""
    before = signal.getsignal(number)
    with setup.stopping() as stop:
        assert not stop.requested
        for _ in range(2):
            os.kill(os.getpid(), number)
        assert stop.requested == number.name
    assert signal.getsignal(number) == before
