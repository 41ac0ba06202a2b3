"""Snapshots of one training: the bits of a training that ends there, also after a kill; encoders of
their own.
"""

import dataclasses

import pytest
from tiny_pretraining import SETTINGS, cut_off, differences, run
from transformers import BertForMaskedLM

from cdmae.errors import InputError
from cdmae.evaluation.per_query import read_table
from cdmae.files import read_json
from cdmae.pretraining import snapshots


@pytest.fixture(scope="module")
def kept(inputs, tmp_path_factory):
    """The encoder of a training that keeps its steps 2 and 4."""
    return run(inputs, tmp_path_factory.mktemp("kept"), snapshots=[2, 4])


def test_a_snapshot_is_what_a_training_that_ends_there_gives(inputs, pretrained, kept, tmp_path):
    """And keeping it changes no bit."""
    ended = run(inputs, tmp_path / "ended", dataclasses.replace(SETTINGS, take_step=4))
    snapshots.take(name="early", encoder=kept, step=4, output=tmp_path / "early")
    assert differences(ended, tmp_path / "early") == []
    assert (tmp_path / "early/steps.tsv").read_text() == (ended / "steps.tsv").read_text()
    about, expected = (read_json(folder / "about.json") for folder in (tmp_path / "early", ended))
    assert about["name"] == "early"
    assert [about[key] for key in ("settings", "steps")] == [
        expected[key] for key in ("settings", "steps")
    ]
    weights = "model.safetensors"
    assert (tmp_path / "early" / weights).samefile(kept / "snapshots/00000004" / weights)
    assert differences(pretrained, kept) == []
    assert (kept / "steps.tsv").read_text() == (pretrained / "steps.tsv").read_text()


@pytest.mark.parametrize("step", [3, 4])
def test_a_resumed_training_has_the_same_snapshots(inputs, kept, tmp_path, step):
    """Stopped before and at a snapshot's step."""
    cut_off(step, inputs, tmp_path, snapshots=[2, 4])
    assert not (tmp_path / "encoder").exists()
    again = run(inputs, tmp_path, snapshots=[2, 4])
    for name in ("00000002", "00000004"):
        folder = f"snapshots/{name}"
        assert differences(kept / folder, again / folder) == []
        curves = [(each / folder / "steps.tsv").read_text() for each in (kept, again)]
        assert curves[0] == curves[1]


def test_steps_that_are_not_reached_or_not_kept_are_refused(inputs, tmp_path, pretrained):
    with pytest.raises(InputError, match="take_step is 8; expected up to 7, the last step"):
        run(inputs, tmp_path / "other", snapshots=[2, 8])
    with pytest.raises(InputError, match="has no snapshot of step 4; delete it and run again"):
        snapshots.take(name="early", encoder=pretrained, step=4, output=tmp_path / "early")


def test_an_encoder_goes_on_from_another_with_its_weights(inputs, pretrained, tmp_path):
    """Its first loss is lower than that of a start, and hardly trained it is the other one, head
    included.
    """
    slow = dataclasses.replace(SETTINGS, learning_rate=1e-12)
    again = run(inputs, tmp_path, slow, after=pretrained)
    first = [read_table(each / "steps.tsv")["encoder_loss"][0] for each in (pretrained, again)]
    assert first[1] < first[0]
    moved = BertForMaskedLM.from_pretrained(again).state_dict()
    for name, each in BertForMaskedLM.from_pretrained(pretrained).state_dict().items():
        assert (each - moved[name]).abs().max() < 1e-6, name
