"""Draw the two kinds of figure the report needs as SVG: rows (bars, intervals, pairs of dots) and lines.

Panels are 340 units wide, so that their text is of one size on a phone and on a desk. In rows the label stands above
its marks, so that names of any length fit and no axis crosses a text. The charts are drawn by hand because no library
wraps labels, describes itself to those who do not see it, and follows a page's dark mode.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from markupsafe import Markup

from cdmae.formats import minus
from cdmae.report import palette

WIDTH = 340.0
LETTER = 0.56  # the mean advance of a letter of a sans serif face, in units of its size, on the wide side
SIZE = 12.0  # of labels
SMALL = 11.0  # of numbers at axes
DASHES = 3
LANE = 14.0  # height of the marks of a row
BESIDE = 110.0  # the widest label that may stand beside its marks


@dataclass(frozen=True)
class Figure:
    """A drawing of `WIDTH` x `height` with a title above and a description for those who do not see it."""

    name: str
    title: str
    description: str
    drawing: Markup
    height: float

    def html(self) -> Markup:
        """Return the figure for the page."""
        figure = Markup(
            '<figure class="panel" id="figure-{}"><figcaption>{}</figcaption>'
            '<svg viewBox="0 0 {:g} {:g}" role="img" aria-label="{}">{}</svg></figure>'
        )
        return figure.format(self.name, self.title, WIDTH, self.height, self.description, self.drawing)

    def standalone(self) -> str:
        """Return the figure as a file: its own colours, light and dark, its title inside."""
        canvas, title = Canvas(), wrapped(self.title, 13, WIDTH)
        top = 18.0 * len(title) + 6
        width, height = WIDTH + 24, self.height + top + 24
        canvas.add("title", self.title)
        canvas.add("desc", self.description)
        canvas.add("style", Markup(palette.literal(palette.style_sheet("figure"))))
        canvas.add("rect", x=-12, y=-12, width=width, height=height, class_="background")
        for number, line in enumerate(title):
            canvas.add("text", line, x=0, y=18 * number + 14, class_="title")
        canvas.add("g", self.drawing, transform=f"translate(0 {top:g})")
        file = Markup(
            '<?xml version="1.0" encoding="UTF-8"?>\n'
            '<svg xmlns="http://www.w3.org/2000/svg" viewBox="-12 -12 {:g} {:g}" width="{:g}">{}</svg>'
        )
        return str(file.format(width, height, 1.5 * WIDTH, canvas.drawing()))


@dataclass(frozen=True)
class Row:
    """A label, the number it stands for, and marks on a common scale: a bar, an interval with its middle, or dots.

    `band` shades plus and minus that much around zero.
    """

    label: str
    shown: str
    bar: float | None = None
    interval: tuple[float, float, float] | None = None
    band: float = 0.0
    dots: tuple[tuple[float, int], ...] = ()
    colour: int = 0
    strong: bool = False

    def values(self) -> list[float]:
        """Return all values that the scale must reach."""
        bar = [] if self.bar is None else [self.bar]
        return [*bar, *(self.interval or ()), -self.band, self.band, *(x for x, _ in self.dots)]


@dataclass(frozen=True)
class Series:
    """A named line."""

    name: str
    x: Sequence[float]
    y: Sequence[float]
    colour: int = 0


@dataclass
class Canvas:
    """Marks in the order in which they are painted. Coordinates are units of the view box, y downwards."""

    marks: list[Markup] = field(default_factory=list)

    def add(self, name: str, content: str = "", *, note: str = "", **attributes: str | float) -> None:
        """Add an element; `note` is shown under the pointer.

        ``class_`` stands for class, an underscore for a hyphen; an empty attribute is left out, a number rounded.
        """
        texts = {key: value if isinstance(value, str) else _n(value) for key, value in attributes.items()}
        parts = [(key.rstrip("_").replace("_", "-"), text) for key, text in texts.items() if text]
        written = Markup("").join(Markup(' {}="{}"').format(*part) for part in parts)
        title = Markup("<title>{}</title>").format(note) if note else ""
        self.marks.append(Markup("<{0}{1}>{2}{3}</{0}>").format(name, written, content, title))

    def text(self, x: float, y: float, text: str, class_: str = "", *, anchor: str = "start", size: float = 0) -> None:
        """Add a line of text whose baseline is at y."""
        style = f"font-size:{size:g}px" if size else ""
        self.add("text", text, x=x, y=y, class_=class_, text_anchor=anchor, style=style)

    def line(self, x1: float, y1: float, x2: float, y2: float, class_: str) -> None:
        """Add a straight line."""
        self.add("line", x1=x1, y1=y1, x2=x2, y2=y2, class_=class_)

    def dot(self, x: float, y: float, radius: float, class_: str, *, note: str = "") -> None:
        """Add a dot."""
        self.add("circle", note=note, cx=x, cy=y, r=radius, class_=class_)

    def path(self, points: Sequence[tuple[float, float]], class_: str, *, note: str = "") -> None:
        """Add a line through points; a point that is not finite interrupts it."""
        drawn, pen = [], "M"
        for x, y in points:
            if math.isfinite(x) and math.isfinite(y):
                drawn.append(f"{pen}{_n(x)} {_n(y)}")
            pen = "L" if drawn and math.isfinite(y) else "M"
        self.add("path", note=note, d="".join(drawn), class_=class_)

    def drawing(self) -> Markup:
        """Return all marks."""
        return Markup("").join(self.marks)


@dataclass(frozen=True)
class _Scale:
    """Maps values from `low` .. `high` to positions from `start` .. `end`."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        return self.start + (value - self.low) / ((self.high - self.low) or 1.0) * (self.end - self.start)


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
) -> Figure:
    """Draw one row per entry below each other, a scale below.

    `beside` sets labels left of their marks instead of above, if all of them are short.
    """
    canvas = Canvas()
    at = _legend(canvas, legend, dots=True)
    values = [value for entry in entries for value in entry.values()] + [0.0]
    low, high = nice(min(values) if low is None else low, max(values) if high is None else high)
    widest = max(text_width(entry.label, SIZE) for entry in entries)
    beside = beside and widest <= BESIDE
    left = widest + 12 if beside else 0.0
    right = WIDTH - (max(text_width(entry.shown, SIZE) for entry in entries) + 10 if beside else 0)
    scale = _Scale(low, high, left, right)
    for entry in entries:
        class_ = "strong" if entry.strong else ""
        canvas.text(WIDTH, at + 13, entry.shown, "value", anchor="end")
        room = WIDTH - text_width(entry.shown, SIZE) - 10
        label = [entry.label] if beside else wrapped(entry.label, SIZE, room)
        for number, part in enumerate(label):
            canvas.text(0, at + 13 + 15 * number, part, class_)
        lane = at + 2 if beside else at + 3 + 15 * len(label)
        at = at + 20 if beside else lane + LANE + 5
        _marks(canvas, entry, lane, scale)
    for value in ticks(low, high, 5 if right - left > 200 else 4):
        canvas.line(scale(value), at, scale(value), at + 4, "axis")
        canvas.text(scale(value), at + 16, tick_label(value), "small", anchor="middle")
    canvas.line(left, at, right, at, "axis")
    if axis:
        half = text_width(axis, SMALL) / 2
        centre = max(min((left + right) / 2, WIDTH - half), half)
        canvas.text(centre, at + 32, axis, "small", anchor="middle")
    description = f"{title}: " + ", ".join(f"{entry.label} {entry.shown}" for entry in entries)
    return Figure(name, title, description, canvas.drawing(), at + (38 if axis else 20))


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
) -> Figure:
    """Draw lines over a common scale, their names above.

    x are whole numbers, `x_names` the names of 0, 1, 2... if any. A y that is not finite interrupts its line.
    """
    canvas = Canvas()
    legend = [(one.name, one.colour) for one in series] if len(series) > 1 or reference else []
    top = _legend(canvas, legend, dots=False, reference=reference[0] if reference else "") + 24
    bottom, numbers = top + 180.0, {one.name: [y for y in one.y if y == y] for one in series}
    values = [y for one in series for y in one.y if y == y] + ([reference[1]] if reference else [])
    low, high = nice(min(values) if low is None else low, max(values) if high is None else high)
    y_ticks = ticks(low, high)
    left = 8 + max(text_width(tick_label(value), SMALL) for value in y_ticks)
    ends = [x for one in series for x in one.x]
    x_low, x_high = (-0.3, len(x_names) - 0.7) if x_names else (min(0.0, *ends), max(ends))
    x_scale, y_scale = _Scale(x_low, x_high, left, WIDTH - 8), _Scale(low, high, bottom, top)
    canvas.text(0, top - 12, y_axis, "small")
    for value in y_ticks:
        canvas.line(left, y_scale(value), WIDTH, y_scale(value), "grid")
        canvas.text(left - 5, y_scale(value) + 4, tick_label(value), "small", anchor="end")
    _x_axis(canvas, x_scale, bottom, x_names, x_axis)
    if reference:
        canvas.line(left, y_scale(reference[1]), WIDTH, y_scale(reference[1]), "reference")
    for number, one in enumerate(series):
        points = [(x_scale(x), y_scale(y)) for x, y in zip(one.x, one.y, strict=True)]
        canvas.path(points, f"s{one.colour} curve {_dash(number, series)}", note=one.name)
        for (x, y), value in zip(points, one.y, strict=True) if markers else ():
            if value == value:
                canvas.dot(x, y, 4, f"b{one.colour}", note=f"{one.name}: {value:.3g}")
    ranges = (f"{label} from {y[0]:.3g} to {y[-1]:.3g}" for label, y in numbers.items() if y)
    description = f"{title}: " + "; ".join(ranges)
    return Figure(name, title, description, canvas.drawing(), bottom + (36 if x_axis else 20))


