"""A pre-training of some steps: its inputs, how it is run, cut off and compared."""

import os
import shutil
import signal
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from tiny_tokenizers import write_tokens
from transformers import BertConfig, BertTokenizer

from cdmae.config.encoders import Encoder
from cdmae.config.objectives import Mae, NotPretrained
from cdmae.config.starts import Start
from cdmae.errors import Interrupted
from cdmae.pretraining import trainer
from cdmae.pretraining.reader import Reader
from cdmae.tokens import tokenise
from cdmae.tokens.corpus import Tokens
from cdmae.training import loop

PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *(f"w{n}" for n in range(45))]
START = Start(
    collection="c",
    vocabulary=100,
    layers=2,
    hidden=16,
    heads=2,
    feedforward=24,
    positions=32,
    initializer=0.1,
)
SETTINGS = Mae(
    start="s",
    collection="c",
    decoder_masking="uniform",
    max_length=16,
    batch=6,
    steps=7,
    learning_rate=1e-2,
    precision="fp32",
)


FILES = [field.name for field in fields(trainer.Files)]


def write_inputs(folder: Path) -> dict[str, Path]:
    """Write a tokenizer and the tokens of twenty passages; where they lie, by the trainer's
    arguments.
    """
    BertTokenizer(vocab={piece: index for index, piece in enumerate(PIECES)}).save_pretrained(
        folder / "tokenizer"
    )
    rng = np.random.default_rng(0)
    starts = np.concatenate([[0], np.cumsum(rng.integers(1, 20, 20))])
    ids = rng.integers(5, len(PIECES), starts[-1]).astype(np.uint16)
    write_tokens(folder / "tokens", Tokens(ids, starts, starts[:-1], np.ones(len(PIECES), bool)))
    return {"tokenizer": folder / "tokenizer", "tokens": folder / "tokens"}


def run(
    inputs: dict[str, Path], folder: Path, settings: Encoder = SETTINGS, **changed: Any
) -> Path:
    """Pre-train, with the state in `folder`; the folder of the encoder."""
    how = {"name": "x", "settings": settings, "start": START, "seed": 1}
    given = inputs | changed
    files = {key: given.pop(key) for key in FILES if key in given}
    places = {"state": folder / "state", "output": folder / "encoder"}
    if places["output"].exists():  # whose state the workflow would have deleted
        shutil.rmtree(places["state"], ignore_errors=True)
    trainer.pretrain(**how | places | given, files=trainer.Files(**files))
    return folder / "encoder"


def started(checkpoint: Path, folder: Path) -> Path:
    """Write the encoder that a pipeline without pre-training begins with into a new folder; return
    its place.
    """
    tokenise.load_tokenizer(checkpoint).save_pretrained(folder / "tokenizer")
    start = {"settings": NotPretrained(start="s"), "start": Start(checkpoint=str(checkpoint))}
    return run({"tokenizer": folder / "tokenizer"}, folder, **start)


def source_of(inputs: dict[str, Path], settings: Encoder = SETTINGS) -> Reader:
    config = BertConfig(max_position_embeddings=32)
    return trainer.read(settings, config, trainer.Files(**inputs), 1)


def differences(one: Path, other: Path) -> list[str]:
    """The names of the weights that differ in any bit."""
    left, right = (load_file(each / "model.safetensors") for each in (one, other))
    assert left.keys() == right.keys()
    return [name for name in left if not torch.equal(left[name], right[name])]


def after(step: int, act: Callable[[], None], monkeypatch: pytest.MonkeyPatch) -> None:
    """Do something in the middle of an update."""
    original = loop.add_up
    calls = []

    def add_up(*arguments: Any) -> None:
        calls.append(1)
        if len(calls) == step:
            act()
        original(*arguments)

    monkeypatch.setattr(loop, "add_up", add_up)


def cut_off(
    step: int,
    *arguments: Any,
    number: int = signal.SIGTERM,
    match: str | None = None,
    **changed: Any,
) -> None:
    """Run a pre-training that gets a signal in the middle of a step, and ends with words."""
    with pytest.MonkeyPatch.context() as patch, pytest.raises(Interrupted, match=match):
        after(step, lambda: os.kill(os.getpid(), number), patch)
        run(*arguments, **changed)
