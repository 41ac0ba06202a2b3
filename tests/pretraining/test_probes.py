"""Probes: what they measure, when, and that the training ends in the same bits with and without."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from any_kind import as_objective
from tiny_pretraining import SETTINGS, START, cut_off, differences, run, source_of

from cdmae.evaluation.per_query import read_table
from cdmae.files import read_json
from cdmae.models import architectures, checkpoint
from cdmae.pretraining import objectives, probes
from cdmae.pretraining.objectives._prediction import predict
from cdmae.tokens.corpus import Tokens
from cdmae.training.ranks import Ranks
from cdmae.training.state import State

CPU = torch.device("cpu")
CLS, SEP = 2, 3


def test_weights_are_the_same_bits_with_and_without(inputs, pretrained, tmp_path, monkeypatch):
    monkeypatch.setattr(probes.Probes, "look", lambda self, step: None)
    without = run(inputs, tmp_path)
    assert differences(pretrained, without) == []
    assert (pretrained / "steps.tsv").read_text() == (without / "steps.tsv").read_text()
    assert not list(without.glob("bottleneck.tsv")) and not list(without.glob("retrieval.tsv"))


def test_a_few_steps_are_looked_at_also_by_a_resumed_training(inputs, pretrained, tmp_path):
    cut_off(4, inputs, tmp_path)
    again = run(inputs, tmp_path)
    for file in ("bottleneck.tsv", "retrieval.tsv"):
        found = read_table(pretrained / file)
        assert found["step"].tolist() == [0, 1, 3, 5, 7]
        assert found.notna().all().all()
        assert (again / file).read_text() == (pretrained / file).read_text()


@pytest.mark.parametrize(("last", "noted"), [(0.035, True), (0.042, False), (0.2, False)])
def test_an_encoder_that_is_worth_less_than_its_start_says_so(tmp_path, capsys, last, noted):
    """coCondenser at too high a rate ended at .035 and could not be fine-tuned, the paper's at .042
    could.
    """
    saved = State(tmp_path, "e", Ranks())
    assert probes.doubts(saved) == [], "a collection without passages that are long enough"
    saved.begin("retrieval.tsv", ["step", "rr", "passages"])
    for step, rr in ((0, 0.046), (500, 0.01), (1000, last)):
        saved.add("retrieval.tsv", step=step, rr=rr, passages=2000)
    notes = probes.doubts(saved)
    assert len(notes) == noted
    if noted:
        assert "MRR@10 of 3.5, but 4.6 before the pre-training" in notes[0]
    assert ("MRR@10 of" in capsys.readouterr().err) == noted


@pytest.mark.parametrize("name", ["mae", "mlm", "lexmae"])
def test_doubts_stay_with_an_encoder_whose_vector_is_trained(inputs, tmp_path, monkeypatch, name):
    monkeypatch.setattr(probes, "doubts", lambda saved: ["worth less"])
    folder = run(inputs, tmp_path, as_objective(name, SETTINGS))
    expected = ["worth less"] if name == "mae" else []
    assert read_json(folder / "about.json")["notes"] == expected


# --- the bottleneck -------------------------------------------------------------------------------


def looked(inputs, name="mae", rows=4096):
    """A network, its reader, and the probe's sample."""
    settings = as_objective(name, SETTINGS)
    model = checkpoint.start_encoder(START, inputs["tokenizer"], 1)
    network = objectives.objective(name)(model, settings, 1)
    reader = source_of(inputs, settings)
    return network, reader, probes.sample(reader, rows, CPU)


def test_the_losses_are_those_of_the_decoder_with_the_vectors_exchanged(inputs):
    network, reader, sample = looked(inputs)
    found = probes.decoder_losses(network, sample, 1)
    batch = next(iter(reader.read(0, 1)[0].batches(4096, CPU)))
    view = batch["decoder"]
    with torch.no_grad():
        h_b = network.bottleneck(network.encode(batch["encoder"])[0])
        others = torch.stack([h_b[row - 1] for row in range(len(h_b))])
        for name, each in (("true", h_b), ("shuffled", others), ("zero", 0 * h_b)):
            states = network.decode(each, view)
            head = architectures.head(network.model)
            values = predict(head, states, view.labels, view.weights)[1]
            assert found[name] == pytest.approx(float(values[view.weights > 0].mean()), rel=1e-5)
    assert len(set(found.values())) == 3


def test_the_exchanged_vector_is_of_another_passage_also_with_two_spans(inputs):
    network, _, sample = looked(inputs, "cotmae")
    exchanged = []
    decode = network.decode
    network.decode = lambda vectors, view: exchanged.append(vectors) or decode(vectors, view)
    probes.decoder_losses(network, sample, 2)
    true, shuffled, _ = exchanged
    assert shuffled.equal(torch.cat([true[-2:], true[:-2]]))


def test_passages_of_medium_length_are_measured_if_there_is_a_vector_and_a_neighbour(inputs):
    _, reader, sample = looked(inputs, rows=36)
    parts = list(reader.read(0, 1)[0].batches(36, CPU))
    assert len(parts) > 2
    assert sample.range == parts[len(parts) // 2].range
    assert looked(inputs, rows=1)[2] is None  # one passage at a time


# --- halves ---------------------------------------------------------------------------------------


def reader_of(passages, word_starts=None, length=30):
    """What `halves` reads of a reader, for passages given as lists of ids."""
    bounds = np.cumsum([0, *map(len, passages)])
    begins = np.ones(50, bool) if word_starts is None else word_starts
    tokens = Tokens(np.concatenate(passages).astype(np.uint16), bounds, bounds[:-1], begins)
    vocabulary = SimpleNamespace(
        word_starts=begins, cls_id=CLS, sep_id=SEP, of_model=lambda ids: ids
    )
    return SimpleNamespace(tokens=tokens, length=length, vocabulary=vocabulary)


def lists(*given, **how):
    read = probes.halves(reader_of(*given, **how))
    return [read[row].tolist() for row in range(len(read))]


def test_passages_are_cut_as_in_training_and_halved_but_no_word_is(monkeypatch):
    long = list(range(10, 40))
    parts = [long[:10], long[10:20], long[:8], long[8:17]]
    expected = [[CLS, *part, SEP] for part in parts]
    assert lists([long, [5] * 15, long[:17]], length=20) == expected
    starts_word = np.ones(50, bool)
    starts_word[[17, 18]] = False  # the middle of the passage, 18, is in the word that begins at 16
    expected = [[CLS, *range(10, 16), SEP], [CLS, *range(16, 26), SEP]]
    assert lists([list(range(10, 26))], starts_word) == expected
    monkeypatch.setattr(probes, "PASSAGES", 5)
    found = lists([[5 + row % 40] * 16 for row in range(41)])
    assert [each[1] for each in found[::2]] == [5, 15, 25, 35, 5]  # rows 0, 10, 20, 30, 40


def test_reciprocal_ranks_by_hand():
    """The right one is first, third and eleventh; equal scores stand before it."""
    scores = torch.full((12, 12), -1.0)
    scores[0, 0] = 1.0
    scores[1, :4] = torch.tensor([2.0, 1.0, 3.0, 0.5])
    scores[2, :] = 5.0
    scores[2, 2], scores[2, 11] = 4.0, 0.0  # ten before it
    scores[3:] = 1.0  # all alike
    found = probes.reciprocal_rank(scores, torch.eye(12))
    assert found == pytest.approx((1 + 1 / 3 + 0 + 0) / 12)
