"""Training states: written whole, the newest kept, one trainer at a time."""

import multiprocessing
import os
import signal
from pathlib import Path

import numpy as np
import pytest
import torch
from tiny_training import together

from cdmae.errors import InputError
from cdmae.training import state


def test_the_newest_state_is_read_with_its_step_and_bits(tmp_path):
    weights = {"a": torch.randn(5, 3), "step_of": torch.tensor(7)}
    with state.opened(tmp_path / "state", "x") as saved:
        assert saved.latest() is None and saved.step == 0
        for step in (1, 2, 30):
            saved.save(step, {"weights": weights, "number": step})
    (tmp_path / "state/.step-00000031.pt.part").touch()  # of a killed process
    with state.opened(tmp_path / "state", "x") as saved:
        payload = saved.latest()
    assert (saved.step, payload["number"]) == (30, 30)
    assert torch.equal(payload["weights"]["a"], weights["a"])
    [path] = (tmp_path / "state").glob("*step-*")
    for damaged in (path.read_bytes()[:-100], bytes(200), b""):
        path.write_bytes(damaged)
        with (
            state.opened(tmp_path / "state", "x") as saved,
            pytest.raises(InputError, match=r"step-00000030.pt is damaged .*delete it"),
        ):
            saved.latest()


def test_processes_map_the_arrays_that_the_first_one_makes(tmp_path):
    """Each would otherwise hold all candidates of a collection in its own memory."""

    def work(group):
        made = []
        with state.opened(tmp_path, "x", group) as saved:

            def make():
                made.append(group.rank)
                return {"rows": np.arange(5)}

            rows = saved.share("examples", make)["rows"]
            group.wait()
        while not isinstance(rows, np.memmap):
            rows = rows.base
        return made, rows.tolist(), str(rows.filename)

    (made, rows, file), (other_made, *other) = together(2, work)
    assert (made, other_made) == ([0], [])
    assert [rows, file] == other and rows == list(range(5))
    assert not Path(file).exists()


def test_a_second_trainer_is_refused_until_the_first_one_ends(tmp_path, monkeypatch):
    monkeypatch.setenv("SLURM_JOB_ID", "12")
    monkeypatch.setattr(state, "WAIT", 0.3)
    words = f"x is being trained already, by process {os.getpid()} on .*, job 12; wait"
    with (
        state.opened(tmp_path, "x"),
        pytest.raises(InputError, match=words),
        state.opened(tmp_path, "x"),
    ):
        raise AssertionError
    child = multiprocessing.get_context("fork").Process(target=killed_with_state, args=(tmp_path,))
    child.start()
    child.join()
    assert child.exitcode == -signal.SIGKILL
    with state.opened(tmp_path, "x"):
        pass


def killed_with_state(folder):
    with state.opened(folder, "x"):
        os.kill(os.getpid(), signal.SIGKILL)
