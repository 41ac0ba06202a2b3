"""Training retrievers and rerankers: schedule, temperature, warnings, teachers, gradients, resuming."""

import math

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from tiny_models import padded
from tiny_tokenizers import write_tokens
from tiny_training import (
    encoder,
    gradients,
    learn,
    same,
    stage,
    task_in_float64,
    task_of,
    train,
)

from cdmae.errors import InputError
from cdmae.files import read_json
from cdmae.finetuning import losses, reranker
from cdmae.finetuning.task import stage_schedule
from cdmae.models import checkpoint, transformer
from cdmae.models.packed import pack
from cdmae.retrieval import vectors as inference
from cdmae.tokens.corpus import Tokens, read_tokens
from cdmae.training import setup
from cdmae.training.loop import Schedule


@pytest.mark.parametrize(
    ("warmup_steps", "epochs", "expected"),
    [
        (11, 5.0, Schedule(20, 2, 20, 1)),  # reduced to a tenth, as more than half
        (10, 5.0, Schedule(20, 10, 20, 1)),
        (10, 0.1, Schedule(1, 0, 1, 1)),
        (0.25, 4.9, Schedule(20, 5, 20, 1)),  # epochs are rounded to whole steps
        (0.01, 5.0, Schedule(20, 1, 20, 1)),  # rounded up, but for the last step
    ],
)
def test_a_warm_up_longer_than_the_training_is_cut_aloud(warmup_steps, epochs, expected, capsys):
    recipe = stage("retriever", warmup_steps=warmup_steps, epochs=epochs)
    assert stage_schedule(recipe, 24, "tiny") == expected
    said = f"the warm-up is reduced to 2 steps from {warmup_steps:,}"
    assert (said in capsys.readouterr().err) == (warmup_steps > 10)


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
    batch = task_of(tiny, stage("retriever"), large).draw(np.arange(6), 0)
    vectors = torch.from_numpy(inference.encode(large, batch.sequences, torch.device("cpu")))
    expected = (vectors[:6] @ vectors[6:].T).std(1, correction=0).mean().item()

    divided, given = (task_of(tiny, stage("retriever", temperature=t), large) for t in (0, 1))
    temperature = divided.stage.temperature
    assert temperature == pytest.approx(expected, rel=0.1) and temperature > 40
    assert f"tiny: scores are divided by {temperature:g}" in capsys.readouterr().err
    first, second = (learn(task, batch)[0]["loss"].item() for task in (divided, given))
    assert first < 1.3 * math.log(24) < 5 * math.log(24) < second


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

    config = model.network.config
    if config.model_type == "bert":
        config = AutoConfig.for_model(**vars(config) | {"num_labels": 1})
    network = AutoModelForSequenceClassification.from_config(config).double().eval()
    network.load_state_dict(model.network.state_dict())
    return network


def logits_of(network, pairs):
    """The logits of pairs by transformers' own forward."""
    ids, types = (np.split(values, pairs.starts[1:-1]) for values in (pairs.values, pairs.types))
    return network(**padded(ids, types=types)).logits[:, 0]


@pytest.mark.parametrize(
    ("kind", "factor", "taught"), [("bert", 1, False), ("electra", 1, True), ("bert", 2, True)]
)
def test_loss_and_gradient_of_a_reranker_are_those_of_transformers(
    tiny, tmp_path, teacher, kind, factor, taught
):
    """A teacher adds the divergence of the passages to learn from."""
    folder = encoder(tmp_path / "e", tiny.encoder, dropout=0.0, kind=kind)
    how = {"rdrop": 0.0, "alpha": 1.3, "teacher_temperature": 2.0}
    recipe = stage("reranker", forward_factor=factor, **how)
    task = task_in_float64(tiny, recipe, folder, **{"teacher": teacher} if taught else {})
    batch = task.draw(np.arange(6), 0)
    numbers, found = learn(task, batch)
    network = of_transformers(task.model)
    logits = logits_of(network, batch.pairs).view(6, 4)
    chosen = torch.arange(4).expand(6, 4)
    if factor == 2:  # the positive and the best negative by the model's own scores
        best = 1 + logits[:, 1:].argmax(1)
        chosen = torch.stack([torch.zeros_like(best), best], dim=1)
    logits = logits.gather(1, chosen)
    loss = losses.listwise(logits)
    if taught:
        wanted = torch.from_numpy(batch.teacher).gather(1, chosen) / 2.0
        divergence = torch.nn.functional.kl_div(
            logits.log_softmax(1), wanted.log_softmax(1), reduction="batchmean", log_target=True
        )
        assert numbers["kl"].item() == pytest.approx(divergence.item(), rel=1e-9)
        loss = divergence + 1.3 * loss
    loss.backward()
    assert numbers["loss"].item() == pytest.approx(loss.item(), rel=1e-9)
    accuracy = (logits.argmax(1) == 0).double().mean()
    assert numbers["accuracy"].item() == pytest.approx(accuracy.item())
    same(found, gradients(network))


def test_both_passes_of_r_drop_learn_from_the_teacher():
    first, second, wanted = torch.randn(3, 5, 4, generator=torch.Generator().manual_seed(1))
    recipe = stage("reranker", rdrop=0.5, alpha=0.7, teacher_temperature=2.0)
    loss, numbers = reranker.objective(torch.stack([first, second]), recipe, wanted)
    divergence = (losses.kl(first, wanted / 2) + losses.kl(second, wanted / 2)) / 2
    torch.testing.assert_close(numbers["kl"], divergence)
    torch.testing.assert_close(loss, divergence + 0.7 * losses.rdrop(first, second, weight=0.5))


def test_the_head_computes_in_float32_under_autocast(tiny, tmp_path):
    """Scores rounded to bfloat16 tie; the head reads the states of bfloat16 products as they are."""
    recipe = stage("reranker", precision="bf16")
    task = task_in_float64(tiny, recipe, encoder(tmp_path / "e", tiny.encoder))
    packed = pack(task.draw(np.arange(6), 0).pairs)
    network = task.network.float()
    with setup.autocast("bf16", torch.device("cpu")):
        found = reranker.scores(network, packed)
        states = transformer.vectors(network.base_model, packed)
    expected = network.classifier(torch.tanh(network.bert.pooler.dense(states)))
    torch.testing.assert_close(found, expected[:, 0].float(), rtol=1e-5, atol=1e-6)
    assert len(found.unique()) == len(found)


# --- both -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "further"),
    [
        ("retriever", {}),
        ("multi", {}),
        ("sparse", {"pieces": "own"}),
        ("sparse", {"query_weights": "idf", "passage_flops": 0.01}),
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
