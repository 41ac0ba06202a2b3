"""The way from a fresh clone to an environment: ./run, envs/start.py and the locked files."""

import ast
import importlib.util
import os
import shutil
import subprocess
from collections import namedtuple
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
ENVS = ROOT / "envs"


def module(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


@pytest.fixture
def start(tmp_path, monkeypatch):
    """start.py in a folder of its own that asks for no packages, and in which pip reaches nothing."""
    (tmp_path / "envs").mkdir()
    shutil.copy(ENVS / "start.py", tmp_path / "envs")
    for name in ("requirements.txt", "requirements-test.txt", "requirements-slurm.txt", "constraints.txt"):
        (tmp_path / "envs" / name).write_text("# nothing\n")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.delenv("CDMAE_DEVICE", raising=False)
    return module(tmp_path / "envs/start.py")


def test_an_old_python_can_read_the_start():
    tree = ast.parse((ENVS / "start.py").read_text(), feature_version=(3, 4))
    assert not [node for node in ast.walk(tree) if isinstance(node, ast.JoinedStr | ast.AnnAssign | ast.NamedExpr)]
    assert not [node for node in ast.walk(tree) if isinstance(node, ast.arg) and node.annotation]


@pytest.mark.parametrize("says", ["Python 3.9.2", "Python 3.14.0", None])
def test_without_a_suitable_python_run_says_so(tmp_path, says):
    tools = tmp_path / "bin"
    tools.mkdir()
    (tools / "dirname").symlink_to(shutil.which("dirname"))
    if says:
        (tools / "python3").write_text(f'#!/bin/sh\n[ "$1" = --version ] && echo {says} || exit 1\n')
        (tools / "python3").chmod(0o755)
    shutil.copy(ROOT / "run", tmp_path)
    place = {"PATH": str(tools), "HOME": str(tmp_path)}
    found = subprocess.run(["/bin/sh", tmp_path / "run", "-n"], env=place, capture_output=True, text=True)
    assert found.returncode == 1
    assert found.stderr.splitlines() == [
        f"run: needs Python 3.11 to 3.13 with venv, and found {says or 'no python3'}; "
        "install one (or uv), or name it: PYTHON=/path ./run"
    ]


def test_a_disk_that_is_too_small(start, monkeypatch, capsys):
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(start.shutil, "disk_usage", lambda path: usage(10**10, 0, 10**9))
    with pytest.raises(SystemExit):
        start.set_up("cpu")
    assert "needs about 4 GB" in capsys.readouterr().err
    assert not Path(start.VENV).exists()


def test_a_device_that_does_not_exist(start, monkeypatch, capsys):
    monkeypatch.setenv("CDMAE_DEVICE", "tpu")
    with pytest.raises(SystemExit):
        start.wanted_device()
    assert "'tpu'; allowed: cpu, gpu" in capsys.readouterr().err


@pytest.mark.parametrize("there", [True, False])
def test_the_executor_for_slurm_is_installed_where_there_is_slurm(start, monkeypatch, there):
    asked = []
    Path(start.VENV).mkdir()
    monkeypatch.setattr(start.shutil, "which", lambda name: "/usr/bin/sbatch" if there and name == "sbatch" else None)
    monkeypatch.setattr(start, "works", lambda *_: True)
    monkeypatch.setattr(start, "install", asked.extend)
    start.set_up("gpu")
    assert asked == ["requirements-gpu.txt", "requirements-test.txt", *(["requirements-slurm.txt"] if there else [])]


@pytest.mark.workflow  # makes a virtual environment: some seconds
def test_set_up_once_again_after_a_change_and_on_after_a_failure(start, monkeypatch, capsys):
    start.set_up("cpu")
    stamp = Path(start.STAMP).read_text()
    made = os.lstat(start.PYTHON).st_ctime_ns
    with monkeypatch.context() as patch:
        patch.setattr(start, "install", lambda files: pytest.fail("installed twice"))
        start.set_up("cpu")

    requirements = Path(start.HERE, "requirements.txt")
    requirements.write_text("no-such-package-anywhere\n")
    with pytest.raises(SystemExit):
        start.set_up("cpu")
    said = capsys.readouterr().err
    assert "pip failed" in said and "No matching distribution found for no-such-package-anywhere" in said
    assert not Path(start.STAMP).exists()

    requirements.write_text("# nothing\n")
    start.set_up("cpu")
    assert Path(start.STAMP).read_text() == stamp
    assert os.lstat(start.PYTHON).st_ctime_ns == made, "the environment was made anew instead of going on"


def test_the_locked_files_follow_from_the_requirements():
    lock = module(ENVS / "lock.py")
    lines = (ENVS / "constraints.txt").read_text().splitlines()
    pins = dict(line.split("==") for line in lines if "==" in line)
    for name, text in lock.files((ENVS / "requirements.txt").read_text(), pins).items():
        assert (ENVS / name).read_text() == text, f"{name} is not what `make lock` writes"
    assert not [line for line in lines if "--" in line or " @ " in line]
