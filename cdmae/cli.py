"""`@command` makes a command line of a keyword-only function: its annotations are the options, its docstring the help.

A script is then its imports, one function and ``if __name__ == "__main__": main()``. What a user can cause ends in one
sentence and an exit status, not in a traceback: 1 for wrong input, full disk or memory, 75 for a stop with saved state.
"""

from __future__ import annotations

import argparse
import dataclasses
import errno
import functools
import inspect
import json
import os
import re
import signal
import sys
import threading
import time
import types
import typing
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NoReturn

from cdmae import fields as settings
from cdmae.errors import InputError, Interrupted, said

INTERRUPTED = 75  # EX_TEMPFAIL of sysexits.h: try again, it goes on
PARENT = "CDMAE_PARENT"  # the process id of the workflow engine; the job ends itself when that process has gone
_REMEDY = {
    errno.ENOSPC: "the disk is full; free some space and run again, finished steps are kept",
    errno.EDQUOT: "the disk quota is used up; free some space and run again, finished steps are kept",
    errno.EFBIG: "the file is larger than is allowed here (ulimit -f, or the file system)",
    errno.EROFS: "the disk cannot be written to",
    errno.EACCES: "permission denied",
    errno.ENOENT: "no such file or folder",
    errno.ENOTDIR: "a part of the path is not a folder",
    errno.EISDIR: "is a folder where a file is expected",
}


def command(function: Callable[..., Any]) -> Callable[..., Any]:
    """Turn a keyword-only function into a command: called with an argument list, or none, it reads the command line.

    It is named after the file in which this is called: a script of one library call is ``main = command(that.call)``.

    Annotations: Path, str, int, float, bool (a flag), ``list[...]`` (separated by spaces), ``X | None`` (may be left
    out), and a settings dataclass or ``dict`` (JSON text). Never returns; ``command.function`` is the function itself.
    """
    name = Path(sys._getframe(1).f_code.co_filename).stem.replace("_", "-")  # noqa: SLF001 (as collections.namedtuple)

    @functools.wraps(function)
    def run(arguments: Sequence[str] | None = None) -> NoReturn:
        try:
            values = read_arguments(function, sys.argv[1:] if arguments is None else arguments, name)
            _end_on_sigterm()
            _end_with_parent()
            function(**values)
            sys.stdout.flush()
        except Exception as error:
            sys.exit(_report(error))
        except Interrupted as stopped:
            sys.exit(_say(str(stopped) or "stopped by a signal", INTERRUPTED))
        except KeyboardInterrupt:
            sys.exit(_say("stopped from the keyboard", 128 + signal.SIGINT))
        sys.exit(0)

    run.function = function  # type: ignore[attr-defined]
    return run


def read_arguments(function: Callable[..., Any], arguments: Sequence[str], name: str = "") -> dict[str, Any]:
    """The keyword arguments that a command line gives to `function`; raises `InputError` for one that does not fit."""
    parser = _Parser(prog=f"cdmae {name}".strip(), description=inspect.getdoc(function), allow_abbrev=False)
    hints = typing.get_type_hints(function)
    for key, parameter in inspect.signature(function).parameters.items():
        _add(parser, key, hints[key], parameter.default)
    values = vars(parser.parse_args(arguments))
    return {key: _read(hints[key], value, key) for key, value in values.items()}


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise InputError(f"{message}; --help lists the options")


def _add(parser: argparse.ArgumentParser, key: str, hint: Any, default: Any) -> None:
    option = "--" + key.replace("_", "-")
    hint = _without_none(hint)
    given: dict[str, Any] = {"dest": key}
    if default is inspect.Parameter.empty:
        given["required"] = True
    else:
        given["default"] = default
    if hint is bool:
        parser.add_argument(option, action=argparse.BooleanOptionalAction, **given)
        return
    if typing.get_origin(hint) is list:
        given["nargs"] = "*" if "default" in given else "+"
        hint = typing.get_args(hint)[0]
    parser.add_argument(option, type=str if _is_json(hint) else hint, metavar=_metavar(hint), **given)


