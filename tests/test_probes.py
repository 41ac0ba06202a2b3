"""Looking at a pre-training: what is kept of it, and that the training ends in the same bits with and without."""

import os
import signal

import pytest
from test_pretrain import after, differences, inputs, run, whole  # noqa: F401 (fixtures)

from cdmae import probes
from cdmae.errors import InputError, Interrupted
from cdmae.files.tables import read_table


def test_weights_are_the_same_bits_with_and_without(inputs, whole, tmp_path, monkeypatch):  # noqa: F811
    monkeypatch.setattr(probes, "PROBES", {})
    without = run(inputs, tmp_path)
    assert differences(whole, without) == []
    assert (whole / "steps.tsv").read_text() == (without / "steps.tsv").read_text()
    assert not list(without.glob("bottleneck.tsv")) and not list(without.glob("retrieval.tsv"))


@pytest.mark.parametrize("file", probes.PROBES)
def test_a_few_steps_are_looked_at_the_first_and_the_last_among_them(whole, file):  # noqa: F811
    found = read_table(whole / file)
    assert found["step"].tolist() == [0, 1, 3, 5, 7]
    assert found.notna().all().all()


def test_a_resumed_training_has_seen_the_same(inputs, whole, tmp_path, monkeypatch):  # noqa: F811
    with monkeypatch.context() as patch:
        after(4, lambda: os.kill(os.getpid(), signal.SIGTERM), patch)
        with pytest.raises(Interrupted):
            run(inputs, tmp_path)
    assert {path.name for path in (tmp_path / "state").glob("*.tsv")} == {"steps.tsv", *probes.PROBES}
    again = run(inputs, tmp_path)
    for file in probes.PROBES:
        assert (again / file).read_text() == (whole / file).read_text()
        assert not (tmp_path / "state" / file).exists()


def test_rows_of_steps_that_are_taken_again_are_left_out(inputs, whole, tmp_path):  # noqa: F811
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / "bottleneck.tsv").write_text("step\ttrue\tshuffled\tzero\n3\t9\t9\t9\n")
    assert (run(inputs, tmp_path) / "bottleneck.tsv").read_text() == (whole / "bottleneck.tsv").read_text()


@pytest.mark.parametrize("damaged", [b"step\trr\n\n", b"\xff\xfe\x00"])
def test_what_is_damaged_is_named(inputs, tmp_path, damaged):  # noqa: F811
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / "retrieval.tsv").write_bytes(damaged)
    with pytest.raises(InputError, match="retrieval.tsv is damaged .*; delete it and run again"):
        run(inputs, tmp_path)
