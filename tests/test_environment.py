"""The way from a fresh clone to an environment: ./run, envs/start.py and the locked files."""

import contextlib
import importlib.util
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import typer

from cdmae import __main__ as run_start
from cdmae import commands
from cdmae.commands import configs
from cdmae.errors import InputError
from workflow import hooks

ROOT = Path(__file__).resolve().parent.parent
ENVS = ROOT / "envs"


def module(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


# --- ./run ----------------------------------------------------------------------------------------


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


@pytest.fixture
def handed(monkeypatch):
    """Return a function that runs `python -m cdmae` and returns Snakemake's own arguments."""
    asked = []
    monkeypatch.setattr(os, "execv", lambda _, command: asked.append(command))
    monkeypatch.chdir(ROOT)

    def run(*words):
        run_start.main(list(words))
        assert asked[-1][1:5] == ["-m", "snakemake", "--snakefile", str(ROOT / "Snakefile")]
        return asked[-1][7:]

    return run


def parsed(name, *words):
    """Read the arguments of a command."""
    command = typer.main.get_command(commands.app).commands[name]
    return command.make_context(name, commands.each_file(list(words))).params


def last_line(*words):
    """Run `python -m cdmae` to its end, and return the last line of what it said."""
    command = [sys.executable, "-m", "cdmae", *words]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert ended.returncode == 1 and "Traceback" not in ended.stderr
    return ended.stderr.splitlines()[-1]


@pytest.mark.parametrize(
    ("kept", "system", "missing", "what"),
    [
        ("true", ["--system", "cdmae-stage3"], "vectors/cdmae-stage3/pydocs", "./run"),
        (
            "false",
            ["--system", "cdmae-stage3"],
            "vectors/cdmae-stage3/pydocs",
            "./run {}/vectors/cdmae-stage3/pydocs",
        ),
        ("true", [], "measures/bm25.tsv", "./run"),  # by which it would choose
    ],
)
def test_search_says_how_to_get_what_is_missing(tmp_path, refusal, kept, system, missing, what):
    (tmp_path / "trained/cdmae-stage3").mkdir(parents=True)
    config = tmp_path / "own.yaml"
    config.write_text(f"results: {tmp_path}\nevaluation: {{keep_vectors: {kept}}}\n")
    said = f"{tmp_path}/{missing} does not exist yet; {what.format(tmp_path)} with the same config files makes it"
    assert refusal("search", "word", *system, "--configfile", str(config)) == said


@pytest.mark.parametrize(
    ("target", "meant"),
    [
        ("serch", "search"),
        ("table_mian", "table_main"),
        ("results/measures/cdmae-stag3.tsv", "results/measures/cdmae-stage3.tsv"),
        ("results/encoders/cdmea", "results/encoders/cdmae"),
    ],
)
def test_what_no_job_makes_is_refused_with_what_may_have_been_meant(target, meant):
    said = last_line("-n", target)
    assert said == f"cdmae: {target} is not made by this config; did you mean {meant}?"


def test_a_misspelt_command_may_mean_each_of_them():
    assert {*commands.COMMANDS, "test"} == set(hooks.COMMANDS)


@pytest.mark.parametrize("between", [[], ["--configfile"], ["-k", "--configfiles"]])
def test_behind_the_config_files_stand_targets(between, handed, tmp_path, monkeypatch):
    """Snakemake would read targets as configs; configs are relative to the working directory."""
    (tmp_path / "own.yaml").write_text("seed: 42\n")
    monkeypatch.chdir(tmp_path)
    targets = ["results/smoke/encoders/cdmae", "report"]
    words = [
        "-n",
        "--configfile",
        "own.yaml",
        *between,
        f"{ROOT}/config/smoke.yaml",
        *targets,
        "--cores",
        "2",
    ]
    files = [str(tmp_path / "own.yaml"), str(ROOT / "config/smoke.yaml")]
    given = ["-n", "-k"] if "-k" in between else ["-n"]
    assert handed(*words) == [*targets, *given, "--cores", "2", "--configfile", *files]
    assert handed("-n", "report") == ["-n", "report"]


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        (
            "collections: {a: {source: beir, path: no/where}}",
            "collections.a: path is no/where, and {} is not there",
        ),
        (
            "starts: {a: {checkpoint: ./no/where}}",
            "starts.a.checkpoint is ./no/where, and {} is not a folder",
        ),
    ],
)
def test_a_relative_path_of_a_config_begins_at_the_checkout(
    setting, said, tmp_path, refusal, monkeypatch
):
    """A folder of the same name does not count, wherever the config file is."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "no/where").mkdir(parents=True)
    (tmp_path / "own.yaml").write_text(f"standalone: true\n{setting}\n")
    sentence = f"{tmp_path}/own.yaml, line 2: {said.format(ROOT / 'no/where')}; "
    assert refusal("plan", "--configfile", "own.yaml").startswith(sentence)


@pytest.mark.parametrize(
    "line",
    [
        "-n --configfile code.yaml",
        "-n --configfile code.yaml null.yaml",
        "plan --configfile code.yaml null.yaml",
    ],
)
def test_a_config_file_runs_no_code(line, tmp_path, refusal, monkeypatch):
    """Snakemake would run code in such a file, even if another file removes the key."""
    code = f'__use_yte__: true\nreport: {{title: \'?open("{tmp_path}/ran", "w")\'}}\n'
    (tmp_path / "code.yaml").write_text(code)
    (tmp_path / "null.yaml").write_text("__use_yte__: null\n")
    monkeypatch.chdir(tmp_path)
    said = (
        f"{tmp_path}/code.yaml, line 1: the key __use_yte__ makes a config file run code; remove it"
    )
    assert refusal(*line.split()) == said
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("name", ["search", "importance"])
def test_words_after_a_config_file_are_words(name, tmp_path, monkeypatch):
    overlay = tmp_path / "own.yaml"
    more = tmp_path / "more.yaml"
    overlay.write_text("seed: 3\n")
    more.write_text("seed: 4\n")
    monkeypatch.chdir(tmp_path)
    Path("lists").touch()  # a word that is a file, too
    found = parsed(name, "--configfile", "own.yaml", "sorted", "lists")
    assert (found["text"], found["configfile"]) == (["sorted", "lists"], ["own.yaml"])
    for files in (["--configfile", "more.yaml"], ["more.yaml"]):
        found = parsed(name, "sorted", "--configfile", str(overlay), *files, "lists")
        assert found["text"] == ["sorted", "lists"]
        with contextlib.chdir(tmp_path):  # which the next line leaves
            assert configs.configured(found["configfile"]).seed == (4,)


def test_the_plan_takes_several_files_and_values_as_a_run_does(monkeypatch, capsys, tmp_path):
    (tmp_path / "own.yaml").write_text("results: elsewhere\n")
    monkeypatch.chdir(tmp_path)
    files = ["--configfile", str(ROOT / "config/paper.yaml"), "own.yaml"]
    machine = ["--gpus", "8", "--gpu", "h200", "--config", "seed=3", "results=elsewhere"]
    run_start.main(["plan", *files, *machine])
    said = capsys.readouterr().out
    assert re.search(r"on 8 x h200, 3\d\.\d GPU-hours", said) and " in elsewhere, " in said


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (
            "search",
            'search needs a text, for example ./run search "fit a polynomial to data points"',
        ),
        ("search ''", "search needs a text, for example ./run search "),
        ("importance --configfile SMOKE", "importance needs a text, for example ./run importance "),
        ("search caf\udce9", r"the argument 'caf\udce9' is not UTF-8; allowed: text"),
        (
            "serve --port 70000",
            "invalid value for '--port': Input should be less than or equal to 65535, not 70000",
        ),
        ("serve --queries q.txt", "--collection and --queries choose what is judged; add --judge"),
        (
            "search --depth 0 lists",
            "--depth is 0; allowed: a whole number from 1 to 1000 (evaluation.depth)",
        ),
        (
            "search --depth 2000 lists",
            "--depth is 2000; allowed: a whole number from 1 to 1000 (evaluation",
        ),
        (
            "search --dept 3 lists",
            "no such option: --dept (Possible options: --depth",
        ),
        (
            "plan --cores many",
            "invalid value for '--cores': Input should be a valid integer",
        ),
        (
            "search word --configfile bare.yaml",
            "the config has no system that can answer queries; give the --confi",
        ),
        (
            "importance word --configfile bare.yaml",
            "no encoder of the config has importance-aware masks; give ",
        ),
        (
            "plan --cores 0",
            "invalid value for '--cores': Input should be greater than or equal to 1",
        ),
        ("plan --gpus 8 --gpu abacus", "--gpu is abacus; allowed: h200"),
        ("plan --config seed", "--config has seed; allowed: KEY=VALUE"),
        ("plan --config seed=x", "seed[0] is x; expected"),
        ("plan smoke.yaml", "got unexpected extra argument(s) (smoke.yaml)"),
        (
            "-n --config seed=3 --configfile no.yaml",
            "the config file {}/no.yaml cannot be read: No such file",
        ),
    ],
)
def test_what_cannot_be_done_is_refused_in_a_sentence(line, said, refusal, tmp_path, monkeypatch):
    (tmp_path / "bare.yaml").write_text("standalone: true\n")
    monkeypatch.chdir(tmp_path)
    words = shlex.split(line.replace("SMOKE", str(ROOT / "config/smoke.yaml")))
    if re.match("[A-Z]", line):
        monkeypatch.setenv(*words.pop(0).split("="))
    assert refusal(*words).startswith(said.format(tmp_path))


@pytest.mark.parametrize("name", list(commands.COMMANDS))
def test_the_help_of_a_command_has_examples_that_it_reads(name, capsys):
    run_start.main([name, "--help"])
    said = capsys.readouterr().out
    assert said.startswith(f"Usage: ./run {name} [OPTIONS]")
    examples = re.findall(r"^ +(\./run .*)$", said.partition("Examples:")[2], flags=re.MULTILINE)
    assert examples
    for example in examples:
        program, command, *words = shlex.split(example)
        assert (program, command) == ("./run", name)
        parsed(name, *words)
