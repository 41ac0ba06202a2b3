"""From a fresh clone to an environment: ./run, envs/start.py and the locked files."""

import hashlib
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parent.parent
ENVS = ROOT / "envs"
ADDRESS = re.compile(r"https?://|--(extra-)?index-url|--find-links")


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """A checkout whose locked files are empty, and whose command prints its arguments."""
    root = tmp_path / "a checkout"
    (root / "envs/lock").mkdir(parents=True)
    (root / "cdmae").mkdir()
    (root / "cdmae/__main__.py").write_text("import sys; print(*sys.argv[1:])\n")
    shutil.copy(ROOT / "run", root)
    shutil.copy(ENVS / "start.py", root / "envs")
    for path in ENVS.glob("lock/*.txt"):
        (root / "envs/lock" / path.name).write_text("")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    monkeypatch.setenv("CDMAE_DEVICE", "cpu")
    return root


def run(checkout, *words):
    return subprocess.run(["sh", checkout / "run", *words], capture_output=True, text=True)


def wheel(checkout, name, version="1"):
    """Write an empty wheel and return its line of a locked file."""
    info = f"{name}-{version}.dist-info"
    path = checkout.parent / f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
        archive.writestr(f"{info}/METADATA", metadata)
        wheel = "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        archive.writestr(f"{info}/WHEEL", wheel)
        archive.writestr(f"{info}/RECORD", "")
    return f"{name}=={version} --hash=sha256:{hashlib.sha256(path.read_bytes()).hexdigest()}\n"


def installed(checkout):
    found = checkout.glob(".venv/lib/*/site-packages/*.dist-info")
    return {path.name.removesuffix(".dist-info") for path in found}


@pytest.mark.parametrize("version", ["Python 3.9.2", "Python 3.14.0"])
def test_no_suitable_python(tmp_path, programs, monkeypatch, version):
    scripts = {"python3": f'[ "$1" = --version ] && echo {version} || exit 1'}
    programs(scripts, ["dirname", "bash"], alone=True)
    monkeypatch.setenv("PYTHON", "")
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path))
    shutil.copy(ROOT / "run", tmp_path)
    ended = subprocess.run(["/bin/sh", tmp_path / "run", "-n"], capture_output=True, text=True)
    assert ended.returncode == 1
    assert len(ended.stderr.splitlines()) == 1
    assert version in ended.stderr and "3.11 to 3.13" in ended.stderr


def test_help_needs_no_environment_and_an_unknown_device_is_refused(checkout, monkeypatch):
    ended = run(checkout, "--help")
    assert ended.returncode == 0 and "./run test" in ended.stdout
    monkeypatch.setenv("CDMAE_DEVICE", "tpu")
    ended = run(checkout)
    assert ended.returncode == 1 and "'tpu'" in ended.stderr
    assert not (checkout / ".venv").exists()


@pytest.mark.workflow  # makes a virtual environment, in some seconds
def test_the_set_up_happens_once_and_resumes_after_a_failure(checkout):
    right = wheel(checkout, "right")
    lock = checkout / "envs/lock"
    (lock / "run.txt").write_text(right)
    (lock / "torch.txt").write_text(wheel(checkout, "torch", "2"))
    (lock / "torch-cpu.txt").write_text("torch==2+cpu --hash=sha256:00\n")
    # a set-up that was stopped before it had pip
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", checkout / ".venv"], check=True)
    first = run(checkout, "a", "b c")
    assert first.stdout == "a b c\n", first.stderr
    assert "no CPU build of torch" in first.stderr
    assert {"right-1", "torch-2"} <= installed(checkout)
    assert run(checkout, "again").stderr == "", "the second call sets nothing up"

    made = os.lstat(checkout / ".venv/bin/python").st_ctime_ns
    wrong = wheel(checkout, "wrong").partition("sha256:")[0] + f"sha256:{'0' * 64}\n"
    for line in (wrong, "missing==1 --hash=sha256:00\n"):
        (lock / "run.txt").write_text(line)
        failed = run(checkout)
        assert failed.returncode == 1 and not failed.stdout
        assert "run again to resume" in failed.stderr
    (lock / "run.txt").write_text(right + wheel(checkout, "later"))
    assert run(checkout, "mended").stdout == "mended\n"
    assert "later-1" in installed(checkout)
    (lock / "test.txt").write_text(wheel(checkout, "onnxscript"))
    run(checkout, "export", "--no-onnx")
    assert "onnxscript-1" not in installed(checkout)
    run(checkout, "export")
    assert "onnxscript-1" in installed(checkout)
    assert os.lstat(checkout / ".venv/bin/python").st_ctime_ns == made


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


def test_locked_files_agree_and_name_no_index():
    versions = {}
    for path in ENVS.rglob("*.*"):
        assert not ADDRESS.search(path.read_text()), path
    for name in ("pip", "run", "cpu", "gpu", "torch", "test", "slurm"):
        for package, version in locked(name).items():
            assert versions.setdefault(package, version) == version, (package, name)
