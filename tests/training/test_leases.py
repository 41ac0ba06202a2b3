"""Leases: one trainer at a time in a folder, on one host and on several, with locks and without."""

import errno
import fcntl
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from cdmae.errors import InputError
from cdmae.training import leases
from cdmae.training import state as states


@pytest.fixture(autouse=True)
def soon(monkeypatch):
    """What takes seconds takes tenths of them."""
    monkeypatch.setattr(leases, "WAIT", 0.3)
    monkeypatch.setattr(leases, "DEAD", 0.6)
    monkeypatch.setattr(leases, "HEARTBEAT", 0.1)


@pytest.fixture(params=[True, False], ids=["locks", "no locks"])
def locks(request, monkeypatch):
    """A file system with locks, and a network file system without."""

    def flock(*_: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    if not request.param:
        monkeypatch.setattr(fcntl, "flock", flock)
    return request.param


def write(folder: Path, host: str = "elsewhere") -> None:
    """Put the lease of another host in the place of any."""
    (folder / "aside").write_text(
        f"filelock/2\npid=7\nhost={host}\nmode=lease\ntoken=b\nduration={leases.DEAD}\n"
    )
    (folder / "aside").replace(folder / "lease")


def test_a_held_lease_is_refused_with_host_and_pid(tmp_path, locks):
    with leases.held(tmp_path, "pretrain x"):
        message = f"pretrain x is being trained already, by process {os.getpid()} on {socket.gethostname()}; wait"
        with pytest.raises(InputError, match=message), leases.held(tmp_path, "pretrain x"):
            pass
    with leases.held(tmp_path, "pretrain x"):  # let go of at the end, also after an error
        pass
    assert {path.name for path in tmp_path.iterdir()} <= {"lease.lock"}


def test_the_lease_of_a_killed_process_is_free_at_once(tmp_path, monkeypatch):
    program = (
        "import os, signal, sys; from pathlib import Path; from cdmae.training import leases\n"
        "leases.DEAD = 1000\n"
        "with leases.held(Path(sys.argv[1]), 'x'): os.kill(os.getpid(), signal.SIGKILL)"
    )
    assert subprocess.run([sys.executable, "-c", program, tmp_path]).returncode == -signal.SIGKILL
    assert (tmp_path / "lease").exists()
    monkeypatch.setattr(leases, "DEAD", 1000.0)
    begun = time.monotonic()
    with leases.held(tmp_path, "x"):
        assert time.monotonic() - begun < 10


def test_another_hosts_lease_counts_while_its_heart_beats(tmp_path, locks):
    """A heartbeat refuses, with the job of SLURM; a lease without one is taken over."""
    write(tmp_path)
    with leases.held(tmp_path, "x"):
        assert f"pid={os.getpid()}\n" in (tmp_path / "lease").read_text()
    write(tmp_path)
    (tmp_path / "lease.job").write_text("81")
    ended = threading.Event()

    def beat() -> None:
        while not ended.wait(0.05):
            os.utime(tmp_path / "lease")

    heart = threading.Thread(target=beat)
    heart.start()
    with (
        pytest.raises(InputError, match="by process 7 on elsewhere, job 81;"),
        leases.held(tmp_path, "x"),
    ):
        pass
    ended.set()
    heart.join()


def test_of_twins_that_saw_nothing_of_each_other_the_first_ends(tmp_path, monkeypatch, capsys):
    """It writes no more states, says who goes on, asks itself to end, and leaves the other's lease
    alone.
    """
    signals: list[int] = []
    monkeypatch.setattr(leases.os, "kill", lambda pid, number: number and signals.append(number))
    with states.opened(tmp_path, "x") as state:
        assert state.writes
        write(tmp_path, "twin")
        deadline = time.monotonic() + 10
        while not signals and time.monotonic() < deadline:
            time.sleep(0.02)
        assert signals == [signal.SIGTERM]
        assert not state.writes
        state.save(1, {})
    assert "by process 7 on twin" in capsys.readouterr().err
    assert not list(tmp_path.glob("step-*"))
    assert "host=twin" in (tmp_path / "lease").read_text()


def test_a_lease_that_was_deleted_is_made_again(tmp_path, capsys):
    """Or its whole folder. The training goes on, others are refused as before, and nothing is left
    at the end.
    """
    folder = tmp_path / "state"
    with states.opened(folder, "x") as state:
        for delete in (lambda: (folder / "lease").unlink(), lambda: shutil.rmtree(folder)):
            delete()
            deadline = time.monotonic() + 10
            while not (folder / "lease").exists() and time.monotonic() < deadline:
                time.sleep(0.02)
            time.sleep(0.1)  # it may be there and still be empty
            assert f"pid={os.getpid()}\n" in (folder / "lease").read_text() and state.writes
        message = f"x is being trained already, by process {os.getpid()}"
        with pytest.raises(InputError, match=message), leases.held(folder, "x"):
            pass
    assert capsys.readouterr().err.count("in use was deleted; it is recreated") == 2
    assert [path.name for path in folder.iterdir()] in (["lease.lock"], [])


def test_an_empty_lease_that_a_loss_of_power_left_is_taken_over(tmp_path, locks):
    """Its size is what the file system kept; nobody writes to it any more."""
    (tmp_path / "lease").touch()
    with leases.held(tmp_path, "x") as lease:
        assert f"pid={os.getpid()}\n" in (tmp_path / "lease").read_text() and not lease.lost


def test_an_empty_lease_that_is_being_written_is_not(tmp_path, monkeypatch):
    """Another host has just made it, and fills it a moment later."""
    (tmp_path / "lease").touch()
    monkeypatch.setattr(leases.time, "sleep", lambda _: write(tmp_path))

    def beat() -> None:
        while not ended.wait(0.05):
            os.utime(tmp_path / "lease")

    ended = threading.Event()
    heart = threading.Thread(target=beat)
    heart.start()
    with pytest.raises(InputError, match="by process 7 on elsewhere;"), leases.held(tmp_path, "x"):
        pass
    ended.set()
    heart.join()
