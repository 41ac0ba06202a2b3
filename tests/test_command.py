"""How a command ends: its exit status and its message."""

import errno
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

from cdmae.cli import ending
from cdmae.errors import InputError, Interrupted
from cdmae.files import complete

ROOT = Path(__file__).resolve().parent.parent


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
