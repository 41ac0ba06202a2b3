"""Draw the report's two kinds of figure as SVG: rows (bars, intervals, pairs of dots) and lines.

Positions are computed here, and templates/*.svg.j2 write the marks. Panels are 340 units wide, so
their text has the same size on a phone and on a desk. In charts of rows, labels are above their
marks, so names of any length fit and no axis crosses text. No plotting library wraps labels,
describes figures to screen readers and follows a page's dark mode. Therefore this module draws the
charts itself.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from cdmae.formats import minus, printable
from cdmae.report.templates import fill

WIDTH = 340.0
# a generous mean width of a letter in a sans serif font, in units of its size
LETTER = 0.56
SIZE = 12.0  # font size of labels
SMALL = 11.0  # font size of numbers at axes
DASHES = 3
LANE = 14.0  # height of the marks of a row
BESIDE = 110.0  # the maximum width of a label to the left of its marks


@dataclass(frozen=True)
class Figure:
    """A drawing of size `WIDTH` x `height`, its title, and a description for screen readers."""

    name: str
    title: str
    description: str
    drawing: Markup
    height: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "title", printable(self.title))
        object.__setattr__(self, "description", printable(self.description))
        object.__setattr__(self, "drawing", Markup(printable(self.drawing)))

    def standalone(self) -> str:
        """Return the figure as a file of its own, with its title and its light and dark colours."""
        title = wrapped(self.title, 13, WIDTH)
        top = 18.0 * len(title) + 6
        page = {
            "figure": self,
            "title": title,
            "top": top,
            "width": WIDTH,
            "height": self.height + top + 24,
        }
        return str(fill("figure.svg.j2", **page))


@dataclass(frozen=True)
class Row:
    """A label, its number, and marks on a common scale: a bar, an interval, or dots.

    The middle of an interval is also marked, with a circle if it is `hollow`.
    """

    label: str
    shown: str
    bar: float | None = None
    interval: tuple[float, float, float] | None = None
    hollow: bool = False
    dots: tuple[tuple[float, int], ...] = ()
    colour: int = 0
    strong: bool = False


@dataclass(frozen=True)
class Series:
    """A named line: the points of one series."""

    name: str
    x: Sequence[float]
    y: Sequence[float]
    colour: int = 0


def linear(low: float, high: float, start: float, end: float) -> Callable[[float], float]:
    """Map values from `low` .. `high` to positions from `start` .. `end`."""
    return lambda value: start + (value - low) / ((high - low) or 1.0) * (end - start)


def rows(
    name: str,
    title: str,
    entries: Sequence[Row],
    *,
    axis: str = "",
    low: float | None = None,
    high: float | None = None,
    legend: Sequence[tuple[str, int]] = (),
    beside: bool = False,
) -> Figure | None:
    """Draw one row per entry, from top to bottom, above a scale; None without entries.

    `beside` sets labels left of their marks instead of above, if all of them are short.
    """
    if not entries:
        return None
    values = [0.0]  # the scale includes zero
    for row in entries:
        values.append(row.bar or 0.0)
        values += row.interval or ()
        values += [x for x, _ in row.dots]
    low, high = nice(min(values) if low is None else low, max(values) if high is None else high)
    widest = max(text_width(entry.label, SIZE) for entry in entries)
    beside = beside and widest <= BESIDE
    left = 0.0
    right = WIDTH
    if beside:
        left = widest + 12
        right -= max(text_width(entry.shown, SIZE) for entry in entries) + 10
    scale = linear(low, high, left, right)
    names, y = _legend(legend)
    placed = []  # for every row: the lines of its label, and the y of the row and of its marks
    for entry in entries:
        room = WIDTH - text_width(entry.shown, SIZE) - 10
        label = [entry.label] if beside else wrapped(entry.label, SIZE, room)
        lane = y + 2 if beside else y + 3 + 15 * len(label)
        placed.append((entry, label, y, lane))
        y = y + 20 if beside else lane + LANE + 5
    half = text_width(axis, SMALL) / 2
    tick_values = ticks(low, high, 5 if right - left > 200 else 4)
    drawing = fill(
        "rows.svg.j2",
        legend=names,
        rows=placed,
        scale=scale,
        low=low,
        high=high,
        at=y,
        left=left,
        right=right,
        axis=axis,
        width=WIDTH,
        height=LANE,
        centre=max(min((left + right) / 2, WIDTH - half), half),
        ticks=[(scale(value), tick_label(value), 0) for value in tick_values],
    )
    description = f"{title}: " + ", ".join(f"{entry.label} {entry.shown}" for entry in entries)
    return Figure(name, title, description, Markup(drawing), y + (38 if axis else 20))


def lines(
    name: str,
    title: str,
    series: Sequence[Series],
    *,
    x_axis: str,
    y_axis: str,
    x_names: Sequence[str] = (),
    low: float | None = None,
    high: float | None = None,
    reference: tuple[str, float] | None = None,
    markers: bool = False,
) -> Figure | None:
    """Draw lines over a common scale, with their names above; None without lines.

    The x of points are whole numbers; `x_names`, if given, are the names of 0, 1, 2 and so on. A y
    that is not finite interrupts its line.
    """
    if not series:
        return None
    # lines also differ in their dashes, not only in colour
    classes = [f"s{one.colour} curve d{number % DASHES}" for number, one in enumerate(series)]
    named = []
    if len(series) > 1 or reference:
        named = [(one.name, one.colour) for one in series]
    if reference:
        named.append((reference[0], -1))
    legend, legend_end = _legend(named, classes)
    top = legend_end + 24
    bottom = legend_end + 204
    numbers = {one.name: [y for y in one.y if not math.isnan(y)] for one in series}
    values = [y for some in numbers.values() for y in some]
    if reference:
        values.append(reference[1])
    low, high = nice(min(values) if low is None else low, max(values) if high is None else high)
    y_ticks = [(value, tick_label(value)) for value in ticks(low, high)]
    left = 8 + max(text_width(label, SMALL) for _, label in y_ticks)
    if x_names:
        x_low = -0.3
        x_high = len(x_names) - 0.7
        positions = list(enumerate(x_names))
    else:
        ends = [x for one in series for x in one.x]
        x_low = min(0.0, *ends)
        x_high = max(ends)
        whole = [value for value in ticks(x_low, x_high) if value == round(value)]
        positions = [(value, tick_label(value)) for value in whole]
    x = linear(x_low, x_high, left, WIDTH - 8)
    y = linear(low, high, bottom, top)
    room = (WIDTH - 8 - left) / max(len(positions), 1) - 4
    x_ticks = [
        (x(value), label, _smaller(label, SMALL, room) if x_names else 0)
        for value, label in positions
    ]
    placed = []
    for one, class_ in zip(series, classes, strict=True):
        points = [(x(a), y(b), b) for a, b in zip(one.x, one.y, strict=True)]
        placed.append((one, class_, points))
    drawing = fill(
        "lines.svg.j2",
        legend=legend,
        top=top,
        bottom=bottom,
        left=left,
        width=WIDTH,
        x=x,
        y=y,
        x_axis=x_axis,
        y_axis=y_axis,
        y_ticks=y_ticks,
        reference=reference[1] if reference else None,
        markers=markers,
        x_ticks=x_ticks,
        series=placed,
    )
    ranges = [f"{name} from {ys[0]:.3g} to {ys[-1]:.3g}" for name, ys in numbers.items() if ys]
    description = f"{title}: " + "; ".join(ranges)
    return Figure(name, title, description, Markup(drawing), bottom + (36 if x_axis else 20))


def stacked(name: str, title: str, figures: Sequence[Figure]) -> Figure:
    """Combine figures vertically; each keeps its title if there are several."""
    panels = []
    y = 0.0
    for figure in figures:
        heading = wrapped(figure.title, 12, WIDTH) if len(figures) > 1 else []
        top = y + (15.0 * len(heading) + 6 if heading else 0)
        panels.append((figure, heading, y, top))
        y = top + figure.height + 16
    drawing = Markup(fill("stacked.svg.j2", panels=panels))
    description = ". ".join(figure.description for figure in figures)
    return Figure(name, title, description, drawing, y - 16)


def _legend(
    named: Sequence[tuple[str, int]], classes: Sequence[str] = ()
) -> tuple[list[dict[str, Any]], float]:
    """Lay out a legend in wrapped lines; return its entries and the y below it.

    classes: the CSS classes of the named lines; a name beyond them belongs to the reference.
    """
    x = 0.0
    y = 0.0
    names = []
    for number, (name, colour) in enumerate(named):
        smaller = _smaller(name, SIZE, WIDTH - 30)
        wide = 26 + text_width(name, smaller or SIZE)
        if x and x + wide > WIDTH:
            x = 0.0
            y += 18
        style = classes[number] if number < len(classes) else "reference"
        entry = {"name": name, "x": x, "y": y, "colour": colour, "class": style, "size": smaller}
        names.append(entry)
        x += wide + 14
    return names, y + 26 if names else 0.0


def ticks(low: float, high: float, most: int = 5) -> list[float]:
    """Return round values inside `low` .. `high`, at most about `most` of them.

    The distance between values is 1, 2, 2.5 or 5 times a power of ten.
    """
    if not high > low:
        return [low]
    rough = (high - low) / most
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * factor for factor in (1, 2, 2.5, 5, 10) if power * factor >= rough * 0.999)
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    return [round(number * step, 12) + 0.0 for number in range(first, last + 1)]


def nice(low: float, high: float, most: int = 5) -> tuple[float, float]:
    """Move `low` and `high` outwards to round values."""
    if not high > low:
        low -= (abs(low) or 1) / 2
        high += (abs(high) or 1) / 2
    values = ticks(low, high, most)
    step = values[1] - values[0] if len(values) > 1 else high - low
    return math.floor(low / step + 1e-9) * step, math.ceil(high / step - 1e-9) * step


def text_width(text: str, size: float) -> float:
    """Estimate the width of a text, in the unit of `size`."""
    return LETTER * size * len(text)


def _smaller(text: str, size: float, room: float) -> float:
    """Return the font size at which a text fits if that is below `size`, otherwise 0."""
    fitting = room / (LETTER * max(len(text), 1))
    return fitting if fitting < size else 0


def wrapped(text: str, size: float, width: float) -> list[str]:
    """Break `text` into lines that fit into `width`.

    Lines break after spaces, hyphens, underscores and slashes, and anywhere else if they must.
    """
    most = max(int(width / (LETTER * size)), 4)
    lines = []
    line = ""
    for piece in re.findall(rf"[^ \-_/]{{0,{most - 1}}}[ \-_/]|.{{1,{most}}}", text):
        if line and len((line + piece).rstrip()) > most:
            lines.append(line.rstrip())
            line = ""
        line += piece
    return [*lines, line.rstrip()] if line.strip() or not lines else lines


def tick_label(value: float) -> str:
    """Format the number at a tick briefly: ``0.5``, ``4``, ``20k``."""
    if abs(value) >= 1e6:
        return f"{value / 1e6:g}M"
    if abs(value) >= 1e4:
        return f"{value / 1e3:g}k"
    return minus(f"{value:,g}")
