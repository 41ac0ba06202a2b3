"""Killed at any moment and started again: the same bits, whoever was killed."""

import os
import signal
from pathlib import Path

import pytest

from tests.workflow.conftest import SMOKE, end, wait_for

pytestmark = pytest.mark.workflow

TRAINERS = {
    "pretrain/cdmae": "encoders/cdmae",
    "train_retriever/cdmae-stage3": "trained/cdmae-stage3",
    "train_reranker/cdmae-reranker": "trained/cdmae-reranker",
}


def trainer(folder: Path) -> int:
    """The process that holds the lease of a state folder."""
    import json

    return wait_for(lambda: next((json.loads(path.read_text())["pid"] for path in folder.glob("*/lease.json")), 0))


def saved(folder: Path) -> int:
    """The newest step that a state was saved at."""
    return max((int(path.name[5:13]) for path in folder.glob("*/step-*.pt")), default=0)


def alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


def weights(folder: Path) -> bytes:
    return (folder / "model.safetensors").read_bytes()
