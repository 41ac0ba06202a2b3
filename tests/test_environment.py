"""`./run` reads its arguments: those of commands, and those that it hands to Snakemake."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from snakemake.cli import get_argument_parser

from cdmae import __main__ as run_start
from cdmae import commands
from cdmae.errors import InputError
from workflow import hooks

ROOT = Path(__file__).resolve().parent.parent
SMOKE = ("--configfile", "config/smoke.yaml")


@pytest.fixture
def refusal(monkeypatch):
    """Return a function that runs `python -m cdmae` and returns its error message."""
    monkeypatch.setattr(os, "execv", lambda *_: pytest.fail("was run"))
    monkeypatch.setenv("CDMAE_DEVICE", "")  # which plan sets
    monkeypatch.chdir(ROOT)

    def run(*words):
        with pytest.raises((InputError, SystemExit)) as refused:
            run_start.main(list(words))
        return str(refused.value)

    return run


def test_search_says_how_to_get_what_is_missing(tmp_path, refusal):
    config = tmp_path / "own.yaml"
    config.write_text(f"results: {tmp_path}\n")
    own = ("search", "word", "--configfile", str(config))
    assert f"{tmp_path}/measures/bm25.tsv" in refusal(*own)
    for folder in ("trained/cdmae-stage3", "collections/pydocs"):
        (tmp_path / folder).mkdir(parents=True)
    missing = refusal(*own, "--system", "cdmae-stage3")
    assert f"{tmp_path}/vectors/cdmae-stage3/evaluated/pydocs" in missing


@pytest.mark.parametrize(
    ("words", "named", "meant"),
    [
        (["serch", "x"], "serch", "search"),
        (["results/measures/cdmae-stag3.tsv"], "cdmae-stag3.tsv", "cdmae-stage3.tsv"),
        ([*SMOKE, "results/encoders/cdmae"], "results/encoders", "results/smoke/encoders/cdmae"),
    ],
)
def test_what_no_job_makes_is_refused_with_what_may_have_been_meant(words, named, meant):
    """Also a result of another config."""
    command = [sys.executable, "-m", "cdmae", "-n", *words]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert ended.returncode == 1 and "Traceback" not in ended.stderr
    last = ended.stderr.splitlines()[-1]
    assert named in last and meant in last


def test_a_misspelt_command_may_mean_each_of_them():
    assert {*commands.COMMANDS, "test"} == set(hooks.COMMANDS)


@pytest.mark.parametrize("command", ["-n", "plan"])
def test_a_config_file_runs_no_code(command, tmp_path, refusal, monkeypatch):
    """Snakemake would run code in such a file, even if another file removes the key."""
    code = f'__use_yte__: true\nreport: {{title: \'?open("{tmp_path}/ran", "w")\'}}\n'
    (tmp_path / "code.yaml").write_text(code)
    (tmp_path / "null.yaml").write_text("__use_yte__: null\n")
    monkeypatch.chdir(tmp_path)
    assert "code.yaml, line 1" in refusal(command, "--configfile", "code.yaml", "null.yaml")
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    "words",
    [
        "table_main --configfile config/smoke.yaml config/full.yaml",
        "--configfile config/smoke.yaml config/full.yaml table_main",
        "-n --configfile config/smoke.yaml --configfile config/full.yaml -- table_main",
        "-n --configfile=config/smoke.yaml --configfile=config/full.yaml table_main",
    ],
)
def test_snakemake_reads_targets_before_and_behind_config_files(words):
    options = get_argument_parser().parse_args(run_start.for_snakemake(words.split()))
    assert {str(target) for target in options.targets} == {"table_main"}
    assert [path.name for path in options.configfile] == ["smoke.yaml", "full.yaml"]


def test_the_plan_takes_several_files_and_values_as_a_run_does(monkeypatch, capsys, tmp_path):
    (tmp_path / "own.yaml").write_text("results: elsewhere\n")
    monkeypatch.chdir(tmp_path)
    files = ["--configfile", str(ROOT / "config/paper.yaml"), "own.yaml"]
    machine = ["--gpus", "8", "--gpu", "h200", "--config", "seed=3", "results=elsewhere"]
    run_start.main(["plan", *files, *machine])
    assert re.search(r"on 8 x h200, 3\d\.\d GPU-hours", capsys.readouterr().out)


@pytest.mark.parametrize(
    ("line", "named"),
    [
        ("search", "./run search "),
        ("importance --configfile SMOKE", "./run importance "),
        ("search --depth 2000 lists", "--depth is 2000"),
        ("search --dept 3 lists", "--depth"),
        ("search word --configfile bare.yaml", "no system"),
        ("importance word --configfile bare.yaml", "no encoder"),
        ("plan --gpus 8 --gpu abacus", "--gpu is abacus"),
        ("plan --config seed", "--config: "),
        ("-n --configfile no.yaml", "{}/no.yaml"),
    ],
)
def test_what_cannot_be_done_is_refused_in_a_sentence(line, named, refusal, tmp_path, monkeypatch):
    (tmp_path / "bare.yaml").write_text("standalone: true\n")
    monkeypatch.chdir(tmp_path)
    words = shlex.split(line.replace("SMOKE", str(ROOT / "config/smoke.yaml")))
    assert named.format(tmp_path) in refusal(*words)


def test_every_command_has_help(capsys):
    for name in commands.COMMANDS:
        run_start.main([name, "--help"])
        assert capsys.readouterr().out.startswith(f"Usage: ./run {name} [OPTIONS]")
