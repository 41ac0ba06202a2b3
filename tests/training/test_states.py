"""Training states: whole or skipped, the last two kept."""

import pickle
import shutil
import zlib

import pytest
import torch

from cdmae.errors import InputError
from cdmae.training import loop
from cdmae.training import state as states
from cdmae.training.ranks import Ranks


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


class Evil:
    """What runs code where a pickle of it is read."""

    def __reduce__(self):
        return pytest.fail, ("code ran",)


@pytest.mark.parametrize("content", [b"hello", b"", pickle.dumps(Evil()), pickle.dumps([1], 2)])
def test_a_file_of_another_program_is_refused_by_name(tmp_path, content):
    """Its checksum may be right; code in it is not run."""
    path = tmp_path / f"step-00000001.{zlib.crc32(content):08x}.pt"
    path.write_bytes(content)
    with states.opened(tmp_path, "x") as state, pytest.raises(InputError) as refused:
        loop.resume(state, {})
    assert str(refused.value).startswith(f"{path} is not a training state of this program")


def test_leftovers_of_a_kill_while_saving_are_swept(tmp_path):
    """Unfinished files are neither read nor kept."""
    (tmp_path / ".step-00000003.1.part").write_text("half")
    (tmp_path / "step-00000003").write_text("without a checksum")
    with states.opened(tmp_path, "x") as state:
        assert state.latest() is None
    assert sorted(path.name for path in tmp_path.iterdir()) == ["lease.lock"]


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
    (tmp_path / "state/snapshots/00000002").mkdir(parents=True)
    for _ in range(2):
        with states.opened(tmp_path / "state", "x") as state:
            if state.latest() is None:
                state.begin("steps.tsv", ["step"])
                state.save(3, {})
            assert state.step in (0, 3)
            with state.finish(tmp_path / "output") as folder:
                (folder / "about.json").write_text("result")
        found = {path.name for path in (tmp_path / "output").iterdir()}
        assert found == {"about.json", "snapshots", "steps.tsv"}
        assert [path.name for path in (tmp_path / "output/snapshots").iterdir()] == ["00000002"]
        shutil.rmtree(tmp_path / "output")  # as Snakemake does after a job that ends badly
    assert (tmp_path / "state/about.json").read_text() == "result"


def test_looking_reads_and_writes_nothing(tmp_path):
    """The other processes of a training read the state that the first one holds."""
    with states.opened(tmp_path, "x") as state:
        state.save(4, {"a": 1})
        before = sorted(path.name for path in tmp_path.iterdir())
        with states.opened(tmp_path, "x", Ranks(1, 2)) as other:
            assert other.latest() == {"a": 1}
            assert (other.step, other.due()) == (4, False)
            other.save(5, {"a": 2})
        assert sorted(path.name for path in tmp_path.iterdir()) == before


def test_due_follows_the_environment(tmp_path, monkeypatch):
    """CDMAE_SAVE_SECONDS sets the interval; anything but a number is refused."""
    for seconds, due in (("0", True), ("1000", False)):
        monkeypatch.setenv("CDMAE_SAVE_SECONDS", seconds)
        with states.opened(tmp_path, "x") as state:
            assert state.due() == due
    for refused in ("often", "", "nan", "-nan", "inf", "1e999", "-1", "1e6"):
        monkeypatch.setenv("CDMAE_SAVE_SECONDS", refused)
        message = (
            f"CDMAE_SAVE_SECONDS is '{refused}'; allowed: a number of seconds from 0 to 86,400"
        )
        with pytest.raises(InputError, match=message), states.opened(tmp_path, "x"):
            pass
