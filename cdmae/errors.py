"""Define the two exceptions that end a command with a message instead of a traceback."""

from __future__ import annotations

import re

from cdmae.terminal import printable

Keys = tuple[str | int, ...]  # the path of a value in a config, from the top level
LONGEST = 600  # the maximum length of a library's error in a message


class InputError(ValueError):
    """An error in the user's input: the message names the file or key, the value and the remedy.

    keys: the path of the value in the config, from the top. place: the file and line, or where else
    the value is from. kind: pydantic's name of the mistake, such as "missing"; empty for others.
    several: the mistakes of a config, each with a line of the message.
    """

    def __init__(
        self, *mistakes: str | InputError, keys: Keys = (), place: str = "", kind: str = ""
    ) -> None:
        """Store several errors, or one: its text, which follows place and keys in the message."""
        self.words = "\n".join(map(str, mistakes))
        self.keys = keys
        self.place = place
        self.kind = kind
        errors = [error for error in mistakes if isinstance(error, InputError)]
        self.several = [part for error in errors for part in error.several] or [self]
        super().__init__(self.words)

    def __str__(self) -> str:
        """Return the message."""
        where = f"{self.place}: " if self.place else ""
        return where + dotted(self.keys) + self.words

    def within(self, *keys: str | int) -> InputError:
        """Return the error with the keys of an entry before its own."""
        several = []
        for each in self.several:
            follows = each.keys or not keys or each.words[0] == " "
            words = each.words if follows else f": {each.words}"
            path = (*keys, *each.keys)
            several.append(InputError(words, keys=path, place=each.place, kind=each.kind))
        return InputError(*several)


def dotted(keys: Keys) -> str:
    """Format keys for messages, such as ``systems.fused.of[1]``."""
    text = "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in keys)
    return text.removeprefix(".")


def missing(error: ModuleNotFoundError) -> InputError:
    """Return the refusal of a config that needs a package in the environment of Snakemake."""
    name = error.name
    return InputError(f"this config needs {name} also where Snakemake runs: pip install {name}")


class Interrupted(BaseException):
    """A signal asked the command to stop; its state is saved and the next run resumes from it.

    Like `KeyboardInterrupt`, it is not an `Exception`, because libraries that probe their imports,
    such as transformers, catch every `Exception`.
    """


def cause(error: BaseException) -> str:
    """Return a library's error as one printable line, with its type if the message is unclear."""
    text = str(error)
    if isinstance(error, OSError) and error.strerror:  # without its number
        text = f"{error.strerror}: {error.filename}" if error.filename else error.strerror
    uncoloured = re.sub(r"\x1b\[[\d;]*m", "", text)
    line = " ".join(uncoloured.split()) or type(error).__name__
    words = printable(line, LONGEST)
    usual = isinstance(error, OSError | RuntimeError | ValueError) or type(error) is Exception
    return words if usual else f"{type(error).__name__}: {words}"


def said(sentences: object) -> str:
    """Prefix each line of a message with ``cdmae:``, and escape unprintable characters."""
    return "\n".join(f"cdmae: {printable(line)}" for line in str(sentences).split("\n"))
