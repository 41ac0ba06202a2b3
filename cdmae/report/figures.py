"""Figures as SVG, written by hand: panels 340 units wide, so that their text is of one size on a phone and on a desk.

A `Canvas` collects marks; a `Figure` is what a section shows: inline in the page, or a file that stands alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from cdmae.formats import minus
from cdmae.report import palette
from cdmae.report.markup import Markup, escape, tag

WIDTH = 340.0
LETTER = 0.56  # the mean advance of a letter of a sans serif face, in units of its size, on the wide side


@dataclass(frozen=True)
class Figure:
    """A drawing of `WIDTH` x `height` with a title above and a description for those who do not see it."""

    name: str
    title: str
    description: str
    drawing: Markup
    height: float

    def html(self) -> Markup:
        """The figure for the page."""
        drawing = tag(
            "svg", self.drawing, viewBox=f"0 0 {WIDTH:g} {self.height:g}", role="img", aria_label=self.description
        )
        return tag("figure", tag("figcaption", self.title), drawing, class_="panel", id=f"figure-{self.name}")

    def standalone(self) -> str:
        """The figure as a file: its own colours, light and dark, its title inside."""
        lines = wrapped(self.title, 13, WIDTH)
        top = 18.0 * len(lines) + 6
        title = [tag("text", line, x="0", y=f"{18 * i + 14}", class_="title") for i, line in enumerate(lines)]
        style = palette.literal(palette.style_sheet("figure"))
        height = self.height + top
        return '<?xml version="1.0" encoding="UTF-8"?>\n' + tag(
            "svg",
            tag("title", self.title),
            tag("desc", self.description),
            tag("style", Markup(style)),
            tag("rect", x="-12", y="-12", width=f"{WIDTH + 24:g}", height=f"{height + 24:g}", class_="background"),
            title,
            tag("g", self.drawing, transform=f"translate(0 {top:g})"),
            xmlns="http://www.w3.org/2000/svg",
            viewBox=f"-12 -12 {WIDTH + 24:g} {height + 24:g}",
            width=f"{1.5 * WIDTH:g}",
        )


@dataclass
class Canvas:
    """Marks in the order in which they are painted. Coordinates are units of the view box, y downwards."""

    marks: list[Markup] = field(default_factory=list)

    def text(self, x: float, y: float, text: str, class_: str = "", *, anchor: str = "start", size: float = 0) -> None:
        """A line of text whose baseline is at y."""
        style = f"font-size:{size:g}px" if size else None
        self._add("text", escape(text), x=_n(x), y=_n(y), class_=class_ or None, text_anchor=anchor, style=style)

    def line(self, x1: float, y1: float, x2: float, y2: float, class_: str) -> None:
        """A straight line."""
        self._add("line", x1=_n(x1), y1=_n(y1), x2=_n(x2), y2=_n(y2), class_=class_)

    def rect(self, x: float, y: float, width: float, height: float, class_: str, *, note: str = "") -> None:
        """A filled rectangle; `note` is shown under the pointer."""
        self._add("rect", _note(note), x=_n(x), y=_n(y), width=_n(max(width, 0)), height=_n(height), class_=class_)

    def dot(self, x: float, y: float, radius: float, class_: str, *, note: str = "") -> None:
        """A dot."""
        self._add("circle", _note(note), cx=_n(x), cy=_n(y), r=_n(radius), class_=class_)

    def path(self, points: Sequence[tuple[float, float]], class_: str, *, note: str = "") -> None:
        """A line through points; a point that is not finite interrupts it."""
        drawn, pen = [], "M"
        for x, y in points:
            if math.isfinite(x) and math.isfinite(y):
                drawn.append(f"{pen}{_n(x)} {_n(y)}")
            pen = "L" if drawn and math.isfinite(y) else "M"
        self._add("path", _note(note), d="".join(drawn), class_=class_)

    def figure(self, name: str, title: str, description: str, height: float) -> Figure:
        """What was drawn, as a figure."""
        return Figure(name, title, description, Markup("".join(self.marks)), height)

    def _add(self, name: str, *children: Any, **attributes: Any) -> None:
        self.marks.append(tag(name, *children, **attributes))


@dataclass(frozen=True)
class Scale:
    """Maps values from `low` .. `high` to positions from `start` .. `end`."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        """The position of `value`."""
        return self.start + (value - self.low) / ((self.high - self.low) or 1.0) * (self.end - self.start)


def stacked(name: str, title: str, figures: Sequence[Figure]) -> Figure:
    """Figures below each other as one, each with its title above it where they are several."""
    marks, at = [], 0.0
    for each in figures:
        if len(figures) > 1:
            lines = wrapped(each.title, 12, WIDTH)
            marks += [tag("text", line, x="0", y=_n(at + 15 * i + 12), class_="strong") for i, line in enumerate(lines)]
            at += 15.0 * len(lines) + 6
        marks.append(tag("g", each.drawing, transform=f"translate(0 {_n(at)})"))
        at += each.height + 16
    description = ". ".join(each.description for each in figures)
    return Figure(name, title, description, Markup("".join(marks)), at - 16)


def ticks(low: float, high: float, most: int = 5) -> list[float]:
    """Round values (1, 2, 2.5 or 5 times a power of ten apart) inside `low` .. `high`, at most about `most`."""
    if not high > low:
        return [low]
    rough = (high - low) / most
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * each for each in (1, 2, 2.5, 5, 10) if power * each >= rough * 0.999)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [round(each * step, 12) + 0.0 for each in range(first, last + 1)]


def nice(low: float, high: float, most: int = 5) -> tuple[float, float]:
    """`low` and `high` moved outwards to round values."""
    if not high > low:
        low, high = low - (abs(low) or 1) / 2, high + (abs(high) or 1) / 2
    found = ticks(low, high, most)
    step = found[1] - found[0] if len(found) > 1 else high - low
    return math.floor(low / step + 1e-9) * step, math.ceil(high / step - 1e-9) * step


def text_width(text: str, size: float) -> float:
    """About how wide a text is, in the units of its size."""
    return LETTER * size * len(text)


def wrapped(text: str, size: float, width: float) -> list[str]:
    """`text` in lines that fit into `width`, broken after spaces, hyphens, underscores and slashes, else anywhere."""
    most = max(int(width / (LETTER * size)), 4)
    lines, line = [], ""
    for piece in _pieces(text, most):
        if line and len((line + piece).rstrip()) > most:
            lines.append(line.rstrip())
            line = ""
        line += piece
    return [*lines, line.rstrip()] if line.strip() or not lines else lines


def _pieces(text: str, most: int) -> list[str]:
    pieces, piece = [], ""
    for letter in text:
        piece += letter
        if letter in " -_/" or len(piece) >= most:
            pieces.append(piece)
            piece = ""
    return [*pieces, piece]


def tick_label(value: float) -> str:
    """The number at a tick, as short as it goes: ``0.5``, ``4``, ``20k``."""
    if abs(value) >= 1e6:
        return f"{value / 1e6:g}M"
    if abs(value) >= 1e4:
        return f"{value / 1e3:g}k"
    return minus(f"{value:,g}")


def _note(note: str) -> Markup | None:
    return tag("title", note) if note else None


def _n(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")
