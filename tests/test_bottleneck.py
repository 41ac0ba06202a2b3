"""Looking at the bottleneck: what it measures, and that the training ends in the same bits with and without."""

import os
import signal
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from test_pretrain import SETTINGS, after, differences, inputs, run, whole  # noqa: F401 (fixtures)

from cdmae import bottleneck
from cdmae.errors import Interrupted
from cdmae.objectives._prediction import predict
from cdmae.report import facts
from cdmae.report.facts import Facts
from cdmae.report.sections import bottleneck as section


def rows(folder):
    """What was seen of a pre-training."""
    return pd.read_csv(folder / bottleneck.FILE, sep="\t")


def test_weights_are_the_same_bits_with_and_without(inputs, whole, tmp_path, monkeypatch):  # noqa: F811
    monkeypatch.setattr(bottleneck.Probe, "look", lambda *arguments: None)
    without = run(inputs, tmp_path)
    assert differences(whole, without) == []
    assert (whole / "steps.tsv").read_text() == (without / "steps.tsv").read_text()


def test_a_few_steps_are_looked_at_the_first_and_the_last_among_them(whole):  # noqa: F811
    found = rows(whole)
    assert found["step"].tolist() == [0, 1, 3, 5, 7]
    assert found.columns.tolist() == bottleneck.COLUMNS and np.isfinite(found.to_numpy()).all()
    assert abs(found["true"][0] - np.log(50)) < 0.5  # of 50 word-pieces, before anything is learnt


def test_a_resumed_training_has_seen_the_same(inputs, whole, tmp_path, monkeypatch):  # noqa: F811
    with monkeypatch.context() as patch:
        after(4, lambda: os.kill(os.getpid(), signal.SIGTERM), patch)
        with pytest.raises(Interrupted):
            run(inputs, tmp_path)
    again = run(inputs, tmp_path)
    assert (again / bottleneck.FILE).read_text() == (whole / bottleneck.FILE).read_text()
    assert not (tmp_path / "state" / bottleneck.FILE).exists()


def test_rows_of_steps_that_are_taken_again_are_left_out(inputs, whole, tmp_path):  # noqa: F811
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / bottleneck.FILE).write_text("step\ttrue\tshuffled\tzero\n3\t9\t9\t9\n")
    assert (run(inputs, tmp_path) / bottleneck.FILE).read_text() == (whole / bottleneck.FILE).read_text()


def test_the_losses_are_those_of_the_decoder_with_the_vectors_exchanged(inputs, monkeypatch, tmp_path):  # noqa: F811
    seen = {}

    def look(probe, step, limit, device):
        if step == 3:
            first = next(iter(probe._reader.read(0, 1)[0].batches(limit, device)))
            seen.update(network=probe._network, batch=first, found=bottleneck.losses(probe._network, first))
            with torch.no_grad():
                network, view = probe._network, first["decoder"]
                h_b = network.bottleneck(network.encode(first["encoder"])[0])
                others = torch.stack([h_b[row - 1] for row in range(len(h_b))])
                for name, each in (("true", h_b), ("shuffled", others), ("zero", 0 * h_b)):
                    states = network.decode(each, view)
                    values = predict(network.model.cls.predictions, states, view.labels, view.weights)[1]
                    seen[name] = float(values[view.weights > 0].mean())

    monkeypatch.setattr(bottleneck.Probe, "look", look)
    run(inputs, tmp_path)
    for name in ("true", "shuffled", "zero"):
        assert seen["found"][name] == pytest.approx(seen[name], rel=1e-5)
    assert len(set(seen["found"].values())) == 3


def test_objectives_without_a_vector_to_exchange_are_not_looked_at(inputs, tmp_path):  # noqa: F811
    made = run(inputs, tmp_path, replace(SETTINGS, objective="bowdpr"))
    assert not (made / bottleneck.FILE).exists()


def test_the_section_shows_what_the_vector_saves(whole):  # noqa: F811
    training = facts.training(whole)
    found = section.section(Facts({"encoders": {"x": {"objective": "mae"}}}, encoders={"x": training}))
    assert [figure.name for figure in found.figures] == ["bottleneck-worth", "bottleneck-x"]
    (table,) = found.tables
    last = rows(whole).iloc[-1]
    assert table.rows[-1][-1].value == pytest.approx(last["shuffled"] - last["true"], abs=1e-5)
    assert section.section(Facts({})) is None
