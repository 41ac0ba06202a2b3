"""Training states: written whole, the newest kept, one trainer at a time."""

import multiprocessing
import os
import signal
import time
from functools import partial
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
    left = (tmp_path / "state/.step-00000031.pt.part", tmp_path / "state/.shared")
    left[0].touch()  # by a killed process
    left[1].mkdir()
    with state.opened(tmp_path / "state", "x") as saved:
        payload = saved.latest()
        assert not any(path.exists() for path in left)
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


def test_saving_takes_at_most_a_twentieth_of_the_time(tmp_path, monkeypatch):
    clock = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])

    def save(payload, file, seconds):
        clock[0] += seconds

    def first_due(seconds):
        """The time from the end of a save, which takes some seconds, to the next one."""
        monkeypatch.setattr(torch, "save", partial(save, seconds=seconds))
        with state.opened(tmp_path, "x") as saved:
            saved.save(1, {})
            ended = clock[0]
            while not saved.due():
                clock[0] += 1
        return clock[0] - ended

    assert [first_due(1), first_due(10)] == [60, 200]


def test_a_full_disk_is_the_system_s_error_and_keeps_the_earlier_state(tmp_path, monkeypatch):
    kept = torch.save

    def save(payload, file):
        file.close()
        kept(payload, open("/dev/full", "wb", buffering=0))  # noqa: SIM115

    with state.opened(tmp_path, "x") as saved:
        saved.save(1, {})
        monkeypatch.setattr(torch, "save", save)
        with pytest.raises(OSError, match="No space left on device"):
            saved.save(2, {})
    assert [path.name for path in tmp_path.glob("*step-*")] == ["step-00000001.pt"]


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
