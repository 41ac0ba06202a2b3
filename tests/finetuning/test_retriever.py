"""Training a retriever: its schedule, temperature, warnings and teachers."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from tiny_training import (
    QUERIES,
    encoder,
    learn,
    prepared,
    stage,
    task_of,
    train,
)

from cdmae.errors import InputError
from cdmae.finetuning import retriever
from cdmae.finetuning.objectives import objective
from cdmae.finetuning.task import stage_schedule
from cdmae.models import checkpoint
from cdmae.retrieval import vectors as inference
from cdmae.tokens.corpus import Tokens, read_tokens, write_tokens
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
