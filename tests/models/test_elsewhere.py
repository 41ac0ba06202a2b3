"""Short-lived machines: a training goes on with another number of processes, from the same state to
the same model.

The global batch is a setting, so a state says nothing of who made it. Without dropout, whose draws
are each process's own, what is left are roundings.
"""

import contextlib
import threading

import pytest
import torch
from safetensors.torch import load_file
from tiny_pretraining import Killed
from tiny_training import encoder, stage, together

from cdmae.config.objectives import Mae
from cdmae.config.starts import Start
from cdmae.finetuning import reranker, retriever
from cdmae.finetuning.task import Inputs
from cdmae.models import checkpoint
from cdmae.pretraining import trainer
from cdmae.training import ranks, setup

MASKED = Mae(
    start="s",
    collection="c",
    decoder_masking="uniform",
    max_length=16,
    batch=10,
    steps=4,
    learning_rate=1e-3,
    precision="fp32",
)
HERE, ONE_AT_A_TIME = (
    threading.local(),
    threading.Lock(),
)  # transformers does not load in several threads


@pytest.fixture(autouse=True)
def threads(monkeypatch):
    """The processes of a training are threads; a state is saved after every step."""

    @contextlib.contextmanager
    def joined(device):
        yield HERE.group

    def alone(load):
        def locked(*given, **named):
            with ONE_AT_A_TIME:
                return load(*given, **named)

        return locked

    monkeypatch.setattr(ranks, "joined", joined)
    for name in ("start_encoder", "start_model", "save"):
        monkeypatch.setattr(checkpoint, name, alone(getattr(checkpoint, name)))
    monkeypatch.setenv("CDMAE_SAVE_SECONDS", "0")


def pre_training(folders, **where):
    files = trainer.Files(folders["encoder"], tokens=folders["tokens"])
    start = Start(checkpoint=str(folders["encoder"]))
    trainer.pretrain(name="x", settings=MASKED, start=start, files=files, seed=1, **where)


def train_retriever(folders, **where):
    recipe = stage("retriever", epochs=1.0)
    retriever.train(name="x", settings=recipe, files=Inputs(**folders), seed=1, **where)


def train_reranker(folders, **where):
    recipe = stage("reranker", epochs=1.0, forward_factor=1)
    reranker.train(name="x", settings=recipe, files=Inputs(**folders), seed=1, **where)


def run(train, folders, folder, size):
    """Train with `size` processes; the weights."""

    def work(group):
        HERE.group = group
        train(folders, state=folder / "state", output=folder / "output")

    together(size, work)
    return load_file(folder / "output/model.safetensors")


@pytest.mark.parametrize(
    ("train", "sizes"),
    [(pre_training, (1, 2)), (train_retriever, (2, 1)), (train_reranker, (1, 2))],
)
def test_it_goes_on_with_other_processes(tiny, tmp_path, monkeypatch, train, sizes):
    folders = tiny.inputs() | {"encoder": encoder(tmp_path / "encoder", tiny.encoder, dropout=0.0)}
    whole = run(train, folders, tmp_path / "whole", 1)
    first, second = sizes
    steps, original = [], setup.clip

    def clip(*given):
        steps.append(1)
        if len(steps) > 2 * first:
            raise Killed  # in the third step, all processes at once
        return original(*given)

    with monkeypatch.context() as patch, pytest.raises(Killed):
        patch.setattr(setup, "clip", clip)
        run(train, folders, tmp_path / "moved", first)
    assert max(path.name for path in (tmp_path / "moved/state").glob("step-*")).startswith(
        "step-00000002."
    )
    moved = run(train, folders, tmp_path / "moved", second)
    assert moved.keys() == whole.keys()
    for name, weight in whole.items():
        if name.endswith("key.bias"):
            # softmax cancels it: its gradient is rounding and nothing else, which Adam scales up
            continue
        torch.testing.assert_close(
            moved[name], weight, atol=2e-4, rtol=0, msg=lambda text, name=name: f"{name} {text}"
        )
