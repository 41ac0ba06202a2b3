"""Describe a machine: its cores and GPUs, and the speed of networks."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass

from cdmae import circumstances
from cdmae.errors import InputError

PEAK = {  # floating-point operations per second of a GPU in bf16 or fp16, dense
    "h200": 989e12, "h100": 989e12, "a100": 312e12, "l40s": 362e12, "v100": 125e12,
    "rtx4090": 165e12, "rtx3090": 71e12, "b200": 2250e12, "a40": 150e12, "a10": 125e12,
    "l4": 121e12, "t4": 65e12, "other": 65e12,
}  # fmt: skip
UTILISED = 0.45  # achieved share of a GPU's peak, on real word-pieces
CORE = 100e9  # operations per second of a CPU core that runs a network


@dataclass(frozen=True)
class Machine:
    """Cores, GPUs and their kind."""

    cores: int
    gpus: int = 0
    gpu: str = ""

    def __post_init__(self) -> None:
        """Refuse GPUs of unknown speed."""
        if self.gpus and self.gpu not in PEAK:
            raise InputError(f"--gpu is {self.gpu or 'missing'}; expected {', '.join(PEAK)}")

    @property
    def rate(self) -> float:
        """Return the operations per second of the GPUs, or of the cores if there are no GPUs."""
        return self.gpus * PEAK[self.gpu] * UTILISED if self.gpus else self.cores * CORE


def here() -> Machine:
    """Describe this machine, with the GPUs that CUDA_VISIBLE_DEVICES and CDMAE_DEVICE allow."""
    gpus = [name.lower().replace("rtx ", "rtx") for name in circumstances.gpus()]
    chosen = os.environ.get("CUDA_VISIBLE_DEVICES")
    if chosen is not None:
        gpus = gpus[: len([card for card in chosen.split(",") if card not in ("", "-1")])]
    if os.environ.get("CDMAE_DEVICE") == "cpu":
        gpus = []
    gpu = ""
    if gpus:
        words = re.findall(r"\w+", gpus[0])  # NVIDIA A100-SXM4-80GB, but not RTX A1000
        gpu = next((name for name in PEAK if name in words), "other")
    return Machine(circumstances.cores(), len(gpus), gpu)
