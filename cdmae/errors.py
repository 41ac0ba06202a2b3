"""The two ways in which a command ends early with words instead of a traceback."""

from __future__ import annotations

import re

from cdmae.terminal import printable

LONGEST = 600  # characters of a library's error


class InputError(ValueError):
    """Something the user gave is wrong: the message says what was found, where, and what is
    allowed.

    Of several mistakes there is a line for each. keys: where in the config a mistake stands, from
    the top.
    """

    def __init__(self, *mistakes: str | InputError, keys: tuple[str | int, ...] = ()) -> None:
        """Take a sentence, or several errors."""
        super().__init__("\n".join(map(str, mistakes)))
        self.keys = keys
        errors = [error for error in mistakes if isinstance(error, InputError)]
        self.several = [part for error in errors for part in error.several] or [self]


class Interrupted(BaseException):
    """A signal asked the command to stop; what was computed is saved and the next run goes on from
    it.

    No `Exception`, as `KeyboardInterrupt` is none: libraries that try things out (transformers'
    imports) catch those.
    """


def cause(error: BaseException) -> str:
    """Return a library's error as one printable line, with its type if the message alone is
    unclear.
    """
    uncoloured = re.sub(r"\x1b\[[\d;]*m", "", str(error))
    line = " ".join(uncoloured.split()) or type(error).__name__
    words = printable(line, LONGEST)
    usual = isinstance(error, OSError | RuntimeError | ValueError) or type(error) is Exception
    return words if usual else f"{type(error).__name__}: {words}"


def said(sentences: object) -> str:
    """Return the printed form of sentences: every line begins with ``cdmae:`` and is printable."""
    return "\n".join(f"cdmae: {printable(line)}" for line in str(sentences).split("\n"))


def not_python(path: str, error: Exception) -> str:
    """Write which line of a source file is not valid Python, and why."""
    line = f", line {error.lineno}," if isinstance(error, SyntaxError) and error.lineno else ""
    return f"{path}{line} is not valid Python: {getattr(error, 'msg', error)}; correct it and run again"
