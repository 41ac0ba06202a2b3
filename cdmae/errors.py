"""The two ways in which a command ends early with words instead of a traceback."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

TOLD = 10  # mistakes that are told at once


class InputError(ValueError):
    """Something the user gave is wrong: the message says what was found, where, and what is allowed.

    Where several things are, it has a line for each.
    """


class Mistakes:
    """What is wrong in several places that do not depend on each other, to be told at once."""

    def __init__(self) -> None:
        """Begin with none."""
        self._found: dict[str, str] = {}

    @contextmanager
    def noted(self) -> Iterator[None]:
        """Keep the `InputError` of a block instead of raising it."""
        try:
            yield
        except InputError as error:
            for sentence in str(error).split("\n"):
                place, colon, rest = sentence.partition(": ")
                # "encoders.a: take_step is 9" of every encoder is one mistake, in their defaults.
                self._found.setdefault(rest if colon and " " not in place else sentence, sentence)

    def tell(self) -> None:
        """Raise one `InputError` for all that were noted, if there are any."""
        found = list(self._found.values())
        if len(found) > TOLD:
            found[TOLD:] = [f"and {len(found) - TOLD} more"]
        if found:
            raise InputError("\n".join(found))


class Interrupted(BaseException):
    """A signal asked the command to stop; what was computed is saved and the next run goes on from it.

    No `Exception`, as `KeyboardInterrupt` is none: libraries that try things out (transformers' imports) catch those.
    """


def said(sentences: object) -> str:
    """Say what is printed of them: every line begins with who says it."""
    return "\n".join(f"cdmae: {each}" for each in str(sentences).split("\n"))
