"""What a run locks and deletes."""

import pytest

from workflow import hooks


def test_results_that_cannot_be_written_are_refused(tmp_path):
    (tmp_path / "file").touch()
    for results in (tmp_path / "file", "/proc/results"):
        with pytest.raises(SystemExit, match=f"results is {results} "):
            hooks.lock(str(results))


def test_a_run_deletes_what_it_finished_and_nothing_of_others(tmp_path):
    """A training may have written its result, and Snakemake not have recorded it: its job then runs
    again, when it is asked for, and must find its state.
    """
    states = [tmp_path / f"state/train/{name}/0a1b" for name in ("done", "unrecorded")]
    states += [tmp_path / f"state/pretrain/{name}/0a1b" for name in ("done", "lost")]
    pieces = [tmp_path / f"runs/{name}/.evaluated.pieces" for name in ("done", "running")]
    for folder in (*states, *pieces):
        folder.mkdir(parents=True)
        (folder / "about.json").write_text("{}")
    with_other_settings = tmp_path / "state/train/done/2c3d"
    with_other_settings.mkdir()
    for name in ("trained/done", "trained/unrecorded", "encoders/done", "runs/done/evaluated"):
        (tmp_path / name).mkdir(parents=True)
    vectors = tmp_path / "vectors/done/.evaluated.pieces"
    vectors.mkdir(parents=True)
    (tmp_path / "vectors/done/evaluated").mkdir()
    outputs = "trained/done encoders/done encoders/lost runs/done/evaluated vectors/done/evaluated"
    hooks.delete_kept(tmp_path / name for name in outputs.split())
    left = [folder.exists() for folder in (*states, *pieces)]
    assert left == [False, True, False, True, False, True]
    assert vectors.exists(), "for the next collection"
    assert with_other_settings.exists(), "to resume when they come back"
