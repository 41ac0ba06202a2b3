"""How numbers and names are written: measures x 100 with one decimal, signs with a true minus, MRR
for mean RR.
"""

from __future__ import annotations

import math
import os
import re
from typing import Any

MINUS = "\N{MINUS SIGN}"
NONE = "\N{EN DASH}"
# control characters, and what else XML 1.0 does not allow in a text
CONTROL = re.compile(r"[^\t\n\r -~\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
BREAKS = re.compile(r"[ \t\n\v\f\r\x85\u2028\u2029]+")


def printable(text: str) -> str:
    """Write U+FFFD for every control character of a text; they would make an SVG ill-formed."""
    return CONTROL.sub("\N{REPLACEMENT CHARACTER}", text)


def one_line(text: str) -> str:
    """Write a text in one line, without control characters."""
    return printable(BREAKS.sub(" ", text)).strip(" ")


def measure_name(measure: str) -> str:
    """Write the head of a column: the field says MRR@10 for the mean of RR@10, MAP for that of AP."""
    return f"M{measure}" if re.match(r"(RR|AP)\b", measure) else measure


def points(value: float | None) -> str:
    """Write a measure, 0 to 1, as points: 0.1512 is ``15.1``; a dash where there is none."""
    return NONE if value is None or math.isnan(value) else minus(f"{100 * value:.1f}")


def signed(value: float | None) -> str:
    """Write a difference of measures as points with its sign: ``+2.4``, or ``0.0``."""
    if value is None or math.isnan(value):
        return NONE
    text = f"{100 * value:+.1f}"
    return "0.0" if text in ("+0.0", "-0.0") else minus(text)


def interval(low: float, high: float) -> str:
    """Write an interval of differences: ``+1.1 to +3.7``."""
    return f"{signed(low)} to {signed(high)}"


def probability(p: float) -> str:
    """Write a p-value the way papers write it: ``p = .034``, or ``p < .001``."""
    return "p < .001" if p < 0.001 else f"p = {p:.3f}".replace("0.", ".").replace("1.000", "1")


def percent(share: float, *, decimals: int = 0) -> str:
    """Write a share as ``27 %``, the space not breaking."""
    return f"{100 * share:.{decimals}f}\N{NO-BREAK SPACE}%"


def count(value: float) -> str:
    """Write a whole number with thousands: ``8,841,823``."""
    return f"{value:,.0f}"


def short_count(value: float) -> str:
    """Write a number with three digits that matter: ``950``, ``20.2 thousand``, ``1.04 million``."""
    for least, size, unit in ((1e9, 1e9, "billion"), (1e6, 1e6, "million"), (1e4, 1e3, "thousand")):
        if value >= least:
            return f"{float(f'{value / size:.3g}'):g}\N{NO-BREAK SPACE}{unit}"
    return count(value)


def duration(seconds: float) -> str:
    """Write a time in words with two units: ``0.4 s``, ``42 s``, ``5 min 12 s``, ``3 h 20 min``,
    ``2 d 4 h``.
    """
    if math.isnan(seconds):
        return NONE
    space = "\N{NO-BREAK SPACE}"
    if seconds < 9.95:
        return f"{seconds:.1f}{space}s"
    whole = round(seconds)
    for size, unit, smaller, name in (
        (86400, "d", 3600, "h"),
        (3600, "h", 60, "min"),
        (60, "min", 1, "s"),
    ):
        if whole >= size:
            rest = whole % size // smaller
            return f"{whole // size}{space}{unit}" + (f" {rest}{space}{name}" if rest else "")
    return f"{whole}{space}s"


def memory(megabytes: float) -> str:
    """Memory from mebibytes: ``640 MB``, ``1.4 GB``."""
    if math.isnan(megabytes):
        return NONE
    space = "\N{NO-BREAK SPACE}"
    return f"{megabytes:.0f}{space}MB" if megabytes < 1000 else f"{megabytes / 1024:.1f}{space}GB"


def listed(names: list[str], last: str = "and") -> str:
    """Names in a sentence: ``a, b and c``."""
    return (
        names[0]
        if len(names) == 1
        else f"{', '.join(names[:-1])} {last} {names[-1]}"
        if names
        else ""
    )


def plural(number: int, noun: str) -> str:
    """``1 query``, ``1,618 queries``."""
    many = noun[:-1] + "ies" if noun.endswith("y") else noun + "s"
    return f"{count(number)} {noun if number == 1 else many}"


def minus(text: str) -> str:
    """Write a number with a true minus instead of a hyphen."""
    return text.replace("-", MINUS)


def without_folders(value: Any) -> Any:
    """Cut local paths in a JSON value to their last parts, because cards and reports are published.

    A text is a local path if it begins with ``/`` or ``~``, or leaves the checkout by ``..``. Other
    relative paths and names at the hub stay whole.
    """
    if isinstance(value, dict):
        return {key: without_folders(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [without_folders(item) for item in value]
    if isinstance(value, str) and (value.startswith(("/", "~")) or ".." in value.split("/")):
        return os.path.basename(os.path.normpath(value))
    return value


def markdown(text: Any) -> str:
    """Escape a text for Markdown, in one line: a reader sees its words, no markup, HTML or link."""
    words = " ".join(str(text).split())
    return re.sub(r"([\\`*\[\]<>#!|&~]|:(?=//)|(?<![^\W_])_|_(?![^\W_]))", r"\\\1", words)


def fenced(text: str, language: str) -> str:
    """Write a Markdown code block, whose fence is longer than any run of backticks in the text."""
    longest = max(map(len, re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text.rstrip()}\n{fence}"
