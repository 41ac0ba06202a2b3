"""Leases: one trainer at a time in a folder, on one host and on several, with locks and without."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from cdmae.errors import InputError
from cdmae.training import leases
from cdmae.training import state as states


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """What takes seconds takes tenths of them."""
    monkeypatch.setattr(leases, "WAIT", 0.3)
    monkeypatch.setattr(leases, "DEAD", 0.6)
    monkeypatch.setattr(leases, "HEARTBEAT", 0.1)


@pytest.fixture
def unlocked(monkeypatch: pytest.MonkeyPatch) -> None:
    """A network file system without locks."""

    def flock(*_: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", flock)


def write(folder: Path, **lease: object) -> None:
    (folder / "lease.json").write_text(json.dumps({"host": "elsewhere", "pid": 7, "job": "", "key": "b"} | lease))


def test_a_held_lease_is_refused_with_host_and_pid(tmp_path: Path) -> None:
    with leases.held(tmp_path, "pretrain x"):
        message = f"pretrain x is being trained already, by process {os.getpid()} on {socket.gethostname()}; wait"
        with pytest.raises(InputError, match=message), leases.held(tmp_path, "pretrain x"):
            pass
    with leases.held(tmp_path, "pretrain x"):  # let go of at the end, also after an error
        pass
    assert not (tmp_path / "lease.json").exists()


def test_the_lease_of_a_killed_process_is_free_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = (
        "import os, signal, sys; from pathlib import Path; from cdmae import leases\n"
        "with leases.held(Path(sys.argv[1]), 'x'): os.kill(os.getpid(), signal.SIGKILL)"
    )
    assert subprocess.run([sys.executable, "-c", program, tmp_path]).returncode == -signal.SIGKILL
    assert (tmp_path / "lease.json").exists()
    monkeypatch.setattr(leases, "DEAD", 1000)
    with leases.held(tmp_path, "x"):
        pass


@pytest.mark.parametrize("locks", [True, False])
def test_another_hosts_lease_counts_while_its_heart_beats(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest, locks: bool
) -> None:
    """A changing heartbeat refuses, with the job of SLURM; a still one is taken over."""
    if not locks:
        request.getfixturevalue("unlocked")
    write(tmp_path, heartbeat=3)
    with leases.held(tmp_path, "x"):
        assert json.loads((tmp_path / "lease.json").read_text())["host"] == socket.gethostname()
    beats = iter(range(1000))
    read = {"host": "elsewhere", "pid": 7, "job": "81"}
    monkeypatch.setattr(leases, "_read", lambda folder: {**read, "heartbeat": next(beats)})
    with pytest.raises(InputError, match="by process 7 on elsewhere, job 81;"), leases.held(tmp_path, "x"):
        pass


def test_without_locks_a_twin_on_the_same_host_is_refused_too(tmp_path: Path, unlocked: None) -> None:
    message = f"by process {os.getpid()} on {socket.gethostname()}"
    with leases.held(tmp_path, "x"), pytest.raises(InputError, match=message), leases.held(tmp_path, "x"):
        pass


def test_of_twins_that_saw_nothing_of_each_other_the_first_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It writes no more states, says who goes on, asks itself to end, and leaves the other's lease alone."""
    signals: list[int] = []
    monkeypatch.setattr(leases.os, "kill", lambda pid, number: signals.append(number))
    with states.hold(tmp_path, "x") as state:
        assert state.writes
        write(tmp_path, host="twin", heartbeat=0)
        deadline = time.monotonic() + 10
        while not signals and time.monotonic() < deadline:
            time.sleep(0.02)
        assert signals == [signal.SIGTERM]
        assert not state.writes
        state.save(1, {})
    assert "by process 7 on twin" in capsys.readouterr().err
    assert not list(tmp_path.glob("step-*"))
    assert json.loads((tmp_path / "lease.json").read_text())["host"] == "twin"
