"""Pre-training: what it writes and measures, what it resumes from bit for bit, what it refuses."""

import dataclasses
import signal

import numpy as np
import pandas as pd
import pytest
import torch
from tiny_objectives import NAMES, as_objective
from tiny_pretraining import (
    PIECES,
    SETTINGS,
    START,
    after,
    cut_off,
    differences,
    run,
    source_of,
)
from tiny_training import together
from transformers import AutoTokenizer, BertForMaskedLM

from cdmae.config.objectives import Mae, NotPretrained
from cdmae.errors import InputError
from cdmae.files import read_json
from cdmae.models import architectures, checkpoint
from cdmae.pretraining import objectives, probes, trainer
from cdmae.pretraining.objectives._prediction import predict
from cdmae.training import loop, setup, state
from cdmae.training.loop import Schedule
from cdmae.training.ranks import Ranks


def curve(folder):
    return np.loadtxt(folder / "steps.tsv", skiprows=1)


def same_tables(one, other):
    names = ("steps.tsv", "bottleneck.tsv")
    return all((one / name).read_text() == (other / name).read_text() for name in names)


def test_what_is_written(pretrained):
    """A transformers folder with head and tokenizer, the curve, a record; no state is left."""
    model = BertForMaskedLM.from_pretrained(pretrained)
    assert model.config.hidden_size == 16
    assert AutoTokenizer.from_pretrained(pretrained).vocab_size == len(PIECES)
    rows = curve(pretrained)
    assert rows.shape == (7, 7)
    assert rows[:, 0].tolist() == list(range(1, 8))
    assert np.allclose(rows[:, 1], rows[:, 2] + rows[:, 3], atol=1e-4)
    about = read_json(pretrained / "about.json")
    assert (about["steps"], about["passages"], about["settings"]["batch"]) == (7, 20, 6)
    assert about["parameters"] == sum(each.numel() for each in model.parameters())


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGUSR1])
def test_resume_after_a_signal_ends_in_the_same_bits(
    pretrained, inputs, tmp_path, monkeypatch, number
):
    """The step is finished, saved and named; the next run goes on, weights and curve end the same."""
    cut_off(3, inputs, tmp_path, number=number, match=f"{number.name}: x is saved at step 3")
    assert not (tmp_path / "encoder").exists()
    after(5, lambda: pytest.fail("only four steps were left"), monkeypatch)
    assert differences(pretrained, run(inputs, tmp_path)) == []
    assert same_tables(pretrained, tmp_path / "encoder")


def test_resume_in_the_middle_of_an_interval_keeps_the_tables(inputs, tmp_path, monkeypatch):
    """Sums over an interval are part of the state."""
    schedule = trainer.schedule
    monkeypatch.setattr(
        trainer, "schedule", lambda *given: dataclasses.replace(schedule(*given), interval=3)
    )
    whole = run(inputs, tmp_path / "whole")
    assert curve(whole)[:, 0].tolist() == [3, 6, 7]
    cut_off(5, inputs, tmp_path / "cut")
    assert same_tables(whole, run(inputs, tmp_path / "cut"))


def test_the_papers_number_of_steps():
    """20 epochs of MS MARCO in batches of 2048; `take_step` does not shorten the schedule."""
    paper = Mae(start="s", collection="c", take_step=80_000)
    assert trainer.schedule(paper, 8_841_823) == Schedule(86_346, 8_635, 80_000, 50)
    one = dataclasses.replace(paper, epochs=0.001, take_step=0)
    assert trainer.schedule(one, 100) == Schedule(1, 0, 1, 1)
    with pytest.raises(InputError, match="take_step is 80000; expected up to 7"):
        trainer.schedule(dataclasses.replace(paper, epochs=2, batch=6), 20)


