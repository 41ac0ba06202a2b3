"""From a fresh clone to an environment: ./run, envs/start.py and the locked files."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parent.parent
ENVS = ROOT / "envs"


def test_no_suitable_python(tmp_path, programs, monkeypatch):
    version = "Python 3.9.2"
    scripts = {"python3": f'[ "$1" = --version ] && echo {version} || exit 1'}
    programs(scripts, ["dirname", "bash"], alone=True)
    monkeypatch.setenv("PYTHON", "")
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path))
    shutil.copy(ROOT / "run", tmp_path)
    ended = subprocess.run(["/bin/sh", tmp_path / "run", "-n"], capture_output=True, text=True)
    assert ended.returncode == 1
    assert len(ended.stderr.splitlines()) == 1
    assert version in ended.stderr and "3.11 to 3.13" in ended.stderr


def test_help_needs_no_environment_and_an_unknown_device_is_refused(tmp_path, monkeypatch):
    (tmp_path / "envs").mkdir()
    for name in ("run", "envs/start.py"):
        shutil.copy(ROOT / name, tmp_path / name)
    monkeypatch.setenv("CDMAE_DEVICE", "tpu")
    helped, refused = (
        subprocess.run(["sh", tmp_path / "run", *words], capture_output=True, text=True)
        for words in (["--help"], [])
    )
    assert helped.returncode == 0 and "./run test" in helped.stdout
    assert refused.returncode == 1 and "'tpu'" in refused.stderr
    assert not (tmp_path / ".venv").exists()


# --- the lock -------------------------------------------------------------------------------------


def locked(*names):
    """Return the version of every package in some locked files."""
    text = "".join((ENVS / f"lock/{name}.txt").read_text() for name in names)
    blocks = re.findall(r"^([\w.-]+)==([^\s;]+)(.*(?:\n .*)*)", text, flags=re.MULTILINE)
    assert all(re.search("--hash=sha256:[0-9a-f]{64}", rest) for *_, rest in blocks)
    return {name: version for name, version, _ in blocks}


@pytest.mark.parametrize("device", ["cpu", "gpu"])
def test_every_requirement_is_locked_with_hashes(device):
    environment = yaml.safe_load((ENVS / f"{device}.yaml").read_text())
    conda = dict(pin.split("==") for pin in environment["dependencies"][-1]["pip"])
    for own in ("", "test", "slurm"):
        pins = locked("run", device, "torch", *filter(None, [own]))
        name = f"requirements-{own}".rstrip("-")
        for line in re.findall("^[a-z].*", (ENVS / f"{name}.txt").read_text(), re.MULTILINE):
            required = Requirement(line.replace("faiss-cpu", f"faiss-{device}"))
            package = canonicalize_name(required.name)
            assert pins[package] in required.specifier, package
            assert own or conda[package] == pins[package]
