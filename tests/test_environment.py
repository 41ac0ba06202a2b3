"""`./run` reads its arguments: those of commands, and those that it hands to Snakemake."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

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
        return str(refused.value).removeprefix("cdmae: ")

    return run


def test_search_says_how_to_get_what_is_missing(tmp_path, refusal):
    config = tmp_path / "own.yaml"
    config.write_text(f"results: {tmp_path}\n")
    own = ("search", "word", "--configfile", str(config))
    assert refusal(*own).startswith(f"{tmp_path}/measures/bm25.tsv does not exist yet; ./run")
    for folder in ("trained/cdmae-stage3", "collections/pydocs"):
        (tmp_path / folder).mkdir(parents=True)
    missing = refusal(*own, "--system", "cdmae-stage3")
    assert missing.startswith(f"{tmp_path}/vectors/cdmae-stage3/evaluated/pydocs does not exist")


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (["serch"], "search"),
        (["table_mian"], "table_main"),
        (["results/measures/cdmae-stag3.tsv"], "results/measures/cdmae-stage3.tsv"),
        ([*SMOKE, "--", "results/encoders/cdmae"], "results/smoke/encoders/cdmae"),
    ],
)
def test_what_no_job_makes_is_refused_with_what_may_have_been_meant(words, meant):
    """Also a result of another config."""
    command = [sys.executable, "-m", "cdmae", "-n", *words]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert ended.returncode == 1 and "Traceback" not in ended.stderr
    said = f"cdmae: {words[-1]} is not made by this config; did you mean {meant}?"
    assert ended.stderr.splitlines()[-1] == said


def test_a_misspelt_command_may_mean_each_of_them():
    assert {*commands.COMMANDS, "test"} == set(hooks.COMMANDS)


@pytest.mark.parametrize("line", ["-n --configfile code.yaml null.yaml", "plan --configfile code.yaml null.yaml"])  # fmt: skip
def test_a_config_file_runs_no_code(line, tmp_path, refusal, monkeypatch):
    """Snakemake would run code in such a file, even if another file removes the key."""
    code = f'__use_yte__: true\nreport: {{title: \'?open("{tmp_path}/ran", "w")\'}}\n'
    (tmp_path / "code.yaml").write_text(code)
    (tmp_path / "null.yaml").write_text("__use_yte__: null\n")
    monkeypatch.chdir(tmp_path)
    assert "code.yaml, line 1: the key __use_yte__" in refusal(*line.split())
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    ("words", "files", "others"),
    [
        ("search --configfile a.yaml one --configfile b.yml a.yaml two", "a b a", "search one two"),
        ("search one --configfile=a.yaml --depth 3 two", "a", "search one --depth 3 two"),
    ],
)
def test_config_files_end_at_the_first_word_without_their_suffix(words, files, others):
    found, *rest = commands.divided(words.split())
    assert [file.partition(".")[0] for file in found] == files.split()
    assert [word for part in rest for word in part] == others.split()


def test_the_plan_takes_several_files_and_values_as_a_run_does(monkeypatch, capsys, tmp_path):
    (tmp_path / "own.yaml").write_text("results: elsewhere\n")
    monkeypatch.chdir(tmp_path)
    files = ["--configfile", str(ROOT / "config/paper.yaml"), "own.yaml"]
    machine = ["--gpus", "8", "--gpu", "h200", "--config", "seed=3", "results=elsewhere"]
    run_start.main(["plan", *files, *machine])
    assert re.search(r"on 8 x h200, 3\d\.\d GPU-hours", capsys.readouterr().out)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("search", "search needs a text, for example ./run search "),
        ("importance --configfile SMOKE", "importance needs a text, for example ./run importance "),
        ("serve --port 70000", "invalid value for '--port': "),
        ("search --depth 2000 lists", "--depth is 2000; "),
        ("search --dept 3 lists", "no such option: --dept (Possible options: --depth"),
        ("search word --configfile bare.yaml", "the config has no system that can answer"),
        ("importance word --configfile bare.yaml", "no encoder of the config has importance-aware"),
        ("plan --gpus many", "invalid value for '--gpus': "),
        ("plan --gpus 8 --gpu abacus", "--gpu is abacus; "),
        ("plan --config seed", "--config: "),
        ("plan smoke.yaml", "got unexpected extra argument(s) (smoke.yaml)"),
        ("-n --configfile no.yaml", "the config file {}/no.yaml cannot be read: "),
    ],
)
def test_what_cannot_be_done_is_refused_in_a_sentence(line, said, refusal, tmp_path, monkeypatch):
    (tmp_path / "bare.yaml").write_text("standalone: true\n")
    monkeypatch.chdir(tmp_path)
    words = shlex.split(line.replace("SMOKE", str(ROOT / "config/smoke.yaml")))
    assert refusal(*words).startswith(said.format(tmp_path))


@pytest.mark.parametrize("name", list(commands.COMMANDS))
def test_a_command_has_help(name, capsys):
    run_start.main([name, "--help"])
    assert capsys.readouterr().out.startswith(f"Usage: ./run {name} [OPTIONS]")
