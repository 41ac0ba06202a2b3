"""What a run suggests, deletes and locks."""

import pytest

from workflow import hooks


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