def stacked(name: str, title: str, figures: Sequence[Figure]) -> Figure:
    """Set figures below each other as one, each with its title above it where they are several."""
    canvas, at = Canvas(), 0.0
    for figure in figures:
        if len(figures) > 1:
            heading = wrapped(figure.title, 12, WIDTH)
            for number, line in enumerate(heading):
                canvas.add("text", line, x=0, y=at + 15 * number + 12, class_="strong")
            at += 15.0 * len(heading) + 6
        canvas.add("g", figure.drawing, transform=f"translate(0 {_n(at)})")
        at += figure.height + 16
    return Figure(name, title, ". ".join(figure.description for figure in figures), canvas.drawing(), at - 16)


def _marks(canvas: Canvas, entry: Row, lane: float, scale: _Scale) -> None:
    """Paint the marks of a row whose lane begins at `lane`."""
    middle, note = lane + LANE / 2, f"{entry.label}: {entry.shown}"
    if entry.band:
        width = scale(entry.band) - scale(-entry.band)
        canvas.add("rect", x=scale(-entry.band), y=lane, width=width, height=LANE, class_="band")
    if scale.low <= 0 <= scale.high and not entry.dots:
        canvas.line(scale(0), lane, scale(0), lane + LANE, "zero")
    if entry.bar is not None:
        start, end = sorted((scale(max(scale.low, 0.0)), scale(entry.bar)))
        size = {"width": end - start, "height": LANE - 5}
        canvas.add("rect", note=note, x=start, y=lane + 2, **size, class_=f"b{entry.colour}")
    if entry.interval:
        lower, centre, upper = (scale(value) for value in entry.interval)
        canvas.line(lower, middle, upper, middle, f"s{entry.colour} interval")
        for x in (lower, upper):
            canvas.line(x, middle - 3.5, x, middle + 3.5, f"s{entry.colour} interval")
        canvas.dot(centre, middle, 4, f"b{entry.colour}", note=note)
    if entry.dots:
        xs = [scale(x) for x, _ in entry.dots]
        canvas.line(min(xs), middle, max(xs), middle, "join")
        for x, (_, colour) in zip(xs, entry.dots, strict=True):
            canvas.dot(x, middle, 4.5, f"b{colour}", note=note)


