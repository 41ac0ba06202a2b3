"""Make command lines of functions with `@command`: annotations are options, docstrings help texts.

A script consists of its imports and one function. Errors that a user can cause end in one sentence
and an exit status instead of a traceback: 1 for wrong input, a full disk or too little memory, 75
for a stop with saved state.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import errno
import functools
import inspect
import io
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
from cdmae.errors import InputError, Interrupted, not_python, said

INTERRUPTED = 75  # EX_TEMPFAIL of sysexits.h: the next run resumes
# the process id of the workflow engine; the job stops itself when that process has ended
PARENT = "CDMAE_PARENT"
_METAVAR = {str: "TEXT", int: "N", float: "X"}
_REMEDY = {
    errno.ENOSPC: "the disk is full; free some space and run again, finished steps are kept",
    errno.EDQUOT: "the quota is used up; free some space and run again, finished steps are kept",
    errno.EFBIG: "the file exceeds the limit of the shell (ulimit -f) or the file system",
}


def command(function: Callable[..., Any]) -> Callable[..., Any]:
    """Turn a keyword-only function into a command that reads an argument list or the command line.

    In a script that Python was started with, the command runs at once. For a library function,
    write ``command(module.function)``.

    Annotations: Path, str, int, float, bool (a flag), ``list[...]`` (separated by spaces), ``X |
    None`` (may be left out, or empty), and settings or ``dict`` (JSON text). Never returns;
    ``command.function`` is the function itself.
    """
    caller = sys._getframe(1)  # noqa: SLF001 (as collections.namedtuple)
    name = Path(caller.f_code.co_filename).stem.replace("_", "-")

    @functools.wraps(function)
    def run(arguments: Sequence[str] | None = None) -> NoReturn:
        def work() -> None:
            values = read_arguments(
                function, sys.argv[1:] if arguments is None else arguments, name
            )
            _end_on_sigterm()
            _end_with_parent()
            function(**values)

        ending(work)

    run.function = function  # type: ignore[attr-defined]
    if caller.f_globals["__name__"] == "__main__":
        run()
    return run


def read_arguments(
    function: Callable[..., Any], arguments: Sequence[str], name: str = "cdmae"
) -> dict[str, Any]:
    """Return the arguments of `function` on a command line by name.

    `name` is the program's name in messages. Words of ``*words`` are a list. Raises `InputError`
    for an argument that does not fit.
    """
    for argument in arguments:
        # Python decodes other bytes to lone surrogates, which no file or tokenizer accepts
        if re.search(r"[\ud800-\udfff]", argument):
            raise InputError(f"the argument {argument!a} is not UTF-8; allowed: text in UTF-8")
    form = argparse.RawDescriptionHelpFormatter
    parser = _Parser(
        prog=name, description=inspect.getdoc(function), formatter_class=form, allow_abbrev=False
    )
    # the extras name the setting that discriminates the classes of a union
    hints = typing.get_type_hints(function, include_extras=True)
    hints = {
        key: hint.__args__[0] if isinstance(hint, types.UnionType) else hint
        for key, hint in hints.items()
    }
    single = []  # options with one value
    for key, parameter in inspect.signature(function).parameters.items():
        required = parameter.default is inspect.Parameter.empty
        options: dict[str, Any] = {"required": True} if required else {"default": parameter.default}
        hint = hints[key]
        if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
            parser.add_argument(key, nargs="*")
            continue
        if typing.get_origin(hint) is list:
            options["nargs"] = "+" if required else "*"
            hint = typing.get_args(hint)[0]
        elif hint is Path and not required:
            options["nargs"] = "?"  # a job without this input gives the option without a value
        if "nargs" not in options and hint is not bool:
            single.append(_option(key))
        if hint is bool:
            options["action"] = argparse.BooleanOptionalAction
        elif _is_json(hint):
            options["metavar"] = "JSON"
        else:
            options |= {"type": hint, "metavar": _METAVAR.get(hint, hint.__name__.upper())}
        parser.add_argument(_option(key), **options)
    found = vars(
        parser.parse_intermixed_args(_attached(arguments, single, set(map(_option, hints))))
    )
    return {key: _read(hints[key], value, key) for key, value in found.items()}


def _attached(arguments: Sequence[str], single: Sequence[str], known: set[str]) -> list[str]:
    """Join an option and a value that begins with a dash: argparse would read another option."""
    words: list[str] = []
    for word in arguments:
        if words and words[-1] in single and word.startswith("-") and word not in known:
            words[-1] += f"={word}"
        else:
            words.append(word)
    return words


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise InputError(f"{message}; {self.prog} --help lists the options")


def _option(key: str) -> str:
    return "--" + key.replace("_", "-")


def _read(hint: Any, value: Any, key: str) -> Any:
    if not _is_json(hint) or not isinstance(value, str):
        return value
    try:
        parsed = json.loads(value)
    except json.JSONDecodeError as error:
        raise InputError(
            f"{_option(key)} is {settings.show(value)}; allowed: JSON text ({error})"
        ) from None
    return settings.parse(hint, parsed, key) if _is_settings(hint) else parsed


def _is_json(hint: Any) -> bool:
    return _is_settings(hint) or hint is dict or typing.get_origin(hint) is dict


def _is_settings(hint: Any) -> bool:
    """Return whether a hint is a class of settings, or a union of such classes."""
    return dataclasses.is_dataclass(hint) or typing.get_origin(hint) is typing.Annotated


# --- how it ends ----------------------------------------------------------------------------------


def ending(work: Callable[[], Any]) -> NoReturn:
    """Run `work` and end the process: with status 0, or with a sentence and an error's status."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a locale of ASCII cannot write every letter
    try:
        work()
        sys.stdout.flush()
    except Exception as error:
        sys.exit(_report(error))
    except Interrupted as stopped:
        sys.exit(_say(str(stopped) or "stopped by a signal", INTERRUPTED))
    except KeyboardInterrupt:
        sys.exit(_say("stopped from the keyboard", 128 + signal.SIGINT))
    sys.exit(0)


