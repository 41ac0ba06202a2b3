"""How a command ends: its exit status and its message."""

import errno
import subprocess
import sys
from pathlib import Path

import pytest
from snakemake.cli import get_argument_parser

from cdmae.__main__ import for_snakemake
from cdmae.cli import ending
from cdmae.errors import InputError, Interrupted

ROOT = Path(__file__).resolve().parent.parent


def ends(error, capsys):
    def work():
        if error:
            raise error

    with pytest.raises(SystemExit) as caught:
        ending(work)
    return caught.value.code, capsys.readouterr().err


@pytest.mark.parametrize(
    ("error", "status", "named"),
    [
        (InputError("window is 1; expected from 2"), 1, "window is 1; expected from 2"),
        (Interrupted("saved at step 3"), 75, "saved at step 3"),
        (KeyboardInterrupt(), 130, "stopped"),
        (MemoryError(), 1, "out of memory"),
        (type("OutOfMemoryError", (RuntimeError,), {})("CUDA"), 1, "out of memory (CUDA)"),
        (OSError(errno.ENOSPC, "No space", "a/b"), 1, "a/b: the disk is full"),
        (Exception("No space left on device (os error 28)"), 1, "the disk is full"),
        (PermissionError(errno.EACCES, "denied", "a/b"), 1, "a/b: cannot be read or written (denied)"),
        (OSError(errno.EIO, "Input/output error"), 1, "Input/output error"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else None,
)  # fmt: skip
def test_what_a_user_can_cause_ends_in_one_sentence(capsys, error, status, named):
    code, printed = ends(error, capsys)
    assert code == status and named in printed
    assert printed.startswith("cdmae: ") and printed.count("\n") == 1 and "Errno" not in printed


def test_success_ends_with_status_0_and_an_unforeseen_error_with_its_traceback(capsys):
    assert ends(None, capsys) == (0, "")
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


def test_a_reader_that_leaves_is_no_error():
    code = "from cdmae.cli import ending; ending(lambda: print('x' * 2_000_000))"
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    process = subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, **pipes)
    process.stdout.read(10)
    process.stdout.close()
    err = process.stderr.read()
    process.stderr.close()
    assert (process.wait(timeout=20), err) == (141, "")