def _read(hint: Any, value: Any, key: str) -> Any:
    hint = _without_none(hint)
    for text in value if isinstance(value, list) else [value]:
        if isinstance(text, str) and not _is_text(text):
            raise InputError(f"--{key.replace('_', '-')} is not UTF-8; allowed: text in UTF-8")
    if not _is_json(hint) or not isinstance(value, str):
        return value
    try:
        found = json.loads(value)
    except json.JSONDecodeError as error:
        raise InputError(f"--{key.replace('_', '-')} is {settings.show(value)}; allowed: JSON text ({error})") from None
    return settings.parse(hint, found, key) if dataclasses.is_dataclass(hint) else settings.mapping(found, key)


def _is_text(value: str) -> bool:
    """Whether an argument was UTF-8: Python hides other bytes in it as surrogates, which no file or tokenizer takes."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _without_none(hint: Any) -> Any:
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        return next(each for each in typing.get_args(hint) if each is not types.NoneType)
    return hint


def _is_json(hint: Any) -> bool:
    return dataclasses.is_dataclass(hint) or hint is dict or typing.get_origin(hint) is dict


def _metavar(hint: Any) -> str:
    return "JSON" if _is_json(hint) else {str: "TEXT", int: "N", float: "X"}.get(hint, hint.__name__.upper())


# --- how it ends -----------------------------------------------------------------------------------------------------


def _report(error: Exception) -> int:
    """Say the sentence that belongs to an error and return the exit status; an unforeseen error is raised again."""
    if isinstance(error, InputError):
        return _say(str(error), 1)
    if isinstance(error, BrokenPipeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or the interpreter complains while it ends
        return 128 + signal.SIGPIPE
    if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError":  # the latter is torch's
        cause = str(error).partition(". ")[0] or "while running"
        return _say(f"out of memory ({cause}); give it more, or lower the batch or chunk", 1)
    number = error.errno if isinstance(error, OSError) else _system_error(error)
    if number in _REMEDY:
        where = f"{error.filename}: " if getattr(error, "filename", None) else ""
        return _say(where + _REMEDY[number], 1)
    raise error


def _system_error(error: Exception) -> int | None:
    """The number of the system's error behind one of a library in Rust, which tells it in words only."""
    found = re.search(r"\(os error (\d+)\)", str(error))
    return int(found[1]) if found else None


def _say(sentence: str, status: int) -> int:
    print(said(sentence), file=sys.stderr, flush=True)
    return status


def last_words(logs: Path | str, since: float) -> list[str]:
    """What commands ended with that did not end well: their sentences, from the logs below a folder, oldest first.

    Each stands behind the path of its log. Logs last written before `since`, in seconds since the epoch, do not count.
    """
    found = []
    for path in Path(logs).rglob("*.log"):
        written = path.stat().st_mtime
        words = re.findall(r"^cdmae: .*", path.read_text(errors="replace"), re.MULTILINE)
        if words and written >= since:
            found.append((written, f"{path}: {words[-1]}"))
    return [text for _, text in sorted(found)]


def _end_on_sigterm() -> None:
    """Let SIGTERM unwind the stack, so that no half-written file stays; a second one ends the process at once."""

    def stop(number: int, _frame: types.FrameType | None) -> None:
        signal.signal(number, signal.SIG_DFL)
        raise Interrupted("stopped by SIGTERM")

    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, stop)


def _end_with_parent() -> None:
    """Watch the process in ``CDMAE_PARENT``, if set, and send SIGTERM to this one when it has gone.

    A workflow engine that is killed leaves its jobs running, and the next run would start a second one beside them.
    """
    given = os.environ.get(PARENT, "")
    if not given:
        return
    if not given.isdecimal():
        raise InputError(f"the environment variable {PARENT} is {given!r}; allowed: a process id")
    parent = int(given)
    born = birth(parent)

    def watch() -> None:
        while birth(parent) == born is not None:
            time.sleep(1)
        print(f"the workflow (process {parent}) has gone: this job stops too", file=sys.stderr, flush=True)
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch, daemon=True, name="parent").start()


def birth(process: int) -> str | None:
    """What tells a running process from a later one with the same id: its start time, or None if it does not run."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        return None if fields[0] in "ZX" else fields[19]  # proc(5): 3 is the state, 22 the start time
    except OSError:
        pass
    if Path("/proc/self/stat").exists():
        return None
    try:
        os.kill(process, 0)  # a system without /proc
    except ProcessLookupError:
        return None
    except PermissionError:
        return "running"
    return "running"
