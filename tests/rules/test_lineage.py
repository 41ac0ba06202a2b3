"""The name of a training's state: equal for equal things, new for whatever a result depends on; and
adopting one.
"""

import pytest

from cdmae.errors import InputError
from cdmae.training import leases
from workflow.state import adopt, folder_of, key_of


def test_a_state_is_named_by_its_key_and_the_content_of_its_inputs(tmp_path):
    tokens, run = tmp_path / "tokens", tmp_path / "run.parquet"
    tokens.mkdir()
    (tokens / "ids.npy").write_text("one")
    run.write_text("run")

    def name(key="key"):
        return folder_of("state/pretrain/mae", key, [str(tokens), str(run)])

    first = name()
    assert str(first).startswith("state/pretrain/mae/") and len(first.name) == 16
    (tokens / ".snakemake_timestamp").touch()
    (tokens / "ids.npy").write_text("one")
    assert name() == first, "made again in the same bits"
    assert name("other") != first
    (tokens / "ids.npy").write_text("two")
    assert name() != first
    (tokens / "ids.npy").write_text("one")
    (tokens / "ids.npy").rename(tokens / "starts.npy")
    assert name() != first, "names count, too"
    run.unlink()
    assert key_of({"a": 1, "b": 2}) == key_of({"b": 2, "a": 1}) != key_of({"a": 1})


def test_adopt_moves_the_newest_older_state_and_what_lies_beside_it(tmp_path):
    for name, step in (("older", 700), ("newer", 300)):
        (tmp_path / name / "snapshots/00000002").mkdir(parents=True)
        for file in (
            f"step-{step:08d}.0badcafe.pt",
            "steps.tsv",
            "bottleneck.tsv",
            "snapshots/00000002/about.json",
        ):
            (tmp_path / name / file).write_text(name)
    folder = tmp_path / "own"
    assert adopt("pretrain/mae", folder) == "pretrain/mae resumes from step 300 of the state newer"
    for file in (
        "step-00000300.0badcafe.pt",
        "steps.tsv",
        "bottleneck.tsv",
        "snapshots/00000002/about.json",
    ):
        assert (folder / file).read_text() == "newer"
    assert adopt("pretrain/mae", folder) == "", "a training that has a state keeps it"
    assert adopt("pretrain/other", tmp_path / "deeper/own") == "", "and there may be none"


def test_adopt_leaves_a_state_to_the_training_that_holds_it(tmp_path, monkeypatch):
    monkeypatch.setattr(leases, "WAIT", 0.1)
    state = tmp_path / "older/step-00000100.0badcafe.pt"
    state.parent.mkdir()
    state.touch()
    with leases.held(state.parent, "pretrain/mae"):
        with pytest.raises(
            InputError, match="pretrain/mae is being trained already, by process .*; wait for it"
        ):
            adopt("pretrain/mae", tmp_path / "own")
        assert state.exists()
    assert adopt("pretrain/mae", tmp_path / "own").startswith("pretrain/mae resumes from step 100 ")
