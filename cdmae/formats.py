"""Format counts, times and sizes for readers."""

from __future__ import annotations

import math
from itertools import pairwise

NONE = "\N{EN DASH}"


def count(value: float) -> str:
    """Write a whole number with thousands separators: ``8,841,823``."""
    return f"{value:,.0f}"


def duration(seconds: float) -> str:
    """Write a time with at most two units: ``0.4 s``, ``42 s``, ``5 min 12 s``, ``3 h 20 min``."""
    if math.isnan(seconds):
        return NONE
    space = "\N{NO-BREAK SPACE}"
    if seconds < 9.95:
        return f"{seconds:.1f}{space}s"
    whole = round(seconds)
    units = {"d": 86400, "h": 3600, "min": 60, "s": 1}
    for (unit, size), (smaller, smaller_size) in pairwise(units.items()):
        if whole >= size:
            large = f"{whole // size}{space}{unit}"
            rest = whole % size // smaller_size
            return f"{large} {rest}{space}{smaller}" if rest else large
    return f"{whole}{space}s"


def memory(megabytes: float) -> str:
    """Write mebibytes as ``640 MB`` or ``1.4 GB``."""
    if math.isnan(megabytes):
        return NONE
    if megabytes < 1000:
        return f"{megabytes:.0f}\N{NO-BREAK SPACE}MB"
    return f"{megabytes / 1024:.1f}\N{NO-BREAK SPACE}GB"


def plain_spaces(text: str) -> str:
    """Replace no-break spaces, which keep a number and its unit on one line of the page."""
    return text.replace("\N{NO-BREAK SPACE}", " ")


def listed(names: list[str], most: int | None = None) -> str:
    """List names in a sentence: ``a, b and c``; after `most` names: ``a, b, c and 5 more``."""
    if most is not None and len(names) > most:
        names = [*names[:most], f"{len(names) - most:,} more"]
    if len(names) < 2:
        return "".join(names)
    return f"{', '.join(names[:-1])} and {names[-1]}"


def plural(number: int, noun: str) -> str:
    """Write a number and its noun: ``1 query``, ``1,618 queries``."""
    if number != 1:
        noun = noun[:-1] + "ies" if noun.endswith("y") else noun + "s"
    return f"{count(number)} {noun}"
