"""Training retrievers and rerankers: schedule, temperature, warnings, teachers, gradients, resuming."""

import math
import os
import shutil
import signal
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from safetensors.torch import load_file
from tiny_models import padded
from tiny_training import (
    QUERIES,
    encoder,
    gradients,
    learn,
    prepared,
    same,
    stage,
    task_of,
    train,
)

from cdmae.errors import InputError, Interrupted
from cdmae.files import read_json
from cdmae.finetuning import losses, reranker, retriever
from cdmae.finetuning.objectives import objective
from cdmae.finetuning.reranker import RerankerTask
from cdmae.finetuning.retriever import RetrieverTask
from cdmae.finetuning.task import stage_schedule
from cdmae.models import checkpoint, transformer
from cdmae.models.packed import pack
from cdmae.retrieval import vectors as inference
from cdmae.tokens.corpus import Tokens, read_tokens, write_tokens
from cdmae.training import setup
from cdmae.training.loop import Schedule


@pytest.mark.parametrize(
    ("warmup_steps", "epochs", "expected"),
    [
        (11, 5.0, Schedule(20, 2, 20, 1)),  # reduced to a tenth, as more than half
        (10, 5.0, Schedule(20, 10, 20, 1)),
        (10, 0.1, Schedule(1, 0, 1, 1)),
        (0.25, 5.0, Schedule(20, 5, 20, 1)),
        (0.01, 5.0, Schedule(20, 1, 20, 1)),  # rounded up, but for the last step
    ],
)
def test_a_warm_up_longer_than_the_training_is_cut_aloud(warmup_steps, epochs, expected, capsys):
    recipe = stage("retriever", warmup_steps=warmup_steps, epochs=epochs)
    assert stage_schedule(recipe, 24, "tiny") == expected
    said = f"the warm-up is reduced to 2 steps from {warmup_steps:,}"
    assert (said in capsys.readouterr().err) == (warmup_steps > 10)


def test_a_batch_excludes_its_false_negatives(tiny):
    recipe = stage("retriever")
    model = checkpoint.start_model(tiny.encoder, "retriever", **recipe.model())
    task = task_of(tiny, recipe, model)
    rows = np.arange(QUERIES)
    examples = task.data.examples
    expected = examples.excluded(rows, examples.draw(rows, 0))
    assert expected.any()
    assert (task.draw(rows, 0).excluded == expected).all()


def test_a_temperature_of_0_divides_scores_by_their_spread_in_the_first_batch(
    tiny, tmp_path, capsys
):
    """The loss begins at that of guessing, however long the start's vectors are."""
    folder = encoder(tmp_path / "e", tiny.encoder, dropout=0.0)
    large = checkpoint.start_model(
        folder, "retriever", query_length=16, passage_length=32, precision="fp32"
    )
    norm = large.network.encoder.layer[-1].output.LayerNorm
    with torch.no_grad():
        norm.weight.mul_(30)  # vectors thirty times as long: the scores of a wide network
        norm.bias.mul_(30)
    recipe = stage("retriever")
    batch = task_of(tiny, recipe, large).draw(np.arange(6), 0)
    vectors = torch.from_numpy(inference.encode(large, batch.sequences, torch.device("cpu")))
    expected = (vectors[:6] @ vectors[6:].T).std(1, correction=0).mean().item()

    spread = retriever.spread_of_scores(large, batch, recipe, 1)
    assert spread == pytest.approx(expected, rel=5e-3) and spread > 40

    divided = task_of(tiny, stage("retriever", temperature=0.0), large).stage
    assert divided.temperature == pytest.approx(spread, rel=0.1)
    assert f"tiny: scores are divided by {divided.temperature:g}" in capsys.readouterr().err
    given = stage("retriever")
    first, second = (learn(large, batch, recipe)[0]["loss"].item() for recipe in (divided, given))
    assert first < 1.3 * math.log(24) < 5 * math.log(24) < second


@pytest.mark.parametrize(
    ("kind", "changed", "guess"),
    [
        ("retriever", {}, math.log(24)),
        ("retriever", {"in_batch": False}, math.log(4)),
        ("multi", {}, math.log(24)),
        ("unified", {}, 2 * math.log(24)),
    ],
)
def test_a_training_that_ends_at_the_loss_of_guessing_says_so(tiny, kind, changed, guess):
    """The loss of equal vectors is that of guessing, whatever the contrastive loss is."""
    recipe = stage(kind, **changed)
    assert retriever.guesses({"contrastive": 0.97 * guess}, recipe) == ""
    note = retriever.guesses({"contrastive": 0.99 * guess}, recipe)
    assert f"guessing has {guess:.3g}: the model has learnt nothing; lower learning_rate" in note
    if kind == "retriever":
        model, batch = prepared(tiny, recipe, tiny.encoder)
        batch = replace(batch, excluded=None)
        vectors = torch.ones(len(batch.sequences), 8)
        _, numbers = objective(vectors, batch, recipe)
        assert numbers["contrastive"].item() == pytest.approx(guess)


