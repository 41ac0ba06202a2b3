"""What README and docs tell people to type works: on the smoke run, or as a dry run where the real
one takes long.
"""

import re
import shlex
import signal
import subprocess
import sys
import urllib.request

import pytest
import typer
from planned import dry_run
from snakemake.cli import get_argument_parser

from cdmae import commands
from cdmae.__main__ import ordered
from cdmae.commands import configs
from tests.workflow.conftest import ROOT, SMOKE

pytestmark = pytest.mark.workflow

README = (ROOT / "README.md").read_text()
TEXT = README + (ROOT / "docs/commands.md").read_text()
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```", README, flags=re.MULTILINE | re.DOTALL)
SHELL = "\n".join(text for kind, text in BLOCKS if kind == "sh")
FOUND = [
    *re.findall(r"^(\./run[^#\n]*)", SHELL, flags=re.MULTILINE),
    *re.findall(r"`(\./run[^`\n]*)`", TEXT),
]
COMMANDS = sorted({each.strip().removesuffix(" -n") for each in FOUND})
PYTHON = [text for kind, text in BLOCKS if kind == "python"]
# needs a cluster, or files of one's own, or a judged collection
ELSEWHERE = ("--workflow-profile", "mine.yaml", "my.yaml", "mine.run", "config/heads.yaml", "config/question.yaml")  # fmt: skip


def serve(here):
    """Serve the finished run on a free port; return the page."""
    process = here.start("serve", "--port", "0", *SMOKE)
    try:
        told = next(line for line in process.stdout if "open http" in line)
        with urllib.request.urlopen(re.search(r"http\S+", told)[0]) as reply:
            page = reply.read().decode()
        process.send_signal(signal.SIGINT)
        assert "the server has ended" in process.communicate()[0]
    finally:
        process.kill()
    return page


def test_there_is_something_to_try():
    assert "./run" in COMMANDS
    assert PYTHON


@pytest.fixture
def here(smoke, monkeypatch):
    """The finished run, in which this process runs commands."""
    monkeypatch.setattr(configs, "ROOT", smoke.folder)
    monkeypatch.setenv("CDMAE_DEVICE", "")  # which plan sets
    monkeypatch.chdir(smoke.folder)
    return smoke


@pytest.mark.parametrize(
    "command", [each for each in COMMANDS if not any(word in each for word in ELSEWHERE)]
)
def test_command(here, command, capsys):
    words = shlex.split(command)[1:]
    name = words[0] if words else ""
    if name == "--help":
        said = subprocess.run(
            [str(ROOT / "run"), name], capture_output=True, text=True, check=True
        ).stdout
        assert "./run search" in said
    elif name == "--help-snakemake":
        assert "--rerun-triggers" in here.run(name)
    elif name == "search":
        assert here.run(*words, *SMOKE).strip()
    elif words == ["serve"]:
        assert "<form" in serve(here)
    elif name == "importance" and "--configfile" not in words:
        commands.command([*words, *SMOKE])
        assert capsys.readouterr().out.strip()
    elif name == "plan":
        commands.command(words)
        assert "operations" in capsys.readouterr().out
    elif name == "--report":
        here.run(*words, *SMOKE)
        assert (here.folder / words[1]).stat().st_size > 100_000
    elif name in commands.COMMANDS:  # it needs or writes files; tests of its own run it
        if words[1:]:
            command = typer.main.get_command(commands.app).commands[name]
            command.make_context(name, commands.each_file(words[1:]))
    elif name != "test":  # which is what runs here
        options = get_argument_parser().parse_args(ordered(words))
        assert dry_run(options.configfile, options.targets)


def test_a_dry_run(here):
    assert "This was a dry-run" in here.run("-n")


@pytest.mark.parametrize("text", PYTHON)
def test_python(smoke, text):
    text = text.replace('"results/', '"results/smoke/')
    found = subprocess.run(
        [sys.executable, "-c", text], cwd=smoke.folder, capture_output=True, text=True
    )
    assert found.returncode == 0, found.stderr
    assert found.stdout.strip()
