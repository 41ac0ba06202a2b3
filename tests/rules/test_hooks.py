"""What a run suggests, deletes and locks, and the reasons that it names."""

import pytest
from snakemake.jobs import Reason
from snakemake.persistence import ParamsChange

from workflow import hooks, reasons


@pytest.mark.parametrize(
    ("targets", "words"),
    [
        ({"serve"}, "serve is a command of ./run; expected it first"),
        ({"serch", "a question"}, "serch is not made by this config; did you mean search?"),
        ({"xyzzy"}, "xyzzy is not made by this config"),
    ],
)
def test_an_unknown_target_is_named_with_the_nearest(targets, words):
    assert hooks.suggestion(targets, []).startswith(words)


def test_a_run_deletes_what_it_finished_and_nothing_of_others(tmp_path):
    """The folders of runs exist while a job works in them."""
    states = [tmp_path / f"state/train/{name}/0a1b" for name in ("done", "running")]
    pieces = [tmp_path / f"runs/{name}/.evaluated.pieces" for name in ("done", "running")]
    for folder in (*states, *pieces):
        folder.mkdir(parents=True)
        (folder / "about.json").write_text("{}")
    (tmp_path / "trained/done").mkdir(parents=True)
    (tmp_path / "runs/running/evaluated").mkdir()
    vectors = tmp_path / "vectors/done/.evaluated.pieces"
    vectors.mkdir(parents=True)
    hooks.delete_kept(
        tmp_path, [tmp_path / f"{name}/done/evaluated" for name in ("runs", "vectors")]
    )
    assert [folder.exists() for folder in (*states, *pieces)] == [False, True, False, True]
    assert vectors.exists(), "for the next collection"


def test_a_run_is_refused_while_another_one_works_on_the_same_results(tmp_path):
    hooks.lock(tmp_path)
    with pytest.raises(SystemExit, match=f"another run .*{tmp_path}"):
        hooks.lock(tmp_path)


BEFORE = {"settings": {"alpha": 4.0, "margin": 0.1, "most": [float("inf")]}, "seed": 42}
NOW = {"settings": {"alpha": 0.5, "depth": 9, "most": [float("inf")]}, "seed": 42}
CODE = [{"cdmae.files": "1", "workflow.scripts.fuse": each} for each in "12"]


@pytest.mark.parametrize(
    ("before", "now", "words"),
    [
        (BEFORE, NOW, ["alpha was 4.0 and is 0.5", "margin was 0.1", "depth was not set"]),
        (*CODE, ["code of workflow.scripts.fuse"]),
        ({"content of a": "1"}, {"content of a": "2"}, ["content of a"]),
        ("alpha: 4.0", NOW, ["its parameters"]),
    ],
)
def test_a_change_is_named_by_its_keys(before, now, words):
    """The parameters of a job were recorded as texts."""
    reason = Reason()
    reason.params_changed = ParamsChange(only_old={repr(before)}, only_new={repr(now)}, files={"a"})
    named = reasons.of_job(reason).split("; ")
    assert len(named) == len(words)
    assert all(map(str.startswith, named, words))
