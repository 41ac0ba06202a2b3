"""Looking at the bottleneck: the losses that it measures, and what the report shows of them."""

import numpy as np
import pytest
import torch
from any_kind import as_objective
from tiny_pretraining import SETTINGS, START, run, source_of

from cdmae.evaluation.per_query import read_table
from cdmae.models import architectures, checkpoint
from cdmae.pretraining import objectives
from cdmae.pretraining.objectives._prediction import predict
from cdmae.pretraining.probes import bottleneck
from cdmae.report import records
from cdmae.report.facts import Facts
from cdmae.report.frames import gather
from cdmae.report.sections.method import method

CPU = torch.device("cpu")


def network_of(inputs, settings=SETTINGS):
    model = checkpoint.start_encoder(START, inputs["tokenizer"], 1)
    return objectives.objective(settings.objective)(model, settings, 1)


def test_before_anything_is_learnt_the_loss_is_that_of_guessing(pretrained):
    found = read_table(pretrained / "bottleneck.tsv")
    assert found.columns.tolist() == ["step", *bottleneck.VECTORS]
    assert abs(found["true"][0] - np.log(50)) < 0.5  # of 50 word-pieces


def test_the_losses_are_those_of_the_decoder_with_the_vectors_exchanged(inputs):
    network, reader = network_of(inputs), source_of(inputs)
    found = bottleneck.look(network, reader, 4096, CPU)()
    batch = next(iter(source_of(inputs).read(0, 1)[0].batches(4096, CPU)))
    view = batch["decoder"]
    with torch.no_grad():
        h_b = network.bottleneck(network.encode(batch["encoder"])[0])
        others = torch.stack([h_b[row - 1] for row in range(len(h_b))])
        for name, each in (("true", h_b), ("shuffled", others), ("zero", 0 * h_b)):
            states = network.decode(each, view)
            values = predict(architectures.head(network.model), states, view.labels, view.weights)[
                1
            ]
            assert found[name] == pytest.approx(float(values[view.weights > 0].mean()), rel=1e-5)
    assert len(set(found.values())) == 3


def test_the_exchanged_vector_is_of_another_passage_also_with_two_spans(inputs):
    settings = as_objective("cotmae", SETTINGS)
    network, reader = network_of(inputs, settings), source_of(inputs, settings)
    exchanged = []
    decode = network.decode

    def recorded(vectors, view):
        exchanged.append(vectors)
        return decode(vectors, view)

    network.decode = recorded
    bottleneck.look(network, reader, 4096, CPU)()
    true, shuffled, _ = exchanged
    assert shuffled.equal(torch.cat([true[-2:], true[:-2]]))


def test_passages_of_medium_length_are_measured_and_never_a_single_one(inputs, monkeypatch):
    network, reader = network_of(inputs), source_of(inputs)
    measured = []
    monkeypatch.setattr(bottleneck, "losses", lambda network, batch, spans: measured.append(batch))
    few = 36  # rows of a micro-batch
    bottleneck.look(network, reader, few, CPU)()
    parts = list(source_of(inputs).read(0, 1)[0].batches(few, CPU))
    assert len(parts) > 2
    assert measured[0].range == parts[len(parts) // 2].range
    assert bottleneck.look(network, reader, 1, CPU) is None  # one passage at a time


def test_objectives_without_a_vector_to_exchange_are_not_looked_at_but_their_search_is_shown(
    inputs, tmp_path
):
    settings = as_objective("bowdpr", SETTINGS)
    assert (
        bottleneck.look(network_of(inputs, settings), source_of(inputs, settings), 4096, CPU)
        is None
    )
    assert not (run(inputs, tmp_path, settings) / "bottleneck.tsv").exists()
    trained = {"x": records.training(tmp_path / "encoder")}
    facts = Facts({"encoders": {"x": {"objective": "bowdpr"}}}, encoders=trained)
    found = method(facts, gather(facts))
    titles = [figure.title for figure in found["figures"]]
    assert titles == ["Half of a passage finds the other half"]


def test_the_page_shows_what_the_vector_saves_and_finds(pretrained):
    recorded = records.training(pretrained)
    facts = Facts({"encoders": {"x": {"objective": "mae"}}}, encoders={"x": recorded})
    saved, found = method(facts, gather(facts))["figures"]
    last = read_table(pretrained / "bottleneck.tsv").iloc[-1]
    assert saved.description.endswith(f" to {last['shuffled'] - last['true']:.3g}")
    last = read_table(pretrained / "retrieval.tsv").iloc[-1]
    assert found.description.endswith(f" to {100 * last['rr']:.3g}")
    assert method(Facts({}), gather(Facts({}))) is None
