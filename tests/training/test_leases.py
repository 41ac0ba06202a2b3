"""Leases: one trainer at a time in a folder."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from cdmae.errors import InputError
from cdmae.training import leases

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(leases, "WAIT", 0.3)


def test_a_second_trainer_is_refused_with_the_first_one_s_process_and_job(tmp_path, monkeypatch):
    monkeypatch.setenv("SLURM_JOB_ID", "12")
    host = os.uname().nodename
    with leases.held(tmp_path, "pretrain x"):
        words = (
            f"pretrain x is being trained already, by process {os.getpid()} on {host}, job 12; wait"
        )
        with pytest.raises(InputError, match=words), leases.held(tmp_path, "pretrain x"):
            raise AssertionError
    with leases.held(tmp_path, "pretrain x"):  # let go of at the end
        pass


def test_a_killed_trainer_leaves_the_folder_to_the_next(tmp_path):
    code = (
        "import os, signal, sys; from pathlib import Path; from cdmae.training import leases\n"
        "with leases.held(Path(sys.argv[1]), 'x'): os.kill(os.getpid(), signal.SIGKILL)"
    )
    killed = subprocess.run([sys.executable, "-c", code, tmp_path], cwd=ROOT)
    assert killed.returncode == -signal.SIGKILL
    with leases.held(tmp_path, "x"):
        pass
