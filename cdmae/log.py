"""Progress of a long command: a line now and then on standard error.

``pretrain cdmae: 1,200 of 4,000 steps (30 %), 45.2 steps/s, 1:02 left, loss 5.12``
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from typing import Any, TextIO

FIRST, EVERY = 2.0, 10.0  # seconds to the first line, and between lines


def say(text: str) -> None:
    """Print one line to standard error; of several processes of one job only the first does."""
    if _first_process():
        print(text, file=sys.stderr, flush=True)


class Progress:
    """Count towards `total` and report pace and remaining time.

    `start` is where a resumed command goes on: it counts as done, not towards the pace. `total` 0 means unknown.
    """

    def __init__(
        self,
        total: int,
        *,
        unit: str = "steps",
        label: str = "",
        start: int = 0,
        stream: TextIO | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Take the `stream` (standard error) and the `clock` (seconds) as arguments for tests only."""
        self.total, self.unit, self.label, self.done = total, unit, label, start
        self._start, self._stream, self._clock = start, stream or sys.stderr, clock
        self._numbers: dict[str, Any] = {}
        self._began = clock()
        self._next = self._began + FIRST
        self._printed = False

    def __enter__(self) -> Progress:
        """Begin anew: what came before does not count towards the pace."""
        self._began = self._clock()
        return self

    def advance(self, count: int = 1, **numbers: Any) -> None:
        """Count `count` more; `numbers` (floats or 0-d tensors) are read only when a line is printed."""
        self.done += count
        self._numbers = numbers or self._numbers
        now = self._clock()
        if now >= self._next:
            self._next = now + EVERY
            self._print(self.line(now))

    def line(self, now: float | None = None) -> str:
        """Return the line as it stands."""
        pace = (self.done - self._start) / max((self._clock() if now is None else now) - self._began, 1e-9)
        text = f"{self.label}: " if self.label else ""
        if self.total:
            text += f"{self.done:,} of {self.total:,} {self.unit} ({100 * self.done // self.total} %)"
        else:
            text += f"{self.done:,} {self.unit}"
        text += f", {amount(pace)} {self.unit}/s"
        if pace and self.total > self.done:
            text += f", {duration((self.total - self.done) / pace)} left"
        return text + "".join(f", {name.replace('_', ' ')} {amount(float(x))}" for name, x in self._numbers.items())

    def __exit__(self, *_: object) -> None:
        """Print a last line, unless nothing was printed and the work was short."""
        now = self._clock()
        if self._printed or now - self._began >= FIRST:
            self._print(f"{self.line(now)}, after {duration(now - self._began)}")

    def _print(self, text: str) -> None:
        if _first_process():
            self._printed = True
            print(text, file=self._stream, flush=True)


def duration(seconds: float) -> str:
    """Write ``1:02`` (minutes and seconds), or ``3:01:02`` with hours."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def amount(value: float) -> str:
    """Write a number with three digits that matter: 0.00123, 5.12, 45.2, 1,234."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:#.3g}".rstrip(".")


def _first_process() -> bool:
    return os.environ.get("RANK", "0") == "0"  # set by torchrun
