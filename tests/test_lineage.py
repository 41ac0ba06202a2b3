"""Lineages: equal for equal things, new for whatever a result depends on; adopting takes the newest older state."""

import copy

import pytest

from cdmae import jobs
from cdmae.config.load import load
from cdmae.graph import Graph
from cdmae.training import lineage
from cdmae.training.lineage import Lineage, adopt


@pytest.fixture(autouse=True)
def code(monkeypatch):
    """The fingerprints as a plain dict: a test can change a script's code."""
    found = {}
    monkeypatch.setattr(lineage, "fingerprint", lambda script, plugins: {script: found.get(script, "1")})
    return found


def states(values, **changes):
    changed = copy.deepcopy(values)
    for path, value in changes.items():
        *sections, key = path.split("__")
        entry = changed
        for section in sections:
            entry = entry[section]
        entry[key] = value
    found = Lineage(Graph(load(changed)))
    return {name: folder.name for name, folder in found.states().items()}


def changed(before, after):
    assert before.keys() == after.keys()
    return {name for name in before if before[name] != after[name]}


def test_every_training_has_a_state_and_no_two_share_it(values):
    found = states(values)
    assert found.keys() == {
        "pretrain/none", "pretrain/mae", "pretrain/cdmae", "train_retriever/one", "train_retriever/three",
        "train_reranker/cross",
    }  # fmt: skip
    assert len(set(found.values())) == len(found)
    assert states(values) == found


def test_a_setting_changes_what_descends_from_it(values):
    before = states(values)
    assert changed(before, states(values, stages__stage3__alpha=0.5)) == {"train_retriever/three"}
    assert changed(before, states(values, systems__bm25__k1=1.5)) == {
        "train_retriever/one", "train_retriever/three", "train_reranker/cross",
    }  # fmt: skip
    assert changed(before, states(values, evaluation__depth=2000)) == set()
    assert changed(before, states(values, collections__docs__size=4)) == set(before)


def test_a_training_goes_on_from_its_state_where_it_does_not_read_what_changed(values):
    before = states(values)
    assert changed(before, states(values, pretraining__epochs=3)) == set(), "all have steps"
    assert changed(before, states(values, pretraining__sigma=2.0)) == set(before) - {"pretrain/none", "pretrain/mae"}


def test_another_encoder_before_it_or_another_snapshot_trains_again(values):
    values["encoders"] |= {
        "general": {"collection": "other"}, "both": {"after": "general"},
        "early": {"snapshot_of": "both", "take_step": 2},
    }  # fmt: skip
    values["systems"]["both"] = {**values["systems"]["one"], "encoder": "both"}
    values["systems"]["early"] = {**values["systems"]["one"], "encoder": "early"}
    before = states(values)
    after = {"pretrain/both", "train_retriever/both", "train_retriever/early"}
    assert changed(before, states(values, encoders__general__batch=5)) == {"pretrain/general", *after}
    assert changed(before, states(values, encoders__early__take_step=3)) == after


def test_code_changes_what_descends_from_it(values, code):
    before = states(values)
    code["workflow/scripts/train_reranker.py"] = "2"
    assert changed(before, states(values)) == {"train_reranker/cross", "train_retriever/three"}
    code.clear()
    code["workflow/scripts/search.py"] = "2"
    assert "train_retriever/three" in changed(before, states(values)), "mining runs the script of search"


def test_a_source_that_changed_on_disk_changes_what_descends_from_it(values, tmp_path, monkeypatch):
    source = tmp_path / "corpus.jsonl"
    source.write_text("one")
    made = jobs.collection
    monkeypatch.setitem(jobs.RULES, "collection", lambda *given: _reading(made(*given), str(source)))
    before = states(values)
    assert states(values) == before
    source.write_text("three")
    assert changed(before, states(values)) == set(before)


def _reading(job, path):
    return jobs.Job(job.rule, job.name, {"files": [path]}, job.outputs, job.params, job.plugins)


def test_adopt_moves_the_newest_older_state(values, tmp_path, code):
    values["results"] = str(tmp_path)
    trail = tmp_path / "state/pretrain/mae"
    for name, step in (("older", 700), ("newer", 300)):
        (trail / name).mkdir(parents=True)
        (trail / name / f"step-{step:08d}.0badcafe.pt").write_text(name)
        (trail / name / "steps.tsv").write_text(name)
    found = Lineage(Graph(load(values)))
    assert adopt(found) == ["pretrain/mae goes on from step 300 of the state newer"]
    folder = found.states()["pretrain/mae"]
    assert (folder / "step-00000300.0badcafe.pt").read_text() == (folder / "steps.tsv").read_text() == "newer"
    assert adopt(found) == [], "a training that has a state keeps it"


def test_what_lies_beside_a_state_is_adopted_too(values, tmp_path, code):
    values["results"] = str(tmp_path)
    older = tmp_path / "state/pretrain/mae/older"
    (older / "snapshots/00000002").mkdir(parents=True)
    for name in ("step-00000300.0badcafe.pt", "bottleneck.tsv", "snapshots/00000002/about.json"):
        (older / name).write_text("{}")
    found = Lineage(Graph(load(values)))
    adopt(found)
    folder = found.states()["pretrain/mae"]
    assert (folder / "bottleneck.tsv").exists() and (folder / "snapshots/00000002/about.json").exists()
