"""Shared parts of all trainers: device, precision, optimiser, schedule, random generators, signals.

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
from dataclasses import dataclass
from types import FrameType

import torch
from torch import nn

# termination request, Ctrl-C, and SLURM's warning before preemption
SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1)
NARROW = {"bf16": torch.bfloat16, "fp16": torch.float16}  # the dtype of a precision's products
TENSOR_CORES = (7, 0)  # the compute capability from which fp16 products are faster than float32's
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


def set_rate(optimiser: torch.optim.Optimizer, rate: float) -> None:
    """Set the learning rate of the next step."""
    for group in optimiser.param_groups:
        group["lr"] = rate


def learning_rate(step: int, steps: int, warmup: int, peak: float) -> float:
    """Return the learning rate of update `step` of `steps`, counted from 0.

    The rate rises linearly to `peak` at step `warmup`, then falls linearly to 0. This is the
    schedule of ``transformers.get_linear_schedule_with_warmup``.
    """
    if step < warmup:
        return peak * step / warmup
    return peak * max(0, steps - step) / max(1, steps - warmup)


def clip(parameters: Iterable[nn.Parameter], max_norm: float) -> torch.Tensor:
    """Scale gradients to a global norm of at most `max_norm`; return the norm before that."""
    return nn.utils.clip_grad_norm_(list(parameters), max_norm, foreach=True)


# --- signals --------------------------------------------------------------------------------------


@dataclass
class Stop:
    """The name of the signal that requested a stop, or an empty text."""

    requested: str = ""


@contextmanager
def stopping() -> Iterator[Stop]:
    """Within the context, turn SIGTERM, SIGINT and SIGUSR1 into a request for the loop to stop.

    A repeated signal has no further effect: Snakemake sends Ctrl-C twice, and the state must still
    be saved.
    """
    stop = Stop()
    before = {}

    def request(number: int, _: FrameType | None) -> None:
        stop.requested = signal.Signals(number).name

    # only the main thread can set handlers
    if threading.current_thread() is threading.main_thread():
        before = {number: signal.signal(number, request) for number in SIGNALS}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