def _legend(canvas: Canvas, entries: Sequence[tuple[str, int]], *, dots: bool, reference: str = "") -> float:
    """Write names with their colours in lines that wrap, `reference` last; return where what is below may begin."""
    x, y = 0.0, 0.0
    for number, (name, colour) in enumerate([*entries, *([(reference, -1)] if reference else [])]):
        size = min(SIZE, (WIDTH - 30) / (LETTER * max(len(name), 1)))
        wide = 26 + text_width(name, size)
        if x and x + wide > WIDTH:
            x, y = 0.0, y + 18
        if dots:
            canvas.dot(x + 9, y + 9, 4.5, f"b{colour}")
        else:
            class_ = "reference" if colour < 0 else f"s{colour} curve {_dash(number, entries)}"
            canvas.line(x, y + 9, x + 20, y + 9, class_)
        canvas.text(x + 26 if not dots else x + 20, y + 13, name, size=size if size < SIZE else 0)
        x += wide + 14
    return y + 26 if entries else 0.0


def _dash(number: int, entries: Sequence[object]) -> str:
    """Return the class of the dash of a line: several lines differ by more than colour."""
    return f"d{number % DASHES}" if len(entries) > 1 else "d0"


def _x_axis(canvas: Canvas, scale: _Scale, at: float, names: Sequence[str], title: str) -> None:
    canvas.line(scale.start, at, WIDTH, at, "axis")
    whole = [value for value in ticks(scale.low, scale.high) if value == round(value)]
    places = list(enumerate(names)) if names else [(value, tick_label(value)) for value in whole]
    room = (scale.end - scale.start) / max(len(places), 1) - 4
    for value, label in places:
        canvas.line(scale(value), at, scale(value), at + 4, "axis")
        size = min(SMALL, room / (LETTER * max(len(label), 1))) if names else SMALL
        canvas.text(scale(value), at + 16, label, "small", anchor="middle", size=size if size < SMALL else 0)
    if title:
        canvas.text((scale.start + scale.end) / 2, at + 31, title, "small", anchor="middle")


