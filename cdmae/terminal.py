"""Make text of unknown origin, such as ids and paths, safe for a terminal or a log."""

from __future__ import annotations

LONGEST = 2000  # the maximum length of a line
JOINERS = "\u200c\u200d"  # in words of Hindi and Persian, and in emoji


def printable(line: str, longest: int = LONGEST) -> str:
    r"""Escape control characters, such as ESC as ``\x1b``, and cut the middle of a long line."""
    escaped = "".join(
        letter
        if letter.isprintable() or letter in JOINERS
        else letter.encode("unicode_escape").decode()
        for letter in line
    )
    if len(escaped) <= longest:
        return escaped
    head = longest * 2 // 3
    tail = longest // 3
    left_out = f"({len(escaped) - head - tail:,} characters left out)"
    return f"{escaped[:head]} ... {left_out} ... {escaped[-tail:]}"
