"""What README and docs tell people to type works: on the smoke run, or as a dry run where the real
one takes long.
"""

import re
import shlex
import signal
import subprocess
import urllib.request
from functools import cache

import numpy as np
import pytest
import typer
from planned import plan
from snakemake.cli import get_argument_parser

from cdmae import commands
from cdmae.__main__ import for_snakemake
from cdmae.config.load import load
from cdmae.config.reading import gather
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
# needs a cluster, or files of one's own, or a judged collection
ELSEWHERE = ("--workflow-profile", "my.yaml", "config/heads.yaml", "config/question.yaml", "./run test")  # fmt: skip
COMMANDS = {each.strip() for each in FOUND if not any(word in each for word in ELSEWHERE)}
PYTHON = [text for kind, text in BLOCKS if kind == "python"]


@cache
def planned(files, targets):
    paths = [ROOT / file for file in files]
    return plan(load(gather(ROOT / "config/config.yaml", paths)).values(), *targets)


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_command(here, command, capsys):
    words = shlex.split(command)[1:]
    name = words[0] if words else ""
    if name in ("plan", "search") or (name == "importance" and "--configfile" not in words):
        commands.command(words if name == "plan" else [*words, *SMOKE])
        assert capsys.readouterr().out.strip()
    elif name in commands.COMMANDS:  # it needs or writes files; tests of its own run it
        parser = typer.main.get_command(commands.app).commands[name]
        assert not words[1:] or parser.make_context(name, commands.repeated(words[1:]))
    elif name == "--help":
        assert subprocess.run([str(ROOT / "run"), name]).returncode == 0
    elif name in ("--help-snakemake", "--report"):
        here.run(*words, *(SMOKE if name == "--report" else ()))
        assert name != "--report" or (here.folder / words[1]).stat().st_size > 100_000
    else:
        options = get_argument_parser().parse_args(for_snakemake(words))
        assert planned(tuple(options.configfile or ()), tuple(options.targets))


def test_a_served_page(here):
    process = here.start("serve", "--port", "0", *SMOKE)
    try:
        line = next(line for line in process.stdout if "open http" in line)
        with urllib.request.urlopen(re.search(r"http\S+", line)[0]) as reply:
            assert "<form" in reply.read().decode()
        process.send_signal(signal.SIGINT)
        assert "the server has ended" in process.communicate()[0]
    finally:
        process.kill()


@pytest.mark.parametrize("text", PYTHON)
def test_python(here, text, capsys):
    exec(text.replace('"results/', '"results/smoke/'), {"__name__": "readme"})
    assert capsys.readouterr().out.strip()


def test_the_blocks_of_the_tour_follow_one_passage(here):
    page = (ROOT / "docs/tour.md").read_text()
    names = {"__name__": "tour"}
    for block in re.findall(r"^```python\n(.*?)^```", page, flags=re.MULTILINE | re.DOTALL):
        exec(block.replace('"results/', '"results/smoke/'), names)
    pieces = len(names["one"].ids)
    assert names["mine"]["query"].tolist() == [0], "the passage answers a query of the test split"
    assert len(names["values"]) <= pieces and np.isfinite(names["values"]).all()
    assert names["chosen"].sum() == pieces // 2
    assert len(names["found"]) == len(names["scores"]) > 0