def ticks(low: float, high: float, most: int = 5) -> list[float]:
    """Return round values (1, 2, 2.5 or 5 times a power of ten apart) inside `low` .. `high`, about `most` at most."""
    if not high > low:
        return [low]
    rough = (high - low) / most
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * factor for factor in (1, 2, 2.5, 5, 10) if power * factor >= rough * 0.999)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [round(number * step, 12) + 0.0 for number in range(first, last + 1)]


def nice(low: float, high: float, most: int = 5) -> tuple[float, float]:
    """Move `low` and `high` outwards to round values."""
    if not high > low:
        low, high = low - (abs(low) or 1) / 2, high + (abs(high) or 1) / 2
    values = ticks(low, high, most)
    step = values[1] - values[0] if len(values) > 1 else high - low
    return math.floor(low / step + 1e-9) * step, math.ceil(high / step - 1e-9) * step


def text_width(text: str, size: float) -> float:
    """Estimate how wide a text is, in the units of its size."""
    return LETTER * size * len(text)


def wrapped(text: str, size: float, width: float) -> list[str]:
    """Break `text` into lines that fit into `width`: after spaces, hyphens, underscores and slashes, else anywhere."""
    most = max(int(width / (LETTER * size)), 4)
    lines, line = [], ""
    for piece in re.findall(rf"[^ \-_/]{{0,{most - 1}}}[ \-_/]|.{{1,{most}}}", text):
        if line and len((line + piece).rstrip()) > most:
            lines.append(line.rstrip())
            line = ""
        line += piece
    return [*lines, line.rstrip()] if line.strip() or not lines else lines


def tick_label(value: float) -> str:
    """Write the number at a tick as short as it goes: ``0.5``, ``4``, ``20k``."""
    if abs(value) >= 1e6:
        return f"{value / 1e6:g}M"
    if abs(value) >= 1e4:
        return f"{value / 1e3:g}k"
    return minus(f"{value:,g}")


def _n(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")
