"""A checkout to run the workflow in, and one finished smoke run that the tests copy."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
from filelock import FileLock

from cdmae.commands import configs
from cdmae.config.load import load
from cdmae.config.reading import gather

ROOT = Path(__file__).resolve().parents[2]
PARTS = ("Snakefile", "benchmarks", "cdmae", "config", "envs", "profiles", "run", "workflow")
SMOKE = ("--configfile", "config/smoke.yaml")


class Checkout:
    """A copy of the code, with the results that were made in it."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.results = folder / "results/smoke"
        self.ran = ""  # the output of the whole run
        self.said = ""  # and of the last one whose jobs were counted

    @classmethod
    def of(cls, source: Path, folder: Path, parts=PARTS) -> Checkout:
        """Copy `source`, its bytecode too; times stay, for Snakemake and Python compare them."""
        folder.mkdir(parents=True)
        for part in parts:
            path = source / part
            if path.is_dir() and not path.is_symlink():
                unfinished = shutil.ignore_patterns("*.pyc.*")  # another process is writing them
                shutil.copytree(path, folder / part, symlinks=True, ignore=unfinished)
            elif path.exists():
                shutil.copy2(path, folder / part, follow_symlinks=False)
        return cls(folder)

    def copy(self, folder: Path) -> Checkout:
        copy = Checkout.of(self.folder, folder, (*PARTS, "results", ".snakemake"))
        copy.ran = self.ran
        return copy

    def start(self, *arguments: str, **environment: str) -> subprocess.Popen:
        """Start the workflow as ./run does; it leads a process group of its own."""
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        place = os.environ | {"PATH": path} | environment
        place.pop("PYTHONPATH", None)
        return subprocess.Popen(
            [sys.executable, "-m", "cdmae", *arguments],
            cwd=self.folder, env=place, text=True, start_new_session=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
        )  # fmt: skip

    def run(self, *arguments: str, status: int = 0, **environment: str) -> str:
        """Run the workflow to its end; what it said."""
        process = self.start(*arguments, **environment)
        said = process.communicate()[0]
        assert process.returncode == status, said
        return said

    def jobs(self, *arguments: str) -> Counter:
        """Run the workflow; its jobs, as ``rule value,value`` with the values of wildcards."""
        self.said = self.run(*arguments, "--quiet", "host")
        blocks = re.split(r"^(?:local)?rule (\w+):$", self.said, flags=re.MULTILINE)[1:]
        counts = Counter()
        for rule, block in zip(blocks[::2], blocks[1::2], strict=True):
            line = re.search(r"^    wildcards: (.*)$", block, flags=re.MULTILINE)
            wildcards = line[1].split(", ") if line else []
            values = ",".join(wildcard.partition("=")[2] for wildcard in wildcards)
            counts[f"{rule} {values}".strip()] += rule != "default"
        return +counts

    def plan(self, *arguments: str) -> Counter:
        """The jobs of a dry run of the smoke config."""
        return self.jobs(*SMOKE, *arguments, "-n")

    def edit(self, path: str, old: str, new: str) -> None:
        text = (self.folder / path).read_text()
        assert old in text
        (self.folder / path).write_text(text.replace(old, new, 1))


class Training:
    """A training of a finished run, to be made again; its output is deleted."""

    def __init__(self, checkout: Checkout, rule: str, name: str, output: str):
        self.checkout, self.target = checkout, f"results/smoke/{output}"
        self.output = checkout.folder / self.target
        self.states = checkout.results / "state" / rule / name
        self.log = checkout.results / f"logs/{rule}/{name}.log"
        self.wanted = self.weights()
        shutil.rmtree(self.output)

    def weights(self) -> bytes:
        return (self.output / "model.safetensors").read_bytes()

    def steps(self) -> set[str]:
        return {path.name for path in self.states.glob("*/step-*.pt")}


def wait_for(condition, seconds: float = 240.0):
    """The first true value of `condition`."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if value := condition():
            return value
        time.sleep(0.005)
    raise AssertionError(f"waited {seconds} s in vain")


@pytest.fixture(scope="session")
def whole(tmp_path_factory):
    """A finished smoke run, which all processes of the tests share: it is only copied."""
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent
    done = folder / "whole.txt"
    with FileLock(folder / "whole.lock"):
        if not done.exists():
            checkout = Checkout.of(ROOT, folder / "whole")
            done.write_text(checkout.run(*SMOKE))
    checkout = Checkout(folder / "whole")
    checkout.ran = done.read_text()
    return checkout


@pytest.fixture(scope="session")
def smoke(whole, tmp_path_factory):
    """The finished smoke run of this process; nobody may change it."""
    return whole.copy(tmp_path_factory.mktemp("smoke") / "checkout")


@pytest.fixture(scope="session")
def config(smoke):
    """The config of the smoke run."""
    files = smoke.folder / "config"
    return load(gather(files / "config.yaml", [files / "smoke.yaml"]))


@pytest.fixture
def finished(whole, tmp_path):
    """A finished smoke run to change."""
    return whole.copy(tmp_path / "checkout")


@pytest.fixture
def here(smoke, monkeypatch):
    """The finished run, in which this process runs commands."""
    monkeypatch.setattr(configs, "ROOT", smoke.folder)
    monkeypatch.setenv("CDMAE_DEVICE", "")  # which plan sets
    monkeypatch.chdir(smoke.folder)
    return smoke


@pytest.fixture
def overlay(tmp_path):
    """A function that writes a config to lay over the others, and gives its path."""

    def write(text: str) -> str:
        path = tmp_path / "overlay.yaml"
        path.write_text(text)
        return str(path)

    return write
