"""Turn functions into commands: parameters become options, docstrings become help texts.

An error that a user can cause ends the process with a one-sentence message, not a traceback. The
exit status is 1 for wrong input, a full disk or too little memory, and 75 for a stop with saved
state.
"""

from __future__ import annotations

import argparse
import dataclasses
import errno
import inspect
import io
import json
import os
import re
import signal
import sys
import threading
import types
import typing
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NoReturn

from cdmae import fields
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


def read_arguments(
    function: Callable[..., Any], arguments: Sequence[str], name: str = "cdmae"
) -> dict[str, Any]:
    """Return the arguments of a function by name, read from a command line.

    Positional arguments are a list, under the name that the function gives them (``*texts``).
    `name` is the program's name in messages. Raises `InputError` for an invalid argument.
    """
    for argument in arguments:
        # Python decodes other bytes to lone surrogates, which no file or tokenizer accepts
        if re.search(r"[\ud800-\udfff]", argument):
            raise InputError(f"the argument {argument!a} is not UTF-8; allowed: text in UTF-8")
    parser = _Parser(
        prog=name,
        description=inspect.getdoc(function),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    hints = hints_of(function)
    actions = [
        _add(parser, parameter, hints[key])
        for key, parameter in inspect.signature(function).parameters.items()
    ]
    found = vars(parser.parse_intermixed_args(_attached(arguments, actions)))
    return {key: _read(hints[key], value, key) for key, value in found.items()}


def hints_of(function: Callable[..., Any]) -> dict[str, Any]:
    """Return the types of a function's parameters; ``X | None`` counts as ``X``."""
    # the annotation's extras name the setting that discriminates between the classes of a union
    hints = typing.get_type_hints(function, include_extras=True)
    return {
        key: hint.__args__[0] if isinstance(hint, types.UnionType) else hint
        for key, hint in hints.items()
    }


def _add(parser: argparse.ArgumentParser, parameter: inspect.Parameter, hint: Any) -> Any:
    """Add a parameter of a function to a parser; return argparse's action."""
    if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
        return parser.add_argument(parameter.name, nargs="*")
    required = parameter.default is inspect.Parameter.empty
    options: dict[str, Any] = {"required": True} if required else {"default": parameter.default}
    if typing.get_origin(hint) is list:
        options["nargs"] = "+" if required else "*"
        (hint,) = typing.get_args(hint)
    elif hint is Path and not required:
        options["nargs"] = "?"  # a job without this input passes the option without a value
    if hint is bool:
        options["action"] = argparse.BooleanOptionalAction
    elif _is_json(hint):
        options["metavar"] = "JSON"
    else:
        options["type"] = hint
        options["metavar"] = _METAVAR.get(hint, hint.__name__.upper())
    return parser.add_argument(_option(parameter.name), **options)


def _attached(arguments: Sequence[str], actions: Sequence[argparse.Action]) -> list[str]:
    """Join an option and a value with a leading dash, which argparse would read as an option."""
    options = {option for action in actions for option in action.option_strings}
    with_one_value = {
        option for action in actions if action.nargs is None for option in action.option_strings
    }
    words: list[str] = []
    for word in arguments:
        dashed = word.startswith("-") and word not in options
        if dashed and words and words[-1] in with_one_value:
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
            f"{_option(key)} is {fields.show(value)}; allowed: JSON text ({error})"
        ) from None
    return fields.parse(hint, parsed, key) if is_settings(hint) else parsed


def _is_json(hint: Any) -> bool:
    return is_settings(hint) or hint is dict or typing.get_origin(hint) is dict


def is_settings(hint: Any) -> bool:
    """Return whether a hint is a class of settings, or a union of classes."""
    return dataclasses.is_dataclass(hint) or typing.get_origin(hint) is typing.Annotated


# --- exit -----------------------------------------------------------------------------------------


def ending(work: Callable[[], Any]) -> NoReturn:
    """Run `work` and exit with status 0, or with an error's message and status."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # an ASCII locale cannot write every letter
    try:
        try:
            work()
            sys.stdout.flush()
        finally:
            _ignore_stops()
    except Exception as error:
        sys.exit(_report(error))
    except Interrupted as stopped:
        sys.exit(_say(str(stopped) or "stopped by a signal", INTERRUPTED))
    except KeyboardInterrupt:
        sys.exit(_say("stopped from the keyboard", 128 + signal.SIGINT))
    sys.exit(0)


def _report(error: Exception) -> int:
    """Print the message for an error and return the exit status; re-raise unexpected errors."""
    if isinstance(error, InputError):
        return _say(str(error), 1)
    # this exception's module is imported only when needed
    if isinstance(error, SyntaxError) and error.filename and Path(error.filename).is_file():
        return _say(not_python(error.filename, error), 1)
    if isinstance(error, BrokenPipeError):
        # otherwise the interpreter would print an error while it ends
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + signal.SIGPIPE
    # torch has its own OutOfMemoryError
    if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError":
        cause = str(error).partition(". ")[0] or "while running"
        return _say(f"out of memory ({cause}); use more memory, or a smaller batch or chunk", 1)
    # libraries written in Rust report a system error's number only in the message
    in_message = re.search(r"\(os error (\d+)\)", str(error))
    if isinstance(error, OSError):
        number = error.errno
    elif in_message:
        number = int(in_message[1])
    else:
        raise error
    sentence = _REMEDY.get(number) or getattr(error, "strerror", None) or str(error)
    path = getattr(error, "filename", None)
    return _say(f"{path}: {sentence}" if path else sentence, 1)


def _say(sentence: str, status: int) -> int:
    print(said(sentence), file=sys.stderr, flush=True)
    return status


def _ignore_stops() -> None:
    """Let the exit functions of libraries run undisturbed: the work has its result or its error."""
    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, signal.SIG_IGN)
