"""How `./run` reads its arguments, what it prints, and how it ends."""

import errno
import os
import shlex
import subprocess
import sys
import time
import unicodedata
from pathlib import Path

import pytest
from snakemake.cli import get_argument_parser

from cdmae import __main__ as run_start
from cdmae import commands
from cdmae.__main__ import for_snakemake
from cdmae.cli import ending
from cdmae.errors import InputError, Interrupted, said
from cdmae.importance import shading
from cdmae.importance.shading import Word
from cdmae.log import Progress, say
from cdmae.serving.answers import show
from cdmae.serving.engine import Hit
from workflow import hooks

ROOT = Path(__file__).resolve().parent.parent


@pytest.mark.parametrize(
    ("error", "status", "named"),
    [
        (InputError("window is 1; expected from 2"), 1, "window is 1; expected from 2"),
        (Interrupted("saved at step 3"), 75, "saved at step 3"),
        (KeyboardInterrupt(), 130, "stopped"),
        (type("OutOfMemoryError", (RuntimeError,), {})("CUDA"), 1, "out of memory (CUDA)"),
        (Exception("No space left on device (os error 28)"), 1, "the disk is full"),
        (PermissionError(errno.EACCES, "denied", "a/b"), 1, "a/b: cannot be read or written (denied)"),
        (OSError(errno.EIO, "Input/output error"), 1, "Input/output error"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else None,
)  # fmt: skip
def test_what_a_user_can_cause_ends_in_one_sentence(capsys, error, status, named):
    def work():
        raise error

    with pytest.raises(SystemExit, match=f"^{status}$"):
        ending(work)
    printed = capsys.readouterr().err
    assert printed.startswith("cdmae: ") and named in printed
    assert printed.count("\n") == 1 and "Errno" not in printed


def test_success_ends_with_status_0_and_an_unforeseen_error_with_its_traceback(capsys):
    with pytest.raises(SystemExit, match="^0$"):
        ending(lambda: None)
    assert capsys.readouterr().err == ""
    with pytest.raises(ZeroDivisionError):
        ending(lambda: 1 / 0)


@pytest.mark.parametrize(
    "arguments",
    [
        "table_main -n --configfile config/smoke.yaml config/full.yaml",
        "-n --configfile config/smoke.yaml config/full.yaml -- table_main",
        "-n --quiet host --configfile config/smoke.yaml --configfile=config/full.yaml table_main",
        "-n --config seed=42 --configfile config/smoke.yaml config/full.yaml table_main",
    ],
)
def test_targets_come_before_or_after_config_files(arguments):
    options = get_argument_parser().parse_args(for_snakemake(arguments.split()))
    assert options.targets == ["table_main"]
    assert [path.name for path in options.configfile] == ["smoke.yaml", "full.yaml"]


@pytest.mark.parametrize(
    "words", [["--workflow-profile", "nowhere"], ["--workflow-profile=nowhere"]]
)
def test_a_profile_that_does_not_exist_is_refused(words):
    with pytest.raises(InputError, match="--workflow-profile is nowhere"):
        for_snakemake([*words, "-n"])


# --- arguments ------------------------------------------------------------------------------------


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


def test_what_no_job_makes_is_refused_with_the_result_that_may_have_been_meant():
    command = [sys.executable, "-m", "cdmae", "-n", *SMOKE, "results/encoders/cdmae"]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert ended.returncode == 1 and "Traceback" not in ended.stderr
    assert "results/smoke/encoders/cdmae" in ended.stderr.splitlines()[-1]


def test_a_misspelt_command_may_mean_each_of_them():
    assert {*commands.COMMANDS, "test"} == set(hooks.COMMANDS)
    with pytest.raises(InputError, match="serch is not a command; did you mean search?"):
        commands.command(["serch", "--depth", "5", "a question"])
    assert not commands.command(["report"]) and not commands.command([])


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
        ("check --configfile SMOKE", "config/smoke.yaml (seed 42 43); the nearest are for config/"),
        ("check --configfile", "--configfile has no file"),
        ("plan --configfile= --gpus 8", "--configfile has no file"),
        ("search word --configfile '' --depth 3", "--configfile has no file"),
        ("check --configfile --write", "--configfile has no file"),
    ],
)
def test_what_cannot_be_done_is_refused_in_a_sentence(line, named, refusal, tmp_path, monkeypatch):
    (tmp_path / "bare.yaml").write_text("standalone: true\n")
    monkeypatch.chdir(tmp_path)
    words = shlex.split(line.replace("SMOKE", str(ROOT / "config/smoke.yaml")))
    assert named.format(tmp_path) in refusal(*words)


# --- terminals and logs ---------------------------------------------------------------------------


CLEAR = "\x1b]0;owned\x07\x1b[2J"


def test_every_line_that_is_printed_is_printable(capsys):
    say(CLEAR)
    long = "x" * 10**6
    hits = [Hit(1, 1.0, 0, CLEAR, CLEAR, CLEAR), Hit(2, 1.0, 1, long, long, long)]
    lines = [capsys.readouterr().err.strip(), *said(f"one{CLEAR}\ntwo").split("\n")]
    lines += show(hits, width=80).split("\n")
    assert all(line.isprintable() and len(line) < 1000 for line in lines)
    assert CLEAR not in shading.as_numbers([Word(CLEAR, 1.0)])
    assert CLEAR not in shading.for_terminal([Word(CLEAR, 1.0), Word(CLEAR, 0.0)])


def test_a_passage_keeps_its_letters_and_fits_the_terminal():
    joined = "क्\u200dष می\u200cخواهم 👩\u200d👩\u200d👧"
    (block,) = show([Hit(1, 1.0, 0, "p", joined, f"{joined} soft\u00adware")], 60).split("\n\n")
    assert block.count(joined) == 2 and "software" in block
    for text in ("安装软件的方法" * 90, "a 安装 " * 90):
        for line in show([Hit(1, 1.0, 0, "p", "", text)], 60).split("\n")[2:7]:
            columns = sum(1 + (unicodedata.east_asian_width(letter) == "W") for letter in line)
            assert 50 < columns <= 60, line


def test_progress_has_the_pace_of_this_run_and_is_printed_by_one_process(monkeypatch, capsys):
    """A line after 2 seconds, and then one every 10 seconds."""
    clock = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])

    def lines():
        with Progress(4000, label="pretrain cdmae", start=1000) as shown:
            for _ in range(30):
                clock[0] += 1.0
                shown.advance(10)
        return capsys.readouterr().err.splitlines()

    found = lines()
    assert [line.split()[2] for line in found] == ["1,020", "1,120", "1,220", "1,300"]
    assert "10.0 steps/s, 4 min 58 s left" in found[0]
    monkeypatch.setenv("RANK", "1")
    assert lines() == []
