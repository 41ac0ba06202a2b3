"""Training states: whole or skipped, the last two kept."""

import shutil

import pytest
import torch

from cdmae.errors import InputError
from cdmae.training import state as states


def test_the_newest_state_comes_back_with_its_step_and_bits(tmp_path):
    """What was saved is what is read, and only the last two are kept."""
    weights = {"a": torch.randn(5, 3), "step_of": torch.tensor(7)}
    with states.opened(tmp_path / "state", "pretrain x") as state:
        assert state.latest() is None and state.step == 0
        for step in (1, 2, 30):
            state.save(step, {"weights": weights, "number": step})
    with states.opened(tmp_path / "state", "pretrain x") as state:
        payload = state.latest()
    assert (state.step, payload["number"]) == (30, 30)
    assert torch.equal(payload["weights"]["a"], weights["a"])
    assert len(list((tmp_path / "state").glob("step-*"))) == 2


@pytest.mark.parametrize("damage", ["cut", "flip", "empty"])
def test_a_damaged_state_is_skipped_aloud(tmp_path, damage, capsys):
    """A truncated, altered or empty file is deleted, and the state before it is used."""
    with states.opened(tmp_path, "x") as state:
        for step in (10, 20):
            state.save(step, {"a": torch.full((1000,), step)})
    newest = max(tmp_path.glob("step-*"))
    content = bytearray(newest.read_bytes())
    content[len(content) // 2] ^= 1
    newest.write_bytes(
        {"cut": bytes(content[: len(content) // 2]), "flip": bytes(content), "empty": b""}[damage]
    )
    with states.opened(tmp_path, "x") as state:
        payload = state.latest()
        assert (state.step, payload["a"][0].item()) == (10, 10)
    assert "is damaged" in capsys.readouterr().err
    assert not newest.exists()


def test_tables_go_on_from_the_state(tmp_path):
    """Rows after the saved step are dropped, and so are those of other columns; after a save they
    can be looked at.
    """
    with states.opened(tmp_path / "state", "x") as state:
        state.begin("steps.tsv", ["step", "loss"])
        state.add("steps.tsv", step=1, loss=2.5, other=0.0)
        state.save(1, {})
        state.add("steps.tsv", step=2, loss=2.25)
    assert (tmp_path / "state/steps.tsv").read_text() == "step\tloss\n1\t2.5\n"
    with states.opened(tmp_path / "state", "x") as state:
        state.latest()
        state.begin("steps.tsv", ["step", "loss"])
        state.add("steps.tsv", step=2, loss=1 / 3)
        with state.finish(tmp_path / "output") as folder:
            (folder / "about.json").touch()
        assert (tmp_path / "output/steps.tsv").read_text() == "step\tloss\n1\t2.5\n2\t0.333333\n"
        state.begin("steps.tsv", ["step", "other"])
        assert state.tables == {"steps.tsv": [["step", "other"]]}


def test_a_finished_training_keeps_its_state_and_makes_a_lost_result_again(tmp_path):
    for _ in range(2):
        with states.opened(tmp_path / "state", "x") as state:
            if state.latest() is None:
                state.begin("steps.tsv", ["step"])
                state.save(3, {})
            assert state.step in (0, 3)
            with state.finish(tmp_path / "output") as folder:
                (folder / "about.json").write_text("result")
        found = {path.name for path in (tmp_path / "output").iterdir()}
        assert found == {"about.json", "steps.tsv"}
        shutil.rmtree(tmp_path / "output")  # as Snakemake does after a job that ends badly
    assert (tmp_path / "state/about.json").read_text() == "result"


def test_due_follows_the_environment(tmp_path, monkeypatch):
    """CDMAE_SAVE_SECONDS sets the interval; anything but a number is refused."""
    for seconds, due in (("0", True), ("1000", False)):
        monkeypatch.setenv("CDMAE_SAVE_SECONDS", seconds)
        with states.opened(tmp_path, "x") as state:
            assert state.due() == due
    for refused in ("often", "", "nan", "-1"):
        monkeypatch.setenv("CDMAE_SAVE_SECONDS", refused)
        with pytest.raises(InputError, match=f"CDMAE_SAVE_SECONDS is '{refused}'; expected a num"):
            states.State(tmp_path, "x", states.ALONE)
