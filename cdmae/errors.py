"""The two ways in which a command ends early with words instead of a traceback."""

from __future__ import annotations


class InputError(ValueError):
    """Something the user gave is wrong: the message says what was found, where, and what is allowed."""


class Interrupted(BaseException):
    """A signal asked the command to stop; what was computed is saved and the next run goes on from it.

    No `Exception`, as `KeyboardInterrupt` is none: libraries that try things out (transformers' imports) catch those.
    """