def _report(error: Exception) -> int:
    """Print the sentence for an error and return the exit status; re-raise an unforeseen error."""
    if isinstance(error, InputError):
        return _say(str(error), 1)
    # from a module that is imported late
    if isinstance(error, SyntaxError) and Path(error.filename or "").is_file():
        return _say(not_python(error.filename, error), 1)
    if isinstance(error, BrokenPipeError):
        # otherwise the interpreter would print an error while it ends
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + signal.SIGPIPE
    # torch has its own OutOfMemoryError
    if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError":
        cause = str(error).partition(". ")[0] or "while running"
        return _say(f"out of memory ({cause}); give it more, or lower the batch or chunk", 1)
    # libraries in Rust write the number of a system error into the message
    words = re.search(r"\(os error (\d+)\)", str(error))
    number = error.errno if isinstance(error, OSError) else int(words[1]) if words else None
    if number is None:
        raise error
    sentence = _REMEDY.get(number) or getattr(error, "strerror", None) or str(error)
    path = getattr(error, "filename", None)
    return _say(f"{path}: {sentence}" if path else sentence, 1)


def _say(sentence: str, status: int) -> int:
    print(said(sentence), file=sys.stderr, flush=True)
    return status


def _end_on_sigterm() -> None:
    """Let SIGTERM unwind the stack, so that no half-written file remains.

    A second SIGTERM ends the process at once.
    """

    def stop(number: int, _frame: types.FrameType | None) -> None:
        signal.signal(number, signal.SIG_DFL)
        raise Interrupted("stopped by SIGTERM")

    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, stop)


def _end_with_parent() -> None:
    """Watch the process in ``CDMAE_PARENT``, if set, and send SIGTERM to this one when it ends.

    A workflow engine that is killed leaves its jobs running; the next run would start the same jobs
    a second time.
    """
    value = os.environ.get(PARENT, "")
    if not value:
        return
    import psutil

    if not value.isdecimal():
        raise InputError(f"the environment variable {PARENT} is {value!r}; allowed: a process id")

    def watch() -> None:
        with contextlib.suppress(psutil.Error):  # as soon as there is no such process
            parent = psutil.Process(int(value))
            while parent.is_running() and parent.status() != psutil.STATUS_ZOMBIE:
                time.sleep(1)
        print(
            f"the workflow (process {value}) has gone: this job stops too",
            file=sys.stderr,
            flush=True,
        )
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch, daemon=True, name="parent").start()
