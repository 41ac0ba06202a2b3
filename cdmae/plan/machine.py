"""Describe a machine: its cores, GPUs and memory, and the speed of networks."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass

from cdmae.errors import InputError

PEAK = {  # floating-point operations per second of a GPU: in bf16 or fp16, dense, and in float32
    "h200": (989e12, 67e12),
    "h100": (989e12, 67e12),
    "a100": (312e12, 19.5e12),
    "l40s": (362e12, 91.6e12),
    "v100": (125e12, 15.7e12),
    "rtx4090": (165e12, 82.6e12),
    "t4": (65e12, 8.1e12),
}
NOTES = {"v100": "needs torch's build for CUDA 12.6, see docs/clusters.md"}
UTILISED = 0.45  # achieved share of a GPU's peak, on real word-pieces
CORE = 100e9  # operations per second of a CPU core that runs a network


@dataclass(frozen=True)
class Machine:
    """Cores, GPUs and their kind, bytes of memory (None if unknown)."""

    cores: int
    gpus: int = 0
    gpu: str = ""
    memory: float | None = None

    def __post_init__(self) -> None:
        """Refuse GPUs of unknown speed."""
        if self.gpus and self.gpu not in PEAK:
            raise InputError(f"--gpu is {self.gpu or 'missing'}; allowed: {', '.join(PEAK)}")

    def rate(self, cores: int, gpus: int, float32: bool = False) -> float:
        """Return the operations per second of the GPUs, or of the cores if there are no GPUs.

        float32: whether GPUs compute in float32, and not in mixed precision.
        """
        return gpus * PEAK[self.gpu][float32] * UTILISED if gpus else cores * CORE


def here() -> Machine:
    """Describe this machine, with the GPUs that CUDA_VISIBLE_DEVICES and CDMAE_DEVICE allow."""
    try:
        listed = subprocess.run(
            ["nvidia-smi", "-L"], capture_output=True, text=True, check=False
        ).stdout
    except OSError:
        listed = ""
    gpus = [line for line in listed.splitlines() if line.startswith("GPU ")]
    if os.environ.get("CDMAE_DEVICE") == "cpu":
        gpus = []
    chosen = os.environ.get("CUDA_VISIBLE_DEVICES")
    if chosen is not None:
        gpus = gpus[: len([card for card in chosen.split(",") if card not in ("", "-1")])]
    gpu = ""
    if gpus:
        card = gpus[0].lower().replace(" ", "")
        gpu = next((name for name in PEAK if name in card), "a100")
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return Machine(len(os.sched_getaffinity(0)), len(gpus), gpu, memory)
