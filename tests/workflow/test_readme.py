"""What README and docs tell people to type works: on the smoke run, or as a dry run where the real
one takes long.
"""

import re
import shlex
import subprocess
import sys

import pytest

from cdmae.collections.store import read_passages, read_qrels
from tests.workflow.conftest import ROOT, SMOKE

pytestmark = pytest.mark.workflow

README = (ROOT / "README.md").read_text()
TEXT = README + (ROOT / "docs/commands.md").read_text()
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```", README, flags=re.MULTILINE | re.DOTALL)
TOUR = re.findall(
    r"^```python\n(.*?)^```", (ROOT / "docs/tour.md").read_text(), flags=re.MULTILINE | re.DOTALL
)
SHELL = "\n".join(text for kind, text in BLOCKS if kind == "sh")
FOUND = [
    *re.findall(r"^(\./run[^#\n]*)", SHELL, flags=re.MULTILINE),
    *re.findall(r"`(\./run[^`\n]*)`", TEXT),
]
COMMANDS = sorted({each.strip().removesuffix(" -n") for each in FOUND})
PYTHON = [text for kind, text in BLOCKS if kind == "python"]
ELSEWHERE = (
    "--workflow-profile",
    "mine.yaml",
    "my.yaml",
    "mine.run",
)  # needs a cluster, or files of one's own


def test_there_is_something_to_try():
    assert "./run" in COMMANDS
    assert PYTHON


@pytest.mark.parametrize(
    "command", [each for each in COMMANDS if not any(word in each for word in ELSEWHERE)]
)
def test_command(smoke, command):
    words = shlex.split(command)[1:]
    name = words[0] if words else ""
    if name == "--help":
        said = subprocess.run(
            [str(ROOT / "run"), name], capture_output=True, text=True, check=True
        ).stdout
        assert all(
            f"./run {each}" in said
            for each in ("plan", "search", "importance", "test", "table_stages")
        )
    elif name == "--help-snakemake":
        assert "--rerun-triggers" in smoke.run(name)
    elif name in ("search", "importance", "adopt", "sizes"):
        assert smoke.run(*words, *SMOKE).strip()
    elif name == "plan":
        assert "memory" in smoke.run(*words)
    elif name == "--report":
        smoke.run(*words, *SMOKE)
        assert (smoke.folder / words[1]).stat().st_size > 100_000
    elif name != "test":  # which is what runs here
        said = smoke.run(*words, "-n")
        assert "Traceback" not in said
        assert "This was a dry-run" in said or "Nothing to be done" in said


@pytest.mark.parametrize("text", PYTHON)
def test_python(smoke, text):
    text = text.replace('"results/', '"results/smoke/')
    found = subprocess.run(
        [sys.executable, "-c", text], cwd=smoke.folder, capture_output=True, text=True
    )
    assert found.returncode == 0, found.stderr
    assert found.stdout.strip()


def test_tour(smoke):
    collection = smoke.results / "collections/pydocs"
    passages = read_passages(collection, ["passage_id"])["passage_id"].to_pylist()
    right = int(read_qrels(collection, "test")["passage"].iloc[0])
    names = {
        "time.ctime": passages[right],
        '"time"': f'"{passages[right - 1]}"',
        "results/": "results/smoke/",
    }
    text = "\n".join(TOUR)
    for old, new in names.items():
        assert old in text
        text = text.replace(old, new)
    finished = subprocess.run(
        [sys.executable, "-c", text], cwd=smoke.folder, capture_output=True, text=True
    )
    assert finished.returncode == 0, finished.stderr
    assert "nDCG@10" in finished.stdout
