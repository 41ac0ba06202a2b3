"""Report the progress of a long command on standard error, a line every ten seconds.

``pretrain cdmae: 1,200 of 4,000 steps (30 %), 45.2 steps/s, 1 min 2 s left, loss 5.12``
"""

from __future__ import annotations

import os
import sys
import time
from typing import Any

from cdmae import formats
from cdmae.terminal import printable

FIRST = 2.0  # seconds to the first line
EVERY = 10.0  # seconds between lines


def say(text: str) -> None:
    """Print a line to standard error; of several processes of a job, only the first prints."""
    if os.environ.get("RANK", "0") == "0":  # set by torchrun
        print(printable(formats.plain_spaces(text)), file=sys.stderr, flush=True)


class Progress:
    """Count a command's steps, and report its pace and remaining time.

    total: the number of steps, or 0 if it is unknown. start: the step from which a command resumes;
    earlier steps are done, but do not count towards the pace.
    """

    def __init__(self, total: int, *, unit: str = "steps", label: str = "", start: int = 0) -> None:
        """Start counting at step `start` of `total`."""
        self.total = total
        self.unit = unit
        self.label = label
        self.done = start
        self._start = start
        self._numbers: dict[str, Any] = {}
        self._began = time.monotonic()
        self._next = self._began + FIRST
        self._printed = False

    def __enter__(self) -> Progress:
        """Restart the clock: earlier time does not count towards the pace."""
        self._began = time.monotonic()
        return self

    def advance(self, count: int = 1, **numbers: Any) -> None:
        """Add `count`; `numbers` (floats or 0-d tensors) are read only when a line is printed."""
        self.done += count
        self._numbers = numbers or self._numbers
        now = time.monotonic()
        if now >= self._next and self.done != self.total:  # the end has a line of its own
            self._next = now + EVERY
            self._printed = True
            say(self.line(now))

    def line(self, now: float) -> str:
        """Return the line at a time of the monotonic clock."""
        pace = (self.done - self._start) / max(now - self._began, 1e-9)
        parts = [f"{self.done:,} {self.unit}"]
        if self.total:
            percent = 100 * self.done // self.total
            parts = [f"{self.done:,} of {self.total:,} {self.unit} ({percent} %)"]
        parts.append(f"{amount(pace)} {self.unit}/s")
        if pace and self.total > self.done:
            parts.append(f"{formats.duration((self.total - self.done) / pace)} left")
        for name, number in self._numbers.items():
            parts.append(f"{name.replace('_', ' ')} {amount(float(number))}")
        label = f"{self.label}: " if self.label else ""
        return label + ", ".join(parts)

    def __exit__(self, *_: object) -> None:
        """Print a last line, unless nothing was printed and the work was short."""
        now = time.monotonic()
        if self._printed or now - self._began >= FIRST:
            say(f"{self.line(now)}, after {formats.duration(now - self._began)}")


def amount(value: float) -> str:
    """Write a number with three significant digits, 0.00123 or 45.2; from 100 an integer, 1,234."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:#.3g}".rstrip(".")
