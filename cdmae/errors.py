"""Define the two exceptions that end a command with a message instead of a traceback."""

from __future__ import annotations

import re

from cdmae.terminal import printable

LONGEST = 600  # the maximum length of a library's error in a message


class InputError(ValueError):
    """An error in the user's input: the message names the file or key, the value and the remedy.

    Each of several errors has its own line. keys: the path of the error in the config, from the
    top.
    """

    def __init__(self, *mistakes: str | InputError, keys: tuple[str | int, ...] = ()) -> None:
        """Store one message, or several messages or errors."""
        super().__init__("\n".join(map(str, mistakes)))
        self.keys = keys
        errors = [error for error in mistakes if isinstance(error, InputError)]
        self.several = [part for error in errors for part in error.several] or [self]


class Interrupted(BaseException):
    """A signal asked the command to stop; its state is saved and the next run resumes from it.

    Like `KeyboardInterrupt`, it is not an `Exception`, because libraries that probe their imports,
    such as transformers, catch every `Exception`.
    """


def cause(error: BaseException) -> str:
    """Return a library's error as one printable line, with its type if the message is unclear."""
    uncoloured = re.sub(r"\x1b\[[\d;]*m", "", str(error))
    line = " ".join(uncoloured.split()) or type(error).__name__
    words = printable(line, LONGEST)
    usual = isinstance(error, OSError | RuntimeError | ValueError) or type(error) is Exception
    return words if usual else f"{type(error).__name__}: {words}"


def said(sentences: object) -> str:
    """Prefix each line of a message with ``cdmae:``, and escape unprintable characters."""
    return "\n".join(f"cdmae: {printable(line)}" for line in str(sentences).split("\n"))
