"""Progress of a long command: on a terminal one redrawn line, otherwise a line now and then, on standard error.

``pretrain cdmae: 1,200 of 4,000 steps (30 %), 45.2 steps/s, 1:02 left, loss 5.12``
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any, TextIO

FIRST, EVERY, REDRAW = 2.0, 10.0, 0.2  # seconds to the first line, between lines, between redraws on a terminal


def say(text: str) -> None:
    """Print one line to standard error; of several processes of one job only the first does."""
    if _first_process():
        print(text, file=sys.stderr, flush=True)


class Progress:
    """Counts towards `total` and reports pace and remaining time.

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
        self._terminal = self._stream.isatty()
        self._numbers: dict[str, Any] = {}
        self._began = clock()
        self._next = self._began + (REDRAW if self._terminal else FIRST)
        self._printed = False

    def __enter__(self) -> Progress:
        """Start the clock."""
        self._began = self._clock()
        return self

    def advance(self, count: int = 1, **numbers: Any) -> None:
        """Count `count` more; `numbers` (floats or 0-d tensors) are read only when a line is printed."""
        self.done += count
        self._numbers = numbers or self._numbers
        now = self._clock()
        if now >= self._next:
            self._next = now + (REDRAW if self._terminal else EVERY)
            self._print(self.line(now), last=False)

    def line(self, now: float | None = None) -> str:
        """The line as it stands."""
        seconds = max((self._clock() if now is None else now) - self._began, 1e-9)
        pace = (self.done - self._start) / seconds
        of = f" of {self.total:,}" if self.total else ""
        text = f"{self.done:,}{of} {self.unit}"
        if self.total:
            text += f" ({100 * self.done // self.total} %)"
        text += f", {amount(pace)} {self.unit}/s"
        if pace and self.total > self.done:
            text += f", {duration((self.total - self.done) / pace)} left"
        text += "".join(f", {name.replace('_', ' ')} {amount(float(value))}" for name, value in self._numbers.items())
        return f"{self.label}: {text}" if self.label else text

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Print a last line, unless nothing was printed and the work was short."""
        now = self._clock()
        if self._printed or now - self._began >= FIRST:
            took = f", after {duration(now - self._began)}"
            self._print(self.line(now) + took, last=True)

    def _print(self, text: str, *, last: bool) -> None:
        if not _first_process():
            return
        self._printed = True
        before, after = ("\r\x1b[K", "\n" if last else "") if self._terminal else ("", "\n")
        self._stream.write(before + text + after)
        self._stream.flush()


def duration(seconds: float) -> str:
    """``1:02`` (minutes and seconds), or ``3:01:02`` with hours."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def amount(value: float) -> str:
    """A number with three digits that matter: 0.00123, 5.12, 45.2, 1,234."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:#.3g}".rstrip(".")


def _first_process() -> bool:
    return os.environ.get("RANK", "0") == "0"  # set by torchrun
