"""Parts of the trainers: schedule, optimiser, generators, precision, signals."""

import os
import signal
from contextlib import nullcontext

import pytest
import torch

from cdmae.errors import InputError
from cdmae.training import setup


def test_learning_rate_by_hand():
    """10 steps, 4 of warm-up, peak 8: up in quarters, down in sixths."""
    rates = [setup.learning_rate(step, 10, 4, 8.0) for step in range(11)]
    assert rates == pytest.approx([0, 2, 4, 6, 8, 8 * 5 / 6, 8 * 4 / 6, 4, 8 * 2 / 6, 8 / 6, 0])
    # Without warm-up there is no division by zero; after the last step the rate stays 0.
    assert [setup.learning_rate(step, 4, 0, 1.0) for step in (0, 2, 4, 9)] == [1.0, 0.5, 0.0, 0.0]
    assert setup.learning_rate(1, 2, 2, 1.0) == 0.5
    # The paper's checkpoint: the horizon is not the snapshot.
    assert setup.learning_rate(80_000, 86_346, 8_635, 3e-4) == pytest.approx(2.45e-5, rel=1e-3)


def test_generators_are_functions_of_their_key():
    """The same key gives the same numbers; any other key gives others; the global generator is left
    alone.
    """
    cpu = torch.device("cpu")
    state = torch.get_rng_state()

    def draw(*key: int | str) -> tuple[float, ...]:
        return tuple(torch.rand(4, generator=setup.generator(cpu, *key)).tolist())  # type: ignore[arg-type]

    keys = [
        (1, "order", 2, 3),
        (2, "order", 2, 3),
        (1, "dropout", 2, 3),
        (1, "order", 3, 2),
        (1, "order", 2),
    ]
    assert len({draw(*key) for key in keys}) == len(keys)
    assert draw(*keys[0]) == draw(*keys[0])
    assert torch.equal(state, torch.get_rng_state())


@pytest.mark.parametrize(
    ("capability", "chosen"),
    [((6, 1), "fp32"), ((7, 0), "fp16"), ((7, 5), "fp16"), ((8, 0), "bf16"), ((9, 0), "bf16")],
)
def test_precision_auto_on_gpus(monkeypatch, capability, chosen):
    """P40, V100, T4, A100 and H100."""
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda _=None: capability)
    monkeypatch.setattr(
        torch.cuda, "is_bf16_supported", lambda including_emulation: chosen == "bf16"
    )
    assert setup.precision("auto", torch.device("cuda", 0)) == chosen


def test_a_gpu_that_torch_has_no_kernels_for_is_refused(monkeypatch):
    """A V100, for which the builds for CUDA 13 have none."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda _: "Tesla V100")
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda _: (7, 0))
    monkeypatch.setattr(torch.cuda, "get_arch_list", lambda: ["sm_75", "sm_90a", "compute_120"])
    with pytest.raises(InputError, match="Tesla V100 .* 7.0, .* kernels from 7.5 on"):
        setup.device()
    monkeypatch.setattr(torch.cuda, "get_arch_list", lambda: ["sm_50", "sm_70", "sm_90"])
    assert setup.device() == torch.device("cuda", 0)


def test_precision_auto_follows_the_device(monkeypatch):
    """The CPU computes in bf16 only where it has the instructions; an explicit choice is kept."""
    cpu = torch.device("cpu")
    for supported, chosen in ((True, "bf16"), (False, "fp32")):
        monkeypatch.setattr(
            torch.cpu, "_is_avx512_bf16_supported", lambda supported=supported: supported
        )
        assert setup.precision("auto", cpu) == chosen
    assert setup.precision("fp32", cpu) == "fp32"
    assert isinstance(setup.autocast("fp32", cpu), nullcontext)
    for name, dtype in (("bf16", torch.bfloat16), ("fp16", torch.float16)):
        with setup.autocast(name, cpu):
            assert (torch.ones(2, 2) @ torch.ones(2, 2)).dtype == dtype


@pytest.mark.parametrize("number", setup.SIGNALS)
def test_signals_are_requests(number):
    """A signal, also a repeated one, is noted; afterwards the old handlers are back."""
    before = signal.getsignal(number)
    with setup.stopping() as stop:
        assert not stop.requested
        for _ in range(2):
            os.kill(os.getpid(), number)
        assert stop.requested == number.name
    assert signal.getsignal(number) == before