def test_a_run_of_others_teaches_as_a_reranker_with_its_scores(tiny, tmp_path, teacher):
    recipe = stage("retriever", random_negatives=0, epochs=1.0)
    folders = [
        train(tiny, tmp_path / key, recipe, **{key: teacher}) for key in ("teacher", "ranking")
    ]
    first, second = ((folder / "model.safetensors").read_bytes() for folder in folders)
    assert first == second


def test_tokens_of_another_tokenizer_and_a_length_beyond_the_positions_are_errors(tiny, tmp_path):
    found = read_tokens(tiny.tokens)
    more = np.append(found.word_starts, True)
    write_tokens(tmp_path / "t", Tokens(found.ids, found.starts, found.text_starts, more))
    with pytest.raises(InputError, match="another tokenizer"):
        train(tiny, tmp_path, stage("retriever"), tokens=tmp_path / "t")
    with pytest.raises(InputError, match="passage_length is 144; expected up to 64"):
        train(tiny, tmp_path, stage("retriever", passage_length=144))


# --- rerankers ------------------------------------------------------------------------------------


def of_transformers(model):
    """The same weights in the class of transformers, which has a forward pass of its own."""
    from transformers import AutoConfig, AutoModelForSequenceClassification

    values = (
        {**vars(model.network.config), "num_labels": 1}
        if model.network.config.model_type == "bert"
        else None
    )
    config = AutoConfig.for_model(**values) if values else model.network.config
    network = AutoModelForSequenceClassification.from_config(config).double().eval()
    network.load_state_dict(model.network.state_dict())
    return network


def logits_of(network, pairs):
    """The logits of pairs by transformers' own forward."""
    ids, types = (np.split(values, pairs.starts[1:-1]) for values in (pairs.values, pairs.types))
    return network(**padded(ids, types=types)).logits[:, 0]


@pytest.mark.parametrize("kind", ["bert", "electra"])
def test_the_gradient_of_a_reranker_is_that_of_transformers(tiny, tmp_path, kind):
    folder = encoder(tmp_path / "e", tiny.encoder, dropout=0.0, kind=kind)
    recipe = stage("reranker", forward_factor=1, rdrop=0.0)
    model, batch = prepared(tiny, recipe, folder)
    numbers, found = learn(model, batch, recipe)
    network = of_transformers(model)
    loss = losses.listwise(logits_of(network, batch.pairs).view(6, 4))
    loss.backward()
    assert numbers["loss"].item() == pytest.approx(loss.item(), rel=1e-9)
    same(found, gradients(network))


@pytest.mark.parametrize("factor", [1, 2])
def test_a_teacher_adds_the_divergence_of_the_passages_to_learn_from(
    tiny, tmp_path, teacher, factor
):
    folder = encoder(tmp_path / "e", tiny.encoder, dropout=0.0)
    how = {"rdrop": 0.0, "alpha": 0.3, "teacher_temperature": 2.0}
    recipe = stage("reranker", forward_factor=factor, **how)
    model, batch = prepared(tiny, recipe, folder, teacher)
    numbers, found = learn(model, batch, recipe)
    network = of_transformers(model)
    logits = logits_of(network, batch.pairs).view(6, 4)
    taught = torch.from_numpy(batch.teacher).double() / 2.0
    if factor == 2:  # the positive and the best negative by the model's own scores
        kept = torch.stack([torch.zeros(6, dtype=torch.long), 1 + logits[:, 1:].argmax(1)], dim=1)
        logits, taught = logits.gather(1, kept), taught.gather(1, kept)
    divergence = torch.nn.functional.kl_div(
        logits.log_softmax(1), taught.softmax(1), reduction="batchmean"
    )
    loss = divergence + 0.3 * losses.listwise(logits)
    loss.backward()
    assert numbers["kl"].item() == pytest.approx(divergence.item(), rel=1e-6)
    assert numbers["loss"].item() == pytest.approx(loss.item(), rel=1e-6)
    same_direction = sum((found[key] * value).sum() for key, value in gradients(network).items())
    lengths = [
        sum(value.square().sum() for value in each.values()).sqrt()
        for each in (found, gradients(network))
    ]
    assert same_direction / lengths[0] / lengths[1] == pytest.approx(1, abs=1e-9)


@pytest.mark.parametrize("kind", ["bert", "electra"])
def test_the_head_computes_in_float32_under_autocast(tiny, tmp_path, kind):
    """Scores rounded to bfloat16 tie; the head reads the states of bfloat16 products as they are."""
    folder = encoder(tmp_path / "e", tiny.encoder, kind=kind)
    recipe = stage("reranker", precision="bf16")
    model, batch = prepared(tiny, recipe, folder)
    packed = pack(batch.pairs)
    network = model.network.float()
    with setup.autocast("bf16", torch.device("cpu")):
        found, states = (
            reranker.scores(network, packed),
            transformer.vectors(network.base_model, packed),
        )
    if kind == "bert":
        expected = network.classifier(torch.tanh(network.bert.pooler.dense(states)))
    else:
        expected = network.classifier(states[:, None])  # it reads the first row of each sequence
    torch.testing.assert_close(found, expected[:, 0].float(), rtol=1e-5, atol=1e-6)
    assert len(found.unique()) == len(found)


# --- both -----------------------------------------------------------------------------------------


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
