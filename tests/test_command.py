"""Commands: their arguments, and their exit statuses and messages."""

import errno
import importlib
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from cdmae.cli import ending, read_arguments
from cdmae.errors import InputError, Interrupted
from cdmae.fields import setting, settings
from cdmae.files import complete

ROOT = Path(__file__).resolve().parent.parent


@settings
class Recipe:
    window: int = setting(4, meaning="words", low=2)


def takes(
    *,
    name: str,
    settings: Recipe,
    facts: dict[str, Any],
    indexes: list[Path],
    rate: float = 0.5,
    threads: int = 1,
    teacher: Path | None = None,
    splits: list[str] | None = None,
    query_length: int = 32,
    fresh: bool = False,
):
    """Take one of everything."""


REQUIRED = [
    "--name",
    "n",
    "--settings",
    '{"window": 3}',
    "--facts",
    '{"a": [1]}',
    "--indexes",
    "x",
    "y",
]


def test_annotations_are_options_and_those_that_may_be_left_out_may_be_empty():
    """Empty as a job gives one that lacks the input."""
    read = read_arguments(takes, [*REQUIRED, "--teacher", "--splits", "--rate", "1"])
    assert (read["teacher"], read["splits"], read["rate"]) == (None, [], 1.0)
    found = read_arguments(
        takes, [*REQUIRED, "--rate", "3e-4", "--teacher", "t", "--query-length", "8", "--fresh"]
    )
    assert found == {
        "name": "n", "settings": Recipe(3), "facts": {"a": [1]}, "indexes": [Path("x"), Path("y")], "rate": 3e-4,
        "threads": 1, "teacher": Path("t"), "splits": None, "query_length": 8, "fresh": True,
    }  # fmt: skip


@pytest.mark.parametrize("value", ["-rf", "-1", "--dashes", "- a dash"])
def test_a_value_may_begin_with_a_dash(value):
    assert read_arguments(takes, [*REQUIRED, "--name", value, "--fresh"])["name"] == value


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ([*REQUIRED, "--name", "--fresh"], "argument --name: expected one argument"),
        ([], "the following arguments are required: --name, --settings, --facts, --indexes"),
        ([*REQUIRED, "--thread", "2"], "unrecognized arguments: --thread 2"),
        ([*REQUIRED, "--threads", "two"], "argument --threads: invalid int value: 'two'"),
        (
            [*REQUIRED, "--settings", '{"windw": 3}'],
            "settings.windw is not a setting; did you mean window?",
        ),
        (
            [*REQUIRED, "--settings", '{"window": 1}'],
            "settings.window is 1; allowed: a whole number from 2",
        ),
        ([*REQUIRED, "--settings", "{"], "--settings is {; allowed: JSON text"),
        (
            [*REQUIRED, "--splits", "a", "caf\udce9"],
            r"the argument 'caf\udce9' is not UTF-8; allowed: text in UTF-8",
        ),
    ],
)
def test_arguments_that_do_not_fit(arguments, sentence):
    with pytest.raises(InputError) as caught:
        read_arguments(takes, arguments)
    assert str(caught.value).startswith(sentence)


def ends(work, capsys):
    with pytest.raises(SystemExit) as caught:
        ending(work)
    return caught.value.code, capsys.readouterr().err


def failing(error):
    def fail():
        raise error

    return fail


@pytest.mark.parametrize(
    ("error", "status", "sentence"),
    [
        (InputError("window is 1; allowed: from 2"), 1, "window is 1; allowed: from 2"),
        (Interrupted("saved at step 3"), 75, "saved at step 3"),
        (KeyboardInterrupt(), 130, "stopped from the keyboard"),
        (
            MemoryError(),
            1,
            "out of memory (while running); use more memory, or a smaller batch or chunk",
        ),
        (type("OutOfMemoryError", (RuntimeError,), {})("CUDA"), 1, "out of memory (CUDA)"),
        (
            OSError(errno.ENOSPC, "No space", "a/b"),
            1,
            "a/b: the disk is full; free some space and run again",
        ),
        (
            Exception("No space left on device (os error 28)"),
            1,
            "the disk is full; free some space and run again",
        ),
        (FileNotFoundError(errno.ENOENT, "No such file", "a/b"), 1, "a/b: No such file"),
        (PermissionError(errno.EACCES, "denied", "a/b"), 1, "a/b: denied"),
        (OSError(errno.ESTALE, "Stale file handle", "a/b"), 1, "a/b: Stale file handle"),
        (OSError(errno.EIO, "Input/output error"), 1, "Input/output error"),
        (OSError(errno.ENAMETOOLONG, "long", "a" * 5000), 1, "aaa"),
        (Exception("stale (os error 116)"), 1, "stale (os error 116)"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else None,
)
def test_what_a_user_can_cause_ends_in_one_sentence(capsys, error, status, sentence):
    code, printed = ends(failing(error), capsys)
    assert code == status and printed.startswith(f"cdmae: {sentence}") and printed.count("\n") == 1


def test_a_module_that_is_not_python_is_named_with_its_line(tmp_path, monkeypatch, capsys):
    (tmp_path / "cut_off.py").write_text("x = 1\ndef (\n")
    monkeypatch.syspath_prepend(tmp_path)

    def work():
        importlib.import_module("cut_off")

    said = f"cdmae: {tmp_path}/cut_off.py, line 2, is not valid Python: invalid syntax; correct it and run again\n"
    assert ends(work, capsys) == (1, said)


def test_success_ends_with_status_0_and_an_unforeseen_error_with_its_traceback(capsys):
    with pytest.raises(ZeroDivisionError):
        ending(failing(ZeroDivisionError()))
    assert ends(lambda: None, capsys) == (0, "")


def test_a_reader_that_leaves_is_no_error():
    code = "from cdmae.cli import ending; ending(lambda: print('x' * 2_000_000))"
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    process = subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, **pipes)
    process.stdout.read(10)
    process.stdout.close()
    err = process.stderr.read()
    process.stderr.close()
    assert (process.wait(timeout=20), err) == (141, "")


@pytest.mark.parametrize(
    "error", [Interrupted("stopped"), KeyboardInterrupt(), ZeroDivisionError()]
)
def test_whatever_ends_a_command_leaves_no_half_written_file(tmp_path, error):
    (tmp_path / "old").write_text("whole")
    with pytest.raises(type(error)), complete(tmp_path / "old") as aside:
        aside.write_text("hal")
        raise error
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"old": "whole"}
