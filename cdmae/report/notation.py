"""Write measures, p-values, and text from elsewhere for the page, the tables and the cards."""

from __future__ import annotations

import math
import os
import re
import shlex
from typing import Any

from cdmae.formats import NONE

MINUS = "\N{MINUS SIGN}"
# control characters, and other characters that XML 1.0 does not allow
CONTROL = re.compile(r"[^\t\n\r -~\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def printable(text: str) -> str:
    """Replace every control character by U+FFFD, because SVG does not allow them."""
    return CONTROL.sub("\N{REPLACEMENT CHARACTER}", text)


def measure_name(measure: str) -> str:
    """Return a column's header: MRR@10 for the mean of RR@10, MAP for the mean of AP."""
    return f"M{measure}" if re.match(r"(RR|AP)\b", measure) else measure


def points(value: float | None) -> str:
    """Write a measure from 0 to 1 as points: 0.1512 is ``15.1``; a dash for None and NaN."""
    return NONE if value is None or math.isnan(value) else minus(f"{100 * value:.1f}")


def signed(value: float | None) -> str:
    """Write a difference of measures as points with its sign: ``+2.4``, or ``0.0``."""
    if value is None or math.isnan(value):
        return NONE
    text = f"{100 * value:+.1f}"
    return "0.0" if text in ("+0.0", "-0.0") else minus(text)


def interval(low: float, high: float) -> str:
    """Write an interval of differences: ``+1.1 to +3.7``, or ``+0.02 to +1.3``.

    A bound that would round to 0 gets further digits, so that it shows whether 0 is inside.
    """
    return f"{_bound(low)} to {_bound(high)}"


def _bound(value: float) -> str:
    points = 100 * value
    if abs(points) >= 0.05 or abs(points) < 1e-6:
        return signed(value)
    digits = math.ceil(-math.log10(abs(points)))
    return minus(f"{points:+.{digits}f}")


def probability(p: float) -> str:
    """Write a p-value as papers do: ``p = .034``, or ``p < .001``, with no-break spaces.

    A p just below .05 gets a further digit, so that it does not read as .050.
    """
    space = "\N{NO-BREAK SPACE}"
    if p < 0.001:
        return f"p{space}<{space}.001"
    digits = 4 if 0.0495 <= p < 0.05 else 3
    return f"p{space}={space}{p:.{digits}f}".replace("0.", ".").replace("1.000", "1")


def percent(share: float, *, decimals: int = 0) -> str:
    """Write a fraction as ``27 %``, with a no-break space."""
    return f"{100 * share:.{decimals}f}\N{NO-BREAK SPACE}%"


def minus(text: str) -> str:
    """Write a number with a true minus instead of a hyphen."""
    return text.replace("-", MINUS)


def without_folders(value: Any) -> Any:
    """Shorten local paths in a JSON value to their last part, because cards and reports are public.

    Local paths begin with ``/`` or ``~``, or leave the checkout with ``..``. Other relative paths
    and names on the Hugging Face hub do not change.
    """
    if isinstance(value, dict):
        return {key: without_folders(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [without_folders(item) for item in value]
    if isinstance(value, str) and (value.startswith(("/", "~")) or ".." in value.split("/")):
        return os.path.basename(os.path.normpath(value))
    return value


def command_line(words: list[str]) -> str:
    """Write a command for a public page, its local paths shortened as in `without_folders`."""
    shown = []
    for word in words:
        option, equals, value = word.partition("=")
        shown.append(f"{without_folders(option)}{equals}{without_folders(value)}")
    return shlex.join(shown)


def markdown(text: Any) -> str:
    """Escape markup, HTML and links in a text, for one line of Markdown."""
    words = " ".join(str(text).split())
    return re.sub(r"([\\`*\[\]<>#!|&~]|:(?=//)|(?<![^\W_])_|_(?![^\W_]))", r"\\\1", words)


def fenced(text: str, language: str) -> str:
    """Write a Markdown code block, with a fence longer than any backticks in the text."""
    longest = max(map(len, re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text.rstrip()}\n{fence}"
