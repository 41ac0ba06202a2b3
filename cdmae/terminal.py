"""Make text of unknown origin, such as ids and paths, safe for a terminal or a log."""

from __future__ import annotations

LONGEST = 2000  # the maximum length of a line


def printable(line: str, longest: int = LONGEST) -> str:
    r"""Escape control characters, such as ESC as ``\x1b``, and cut the middle of a long line."""
    short = _shorten(line, longest)
    if short.isprintable():
        return short
    escaped = (
        letter if letter.isprintable() else letter.encode("unicode_escape").decode()
        for letter in short
    )
    return _shorten("".join(escaped), longest)


def _shorten(line: str, longest: int) -> str:
    if len(line) <= longest:
        return line
    head = longest * 2 // 3
    tail = longest // 3
    return f"{line[:head]} ... ({len(line) - head - tail:,} characters left out) ... {line[-tail:]}"
