"""Snapshots of one training: the bits of a training that ends there, also after a kill; encoders of
their own.
"""

import dataclasses
import shutil
from pathlib import Path

import pytest
from tiny_pretraining import SETTINGS, Killed, cut_off, differences, run
from transformers import BertForMaskedLM

from cdmae.errors import InputError
from cdmae.evaluation.per_query import read_table
from cdmae.files import read_json
from cdmae.pretraining import snapshots, trainer


@pytest.fixture(scope="module")
def kept(inputs, tmp_path_factory):
    """The encoder of a training that keeps its steps 2 and 4."""
    return run(inputs, tmp_path_factory.mktemp("kept"), snapshots=[2, 4])


@pytest.fixture(scope="module")
def at_4(inputs, tmp_path_factory):
    """The encoder of a training that ends with step 4 of the same schedule."""
    return run(inputs, tmp_path_factory.mktemp("at4"), dataclasses.replace(SETTINGS, take_step=4))


def test_a_snapshot_is_what_a_training_that_ends_there_gives(kept, at_4, tmp_path):
    snapshots.take(name="early", encoder=kept, step=4, output=tmp_path / "early")
    assert differences(at_4, tmp_path / "early") == []
    assert (tmp_path / "early/steps.tsv").read_text() == (at_4 / "steps.tsv").read_text()
    about, expected = (read_json(folder / "about.json") for folder in (tmp_path / "early", at_4))
    assert about["name"] == "early"
    assert {key: about[key] for key in ("settings", "steps")} == {
        key: expected[key] for key in ("settings", "steps")
    }
    assert BertForMaskedLM.from_pretrained(tmp_path / "early").config.hidden_size == 16
    assert (tmp_path / "early/model.safetensors").samefile(
        kept / "snapshots/00000004/model.safetensors"
    )


def test_keeping_snapshots_changes_no_bit(pretrained, kept):
    assert differences(pretrained, kept) == []
    assert (kept / "steps.tsv").read_text() == (pretrained / "steps.tsv").read_text()
    assert [path.name for path in sorted((kept / "snapshots").iterdir())] == [
        "00000002",
        "00000004",
    ]


@pytest.mark.parametrize("step", [3, 4, 5])
def test_a_resumed_training_has_the_same_snapshots(inputs, kept, tmp_path, step):
    """Stopped before, at and behind a snapshot's step."""
    cut_off(step, inputs, tmp_path, snapshots=[2, 4])
    assert not (tmp_path / "encoder").exists()
    again = run(inputs, tmp_path, snapshots=[2, 4])
    for name in ("00000002", "00000004"):
        assert differences(kept / "snapshots" / name, again / "snapshots" / name) == []
        assert (kept / f"snapshots/{name}/steps.tsv").read_text() == (
            again / f"snapshots/{name}/steps.tsv"
        ).read_text()


def test_a_kill_in_the_middle_of_a_snapshot_leaves_none_and_the_next_run_writes_it(
    inputs, kept, tmp_path, monkeypatch
):
    write = trainer.write_json

    def kill(path: Path, value: dict) -> None:
        if "00000004" in str(path):
            raise Killed
        write(path, value)

    with monkeypatch.context() as patch, pytest.raises(Killed):
        patch.setenv("CDMAE_SAVE_SECONDS", "0")
        patch.setattr(trainer, "write_json", kill)
        run(inputs, tmp_path, snapshots=[2, 4])
    assert [path.name for path in (tmp_path / "state/snapshots").iterdir()] == ["00000002"]
    again = run(inputs, tmp_path, snapshots=[2, 4])
    assert differences(kept / "snapshots/00000004", again / "snapshots/00000004") == []


def test_steps_that_are_lost_not_reached_or_not_kept_are_refused(inputs, tmp_path, pretrained):
    cut_off(5, inputs, tmp_path, snapshots=[4])
    shutil.rmtree(tmp_path / "state/snapshots")
    with pytest.raises(
        InputError, match="resumes from step 5 but the snapshot of step 4 is not in .*; delete"
    ):
        run(inputs, tmp_path, snapshots=[4])
    with pytest.raises(InputError, match="take_step is 8; expected up to 7, the last step"):
        run(inputs, tmp_path / "other", snapshots=[2, 8])
    with pytest.raises(InputError, match="has no snapshot of step 4; delete it and run again"):
        snapshots.take(name="early", encoder=pretrained, step=4, output=tmp_path / "early")


def test_an_encoder_goes_on_from_another_with_its_weights(inputs, pretrained, tmp_path):
    """Its first loss is lower than that of a start, and hardly trained it is the other one, head
    included.
    """
    again = run(inputs, tmp_path, after=pretrained)
    first = [read_table(each / "steps.tsv")["encoder_loss"][0] for each in (pretrained, again)]
    assert first[1] < first[0]
    assert len(differences(pretrained, again)) > 20
    still = run(
        inputs,
        tmp_path / "still",
        dataclasses.replace(SETTINGS, learning_rate=1e-12),
        after=pretrained,
    )
    moved = BertForMaskedLM.from_pretrained(still).state_dict()
    for name, each in BertForMaskedLM.from_pretrained(pretrained).state_dict().items():
        assert (each - moved[name]).abs().max() < 1e-6, name
