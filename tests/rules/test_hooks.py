"""What a run deletes, and what it says of failed jobs at its end."""

import atexit

import pytest

from workflow import hooks


def test_a_run_deletes_what_it_finished_and_nothing_of_others(tmp_path):
    """The folders of runs exist while a job works in them."""
    states = [tmp_path / f"state/train/{name}/0a1b" for name in ("done", "running")]
    pieces = [tmp_path / f"runs/{name}/.evaluated.pieces" for name in ("done", "running")]
    for folder in (*states, *pieces):
        folder.mkdir(parents=True)
        (folder / "about.json").write_text("{}")
    with_other_settings = tmp_path / "state/train/done/2c3d"
    with_other_settings.mkdir()
    (tmp_path / "trained/done").mkdir(parents=True)
    (tmp_path / "runs/running/evaluated").mkdir()
    vectors = tmp_path / "vectors/done/.evaluated.pieces"
    vectors.mkdir(parents=True)
    hooks.delete_kept(
        tmp_path, [tmp_path / f"{name}/done/evaluated" for name in ("runs", "vectors")]
    )
    assert [folder.exists() for folder in (*states, *pieces)] == [False, True, False, True]
    assert vectors.exists(), "for the next collection"
    assert with_other_settings.exists(), "to resume when they come back"


@pytest.mark.parametrize(
    ("log", "of_executor", "reason"),
    [
        (
            None,
            "SLURM sbatch failed: invalid partition specified: gpuu",
            "SLURM sbatch failed: inv",
        ),
        ("cdmae: the disk is full\nand more\n", "", "cdmae: the disk is full"),
        ("step 3\n", "", "it was killed, perhaps for using too much memory; its last line: step 3"),
    ],
)
def test_a_failed_job_has_its_reason(tmp_path, monkeypatch, log, of_executor, reason):
    """A job that SLURM refuses has no log, but the executor has its message."""
    path = tmp_path / "job.log"
    if log:
        path.write_text(log)
    lines = []
    monkeypatch.setattr(atexit, "register", lambda _, line, **__: lines.append(line))
    terminal = hooks.Terminal(None, str(tmp_path))
    terminal.failed[1] = str(path), of_executor
    terminal.fail()
    [line] = lines
    assert line.startswith(f"{path}: {reason}")
