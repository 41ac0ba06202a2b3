"""Shared parts of all trainers: device, precision, random generators, optimiser, schedule, signals.

`cdmae.training.loop` and the trainers call these functions. None of them uses torch's global
generator.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import signal
import threading
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from types import FrameType

import torch
from torch import Tensor, nn

from cdmae.errors import InputError

# termination request, Ctrl-C, and SLURM's warning before preemption
SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1)
NARROW = {"bf16": torch.bfloat16, "fp16": torch.float16}  # the dtype of a precision's products
TENSOR_CORES = (7, 0)  # the compute capability from which fp16 products are faster than float32's
LEAST_SCALE = 0.005  # at a smaller scale of the loss, no gradient needs to overflow
M_TRIM_THRESHOLD = -1  # of malloc.h
M_MMAP_MAX = -4


# --- the machine ----------------------------------------------------------------------------------


def device() -> torch.device:
    """Return this process's GPU, if there is one (``LOCAL_RANK`` under torchrun), else the CPU."""
    if not torch.cuda.is_available():
        return torch.device("cpu")
    return torch.device("cuda", int(os.environ.get("LOCAL_RANK", 0)))


def set_up(threads: int) -> torch.device:
    """Set the number of CPU threads and the memory allocator for training; return the device."""
    torch.set_num_threads(max(1, threads))
    # Make glibc keep freed memory: mapping and zeroing it for every tensor costs a third of the
    # time.
    with suppress(AttributeError, OSError):  # another C library
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(M_MMAP_MAX, 0)
        mallopt(M_TRIM_THRESHOLD, 2**31 - 1)
    chosen = device()
    if chosen.type == "cuda":
        # `torch.set_float32_matmul_precision` keeps its default, "highest": TF32 has 11 bits,
        # and `precision: fp32` is for those who want float32's 24; bf16 is faster than TF32.
        torch.cuda.set_device(chosen)
    else:
        # Adam's moments of unused embeddings decay into slow denormal numbers.
        torch.set_flush_denormal(True)
    return chosen


def precision(name: str, on: torch.device) -> str:
    """Resolve ``auto`` on this device: ``bf16`` if its hardware multiplies bf16, else ``fp32``.

    GPUs with tensor cores that do not multiply bf16 (V100, T4) get ``fp16``.
    """
    if name != "auto":
        return name
    if on.type == "cuda":
        if torch.cuda.is_bf16_supported(including_emulation=False):
            return "bf16"
        return "fp16" if torch.cuda.get_device_capability(on) >= TENSOR_CORES else "fp32"
    supported = torch.cpu._is_avx512_bf16_supported()  # noqa: SLF001 (no public name)
    return "bf16" if supported else "fp32"


def scoring_precision(name: str, on: torch.device) -> str:
    """Return the precision for scoring with a model that was trained in precision `name`.

    It is float32 on the CPU and `name` on a GPU. Other programs also compute in float32 on a CPU
    and get the same scores there.
    """
    return "fp32" if on.type == "cpu" else precision(name, on)


def autocast(name: str, on: torch.device) -> AbstractContextManager[object]:
    """Make a context in which matrix products use a precision; weights stay float32.

    name: ``auto``, ``fp32``, ``bf16`` or ``fp16``.
    """
    chosen = precision(name, on)
    return torch.autocast(on.type, NARROW[chosen]) if chosen in NARROW else nullcontext()


class Scaler(torch.amp.GradScaler):
    """The scale of one training's loss in float16; in other precisions it does nothing.

    float16 has no numbers between 0 and 6e-8, where many gradients are. The loss is therefore
    multiplied by a scale before the backward pass, and the gradients are divided by it afterwards
    (Micikevicius et al. 2018, arXiv:1710.03740). If a gradient overflows, the step is skipped: it
    changes no weight, but counts as a step of the schedule, and the scale is halved. torch's scaler
    begins at 65,536 and doubles the scale after 2,000 steps without an overflow.

    Processes first add up their gradients. An overflow in one of them is then found in all.
    """

    def __init__(self, name: str, on: torch.device) -> None:
        """Scale the losses of a training in the precision `name`."""
        super().__init__(on.type, enabled=precision(name, on) == "fp16")
        # torch makes the scale on the first use; a process without texts would have none
        self.scale(torch.zeros((), device=on))

    def skips(self, gradient_norm: Tensor) -> bool:
        """Return whether the step of the last `update` was skipped.

        gradient_norm: the norm of all gradients, 0-d; in fp16, this waits for the device. Raises
        `InputError` if the gradients overflow at any scale.
        """
        if not self.is_enabled() or gradient_norm.isfinite():
            return False
        if self.get_scale() < LEAST_SCALE:
            raise InputError(
                "training diverged: the gradients overflow in fp16, however small the loss is "
                "scaled; lower learning_rate, or set precision to fp32"
            )
        return True


UNSCALED = Scaler("fp32", torch.device("cpu"))  # for a gradient outside a training


# --- randomness -----------------------------------------------------------------------------------


def seed_of(seed: int, purpose: str, *numbers: int) -> int:
    """Hash (seed, purpose, numbers) to 63 bits."""
    digest = hashlib.blake2b(repr((seed, purpose, *numbers)).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little") >> 1


def generator(on: torch.device, seed: int, purpose: str, *numbers: int) -> torch.Generator:
    """Make a generator on device `on`, seeded by (seed, purpose, numbers) and nothing else."""
    return torch.Generator(device=on).manual_seed(seed_of(seed, purpose, *numbers))


# --- optimiser and schedule -----------------------------------------------------------------------


def adamw(parameters: Iterable[nn.Parameter], weight_decay: float) -> torch.optim.AdamW:
    """Make a fused AdamW (beta 0.9, 0.999, eps 1e-8).

    Biases and the weights of LayerNorm do not decay, as in BERT.
    """
    trained = [weights for weights in parameters if weights.requires_grad]
    matrices = [weights for weights in trained if weights.ndim > 1]
    vectors = [weights for weights in trained if weights.ndim < 2]
    groups = [
        {"params": matrices, "weight_decay": weight_decay},
        {"params": vectors, "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=0.0, fused=True)


def learning_rate(step: int, steps: int, warmup: int, peak: float) -> float:
    """Return the learning rate of update `step` of `steps`, counted from 0.

    The rate rises linearly to `peak` at step `warmup`, then falls linearly to 0. This is the
    schedule of ``transformers.get_linear_schedule_with_warmup``.
    """
    if step < warmup:
        return peak * step / warmup
    return peak * max(0, steps - step) / max(1, steps - warmup)


# --- signals --------------------------------------------------------------------------------------


@contextmanager
def stopping() -> Iterator[list[str]]:
    """Yield a list that collects the names of signals: requests for the loop to stop.

    The signals are SIGTERM, SIGINT and SIGUSR1.

    A repeated signal has no further effect: Snakemake sends Ctrl-C twice, and the state must still
    be saved.
    """
    requested: list[str] = []
    before = {}

    def request(number: int, _: FrameType | None) -> None:
        requested.append(signal.Signals(number).name)

    # only the main thread can set handlers
    if threading.current_thread() is threading.main_thread():
        before = {number: signal.signal(number, request) for number in SIGNALS}
    try:
        yield requested
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
