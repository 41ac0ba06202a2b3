"""The bottleneck's table: what it measures, when, and that the weights are the same bits without."""

import pytest
import torch
from any_kind import as_objective
from tiny_pretraining import SETTINGS, START, cut_off, differences, run, source_of

from cdmae.files import read_table
from cdmae.models import architectures, checkpoint
from cdmae.pretraining import objectives, probes
from cdmae.pretraining.objectives._prediction import predict

CPU = torch.device("cpu")


def test_weights_are_the_same_bits_without(inputs, pretrained, tmp_path, monkeypatch):
    monkeypatch.setattr(probes, "steps", lambda last: set())
    without = run(inputs, tmp_path)
    assert differences(pretrained, without) == []
    assert not (without / "bottleneck.tsv").exists()


def test_a_few_steps_are_measured_also_by_a_resumed_training(inputs, pretrained, tmp_path):
    cut_off(4, inputs, tmp_path)
    found = read_table(pretrained / "bottleneck.tsv")
    assert found["step"].tolist() == [0, 1, 3, 5, 7]
    assert found.notna().all().all()
    again = run(inputs, tmp_path) / "bottleneck.tsv"
    assert again.read_text() == (pretrained / "bottleneck.tsv").read_text()


def measured(inputs, name="mae"):
    """A network, its reader, and the measured passages."""
    settings = as_objective(name, SETTINGS)
    model = checkpoint.start_encoder(START, inputs["tokenizer"], 1)
    network = objectives.objective(name)(model, settings, 1)
    reader = source_of(inputs, settings)
    return network, reader, probes.sample(reader, 4096, CPU)


def test_the_losses_are_those_of_the_decoder_with_the_vectors_exchanged(inputs):
    network, reader, sample = measured(inputs)
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
    network, _, sample = measured(inputs, "cotmae")
    exchanged = []
    decode = network.decode
    network.decode = lambda vectors, view: exchanged.append(vectors) or decode(vectors, view)
    probes.decoder_losses(network, sample, 2)
    true, shuffled, _ = exchanged
    assert shuffled.equal(torch.cat([true[-2:], true[:-2]]))
