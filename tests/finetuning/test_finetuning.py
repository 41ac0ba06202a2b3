"""Both trainers: a batch can be learnt, a killed training loses nothing, what goes wrong ends with
words.
"""

import os
import shutil
import signal

import pandas as pd
import pytest
import torch
from safetensors.torch import load_file
from tiny_training import QUERIES, encoder, stage, train

from cdmae.errors import Interrupted
from cdmae.files import read_json
from cdmae.finetuning.reranker import RerankerTask
from cdmae.finetuning.retriever import RetrieverTask

TASKS = {"retriever": RetrieverTask, "reranker": RerankerTask}
EASY = {"retriever": {}, "reranker": {"random_negatives": 0, "forward_factor": 1, "rdrop": 0.0}}


@pytest.mark.parametrize("kind", TASKS)
def test_one_batch_can_be_overfitted(tiny, tmp_path, kind):
    how = {
        "queries": QUERIES,
        "epochs": 30.0,
        "learning_rate": 5e-3,
        "group": 3,
        "depth": 2,
        "chunk": 100,
    }
    still = encoder(tmp_path / "e", tiny.encoder, dropout=0.0)
    folder = train(tiny, tmp_path, stage(kind, **how | EASY[kind]), encoder=still)
    curve = pd.read_csv(folder / "steps.tsv", sep="\t")
    assert curve["step"].tolist() == list(range(1, 31))
    assert curve["loss"].iloc[0] > 1
    assert curve["loss"].iloc[-1] < 0.05
    assert curve["accuracy"].iloc[-1] == 1


@pytest.mark.parametrize(
    ("kind", "taught"), [("retriever", False), ("retriever", True), ("reranker", False)]
)
def test_a_killed_training_ends_in_the_same_bits(
    tiny, tmp_path, teacher, kind, taught, monkeypatch
):
    scores = {"teacher": teacher} if taught else {}
    whole = train(tiny, tmp_path / "whole", stage(kind), **scores)
    steps = iter(range(100))
    learn = TASKS[kind].learn

    def interrupt(*given):
        if next(steps) == 4:
            os.kill(os.getpid(), signal.SIGUSR1)
        return learn(*given)

    monkeypatch.setattr(TASKS[kind], "learn", interrupt)
    with pytest.raises(Interrupted, match="SIGUSR1: tiny is saved at step 5"):
        train(tiny, tmp_path / "killed", stage(kind), **scores)
    assert not (tmp_path / "killed" / "model").exists()
    for computed in (8, 9):
        killed = train(tiny, tmp_path / "killed", stage(kind), **scores)
        assert next(steps) == computed, "a training whose result is lost computes no step again"
        first, second = (load_file(folder / "model.safetensors") for folder in (whole, killed))
        assert all((first[name] == second[name]).all() for name in first)
        assert (whole / "steps.tsv").read_text() == (killed / "steps.tsv").read_text()
        shutil.rmtree(killed)  # as Snakemake does with the output of a job that ends badly


@pytest.mark.parametrize(
    ("kind", "further"),
    [
        ("retriever", {}),
        ("multi", {}),
        ("sparse", {"pieces": "own"}),
        ("unified", {}),
        ("reranker", {}),
    ],
)
def test_a_training_goes_on_from_all_weights_of_a_trained_model(tiny, tmp_path, kind, further):
    """At a learning rate of nearly 0, the second model has the weights of the first, head included."""
    first = train(tiny, tmp_path / "a", stage(kind, **further))
    still = stage(kind, **further, learning_rate=1e-12, epochs=0.25)
    second = train(tiny, tmp_path / "b", still, after=first)
    files = sorted(path.relative_to(first) for path in first.rglob("*.safetensors"))
    assert files
    for file in files:
        before, after = (load_file(folder / file) for folder in (first, second))
        assert before.keys() == after.keys()
        for name, weights in before.items():
            torch.testing.assert_close(after[name], weights, rtol=0, atol=1e-8)
    assert read_json(second / "cdmae.json") == read_json(first / "cdmae.json")
