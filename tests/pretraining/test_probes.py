"""Looking at a pre-training: what is kept of it, and that the training ends in the same bits with
and without.
"""

import pytest
from any_kind import as_objective
from tiny_pretraining import SETTINGS, cut_off, differences, run

from cdmae.evaluation.per_query import read_table
from cdmae.files import read_json
from cdmae.pretraining import probes
from cdmae.training.ranks import Ranks
from cdmae.training.state import State


def test_weights_are_the_same_bits_with_and_without(inputs, pretrained, tmp_path, monkeypatch):
    monkeypatch.setattr(probes, "PROBES", {})
    without = run(inputs, tmp_path)
    assert differences(pretrained, without) == []
    assert (pretrained / "steps.tsv").read_text() == (without / "steps.tsv").read_text()
    assert not list(without.glob("bottleneck.tsv")) and not list(without.glob("retrieval.tsv"))


@pytest.mark.parametrize("file", probes.PROBES)
def test_a_few_steps_are_looked_at_the_first_and_the_last_among_them(pretrained, file):
    found = read_table(pretrained / file)
    assert found["step"].tolist() == [0, 1, 3, 5, 7]
    assert found.notna().all().all()


def test_a_resumed_training_has_seen_the_same(inputs, pretrained, tmp_path):
    cut_off(4, inputs, tmp_path)
    assert {path.name for path in (tmp_path / "state").glob("*.tsv")} == {
        "steps.tsv",
        *probes.PROBES,
    }
    again = run(inputs, tmp_path)
    for file in probes.PROBES:
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
    assert ("e: searching with" in capsys.readouterr().err) == noted


def test_notes_stay_with_the_encoder(inputs, tmp_path, monkeypatch):
    monkeypatch.setattr(probes, "doubts", lambda saved: [f"{saved.name} is worth less"])
    assert read_json(run(inputs, tmp_path) / "about.json")["notes"][-1].endswith(" is worth less")


@pytest.mark.parametrize("objective", ["mlm", "lexmae"])
def test_a_vector_that_nothing_trains_is_not_doubted(inputs, tmp_path, monkeypatch, objective):
    monkeypatch.setattr(probes, "doubts", lambda saved: ["worth less"])
    folder = run(inputs, tmp_path, as_objective(objective, SETTINGS))
    assert read_json(folder / "about.json")["notes"] == []