@pytest.mark.parametrize("name", NAMES)
def test_every_objective_goes_through_the_loop(name, inputs, tmp_path, monkeypatch):
    """An encoder and its curve are written; two processes learn what one does; a cut-off training
    ends the same.
    """
    settings = as_objective(name, SETTINGS, steps=3)
    whole = run(inputs, tmp_path / "whole", settings)
    assert BertForMaskedLM.from_pretrained(whole).config.hidden_size == 16
    assert curve(whole).shape == (3, 7)
    cut_off(2, inputs, tmp_path / "cut", settings)
    assert differences(whole, run(inputs, tmp_path / "cut", settings)) == []
    monkeypatch.setattr(trainer, "micro_batch", lambda *_: 30)

    def work(group: Ranks) -> dict[str, torch.Tensor]:
        model = models.pop()
        reader = source_of(inputs, settings)
        with state.opened(tmp_path / str(group.size), "x", group) as saved:
            network = objectives.objective(name)(model, settings, 1)
            loop.train(trainer.PretrainingTask(network, reader, saved, 1), saved)
        return model.state_dict()

    models = [checkpoint.start_encoder(START, inputs["tokenizer"], 1) for _ in range(3)]
    for model in models:
        model.config.hidden_dropout_prob = 0.0  # its draws are each micro-batch's own
    (alone,) = together(1, work)
    for other in together(2, work):
        for key, weight in alone.items():
            torch.testing.assert_close(other[key], weight, atol=1e-3, rtol=1e-2)


def test_objective_none_is_the_start_itself(inputs, tmp_path):
    """Bit for bit, without reading tokens or leaving a state."""
    encoder = run(inputs, tmp_path, NotPretrained(start="s"), tokens=None)
    found = BertForMaskedLM.from_pretrained(encoder).state_dict()
    start = checkpoint.start_encoder(START, inputs["tokenizer"], setup.seed_of(1, "start"))
    expected = start.state_dict()
    assert all(torch.equal(found[name], expected[name]) for name in expected)
    assert not (tmp_path / "state").exists()


def test_an_encoder_goes_on_from_another_with_its_weights(inputs, pretrained, tmp_path):
    """Hardly trained, it is the other one."""
    slow = dataclasses.replace(SETTINGS, learning_rate=1e-12)
    again = run(inputs, tmp_path, slow, after=pretrained)
    moved = BertForMaskedLM.from_pretrained(again).state_dict()
    for name, each in BertForMaskedLM.from_pretrained(pretrained).state_dict().items():
        assert (each - moved[name]).abs().max() < 1e-6, name


# --- the bottleneck's table -----------------------------------------------------------------------


CPU = torch.device("cpu")


def test_some_steps_are_measured_and_weights_are_the_same_bits_without(
    inputs, pretrained, tmp_path, monkeypatch
):
    found = pd.read_csv(pretrained / "bottleneck.tsv", sep="\t")
    assert found["step"].tolist() == [0, 1, 3, 5, 7] and found.notna().all().all()
    monkeypatch.setattr(probes, "steps", lambda last: set())
    without = run(inputs, tmp_path)
    assert differences(pretrained, without) == []
    assert not (without / "bottleneck.tsv").exists()


@pytest.mark.parametrize("name", ["mae", "cotmae"])
def test_the_losses_are_those_of_the_decoder_with_the_vectors_exchanged(inputs, name):
    """The exchanged vector is of another passage, also where a passage has two spans."""
    settings = as_objective(name, SETTINGS)
    model = checkpoint.start_encoder(START, inputs["tokenizer"], 1)
    network = objectives.objective(name)(model, settings, 1)
    reader = source_of(inputs, settings)
    found = probes.decoder_losses(network, probes.sample(reader, 4096, CPU), reader.spans)
    batch = next(iter(reader.read(0, 1)[0].batches(4096, CPU)))
    view = batch["decoder"]
    with torch.no_grad():
        h_b = network.bottleneck(network.encode(batch["encoder"])[0])
        others = torch.stack([h_b[row - reader.spans] for row in range(len(h_b))])
        for kind, each in (("true", h_b), ("shuffled", others), ("zero", 0 * h_b)):
            states = network.decode(each, view)
            head = architectures.head(network.model)
            values = predict(head, states, view.labels, view.weights)[1]
            assert found[kind] == pytest.approx(float(values[view.weights > 0].mean()), rel=1e-5)
    assert len(set(found.values())) == 3
