"""The two kinds of figure the report needs: rows (bars, intervals, pairs of dots) and lines.

In rows the label stands above its marks, so that names of any length fit and no axis crosses a text.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cdmae.report.figures import LETTER, WIDTH, Canvas, Figure, Scale, nice, text_width, tick_label, ticks, wrapped

SIZE = 12.0  # of labels
SMALL = 11.0  # of numbers at axes
DASHES = 3
LANE = 14.0  # height of the marks of a row
BESIDE = 110.0  # the widest label that may stand beside its marks


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


@dataclass(frozen=True)
class Series:
    """A named line."""

    name: str
    x: Sequence[float]
    y: Sequence[float]
    colour: int = 0


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
    """One row per entry below each other, a scale below.

    `beside` sets labels left of their marks instead of above, if all of them are short.
    """
    canvas = Canvas()
    at = _legend(canvas, legend, dots=True)
    found = [value for entry in entries for value in _values(entry)] + [0.0]
    low, high = nice(min(found) if low is None else low, max(found) if high is None else high)
    widest = max(text_width(entry.label, SIZE) for entry in entries)
    beside = beside and widest <= BESIDE
    left = widest + 12 if beside else 0.0
    right = WIDTH - (max(text_width(entry.shown, SIZE) for entry in entries) + 10 if beside else 0)
    scale = Scale(low, high, left, right)
    for entry in entries:
        at, lane = _labels(canvas, entry, at, beside)
        _marks(canvas, entry, lane, scale)
    for value in ticks(low, high, 5 if right - left > 200 else 4):
        canvas.line(scale(value), at, scale(value), at + 4, "axis")
        canvas.text(scale(value), at + 16, tick_label(value), "small", anchor="middle")
    canvas.line(left, at, right, at, "axis")
    if axis:
        half = text_width(axis, SMALL) / 2
        centre = max(min((left + right) / 2, WIDTH - half), half)
        canvas.text(centre, at + 32, axis, "small", anchor="middle")
    described = f"{title}: " + ", ".join(f"{entry.label} {entry.shown}" for entry in entries)
    return canvas.figure(name, title, described, at + (38 if axis else 20))


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
    """Lines over a common scale, their names above; x are whole numbers, `x_names` the names of 0, 1, 2... if any."""
    canvas = Canvas()
    named = [(each.name, each.colour) for each in series] if len(series) > 1 or reference else []
    top = _legend(canvas, named, dots=False, reference=reference[0] if reference else "") + 24
    height, values = 180.0, [y for each in series for y in each.y if y == y] + ([reference[1]] if reference else [])
    low, high = nice(min(values) if low is None else low, max(values) if high is None else high)
    y_ticks = ticks(low, high)
    left = 8 + max(text_width(tick_label(value), SMALL) for value in y_ticks)
    ends = [x for each in series for x in each.x]
    x_low, x_high = (-0.3, len(x_names) - 0.7) if x_names else (min(0.0, *ends), max(ends))
    x_scale, y_scale = Scale(x_low, x_high, left, WIDTH - 8), Scale(low, high, top + height, top)
    canvas.text(0, top - 12, y_axis, "small")
    for value in y_ticks:
        canvas.line(left, y_scale(value), WIDTH, y_scale(value), "grid")
        canvas.text(left - 5, y_scale(value) + 4, tick_label(value), "small", anchor="end")
    _x_axis(canvas, x_scale, top + height, x_names, x_axis)
    if reference:
        canvas.line(left, y_scale(reference[1]), WIDTH, y_scale(reference[1]), "reference")
    for number, each in enumerate(series):
        _line(canvas, each, dash(number, series), x_scale, y_scale, markers)
    ends_of_y = {each.name: [y for y in each.y if y == y] for each in series}
    described = f"{title}: " + "; ".join(f"{name} from {y[0]:.3g} to {y[-1]:.3g}" for name, y in ends_of_y.items() if y)
    return canvas.figure(name, title, described, top + height + (36 if x_axis else 20))


def _values(entry: Row) -> list[float]:
    bar = [] if entry.bar is None else [entry.bar]
    return [*bar, *(entry.interval or ()), -entry.band, entry.band, *(x for x, _ in entry.dots)]


def _labels(canvas: Canvas, entry: Row, at: float, beside: bool) -> tuple[float, float]:
    """Write the label and the number of a row that begins at `at`; return where the next begins, and its lane."""
    class_ = "strong" if entry.strong else ""
    canvas.text(WIDTH, at + 13, entry.shown, "value", anchor="end")
    if beside:
        canvas.text(0, at + 13, entry.label, class_)
        return at + 20, at + 2
    parts = wrapped(entry.label, SIZE, WIDTH - text_width(entry.shown, SIZE) - 10)
    for number, part in enumerate(parts):
        canvas.text(0, at + 13 + 15 * number, part, class_)
    lane = at + 3 + 15 * len(parts)
    return lane + LANE + 5, lane


def _marks(canvas: Canvas, entry: Row, lane: float, scale: Scale) -> None:
    """Paint the marks of a row whose lane begins at `lane`."""
    middle, note = lane + LANE / 2, f"{entry.label}: {entry.shown}"
    if entry.band:
        canvas.rect(scale(-entry.band), lane, scale(entry.band) - scale(-entry.band), LANE, "band")
    if scale.low <= 0 <= scale.high and not entry.dots:
        canvas.line(scale(0), lane, scale(0), lane + LANE, "zero")
    if entry.bar is not None:
        start, end = sorted((scale(max(scale.low, 0.0)), scale(entry.bar)))
        canvas.rect(start, lane + 2, end - start, LANE - 5, f"b{entry.colour}", note=note)
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
    """Names with their colours in lines that wrap, `reference` last; returns where what is below may begin."""
    x, y = 0.0, 0.0
    for number, (name, colour) in enumerate([*entries, *([(reference, -1)] if reference else [])]):
        size = min(SIZE, (WIDTH - 30) / (LETTER * max(len(name), 1)))
        wide = 26 + text_width(name, size)
        if x and x + wide > WIDTH:
            x, y = 0.0, y + 18
        if dots:
            canvas.dot(x + 9, y + 9, 4.5, f"b{colour}")
        else:
            class_ = "reference" if colour < 0 else f"s{colour} curve {dash(number, entries)}"
            canvas.line(x, y + 9, x + 20, y + 9, class_)
        canvas.text(x + 26 if not dots else x + 20, y + 13, name, size=size if size < SIZE else 0)
        x += wide + 14
    return y + 26 if entries else 0.0


def dash(number: int, entries: Sequence[object]) -> str:
    """The class of the dash of a line, so that lines differ by more than colour where there are several."""
    return f"d{number % DASHES}" if len(entries) > 1 else "d0"


def _line(canvas: Canvas, series: Series, dashed: str, x_scale: Scale, y_scale: Scale, markers: bool) -> None:
    points = [(x_scale(x), y_scale(y)) for x, y in zip(series.x, series.y, strict=True)]
    canvas.path(points, f"s{series.colour} curve {dashed}", note=series.name)
    if markers:
        for (x, y), value in zip(points, series.y, strict=True):
            if value == value:
                canvas.dot(x, y, 4, f"b{series.colour}", note=f"{series.name}: {value:.3g}")


def _x_axis(canvas: Canvas, scale: Scale, at: float, names: Sequence[str], title: str) -> None:
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
