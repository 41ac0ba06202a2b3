"""Draw the report's figures of points: quality against cost, and average ranks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from markupsafe import Markup

from cdmae.formats import plural
from cdmae.report.charts import (
    SMALL,
    WIDTH,
    Figure,
    linear,
    nice,
    text_width,
    tick_label,
    ticks,
)
from cdmae.report.templates import fill

HEIGHT = 210.0
TOP = 24.0
RADIUS = 5.0
LINE = 13.0  # the height of a label
CELLS = 26  # cells of a scatter of ranks, along each axis
NAMES = 150.0  # the maximum width of names next to average ranks


@dataclass(frozen=True)
class Point:
    """A named point; strong points are drawn with a ring and are labelled first."""

    name: str
    x: float
    y: float
    note: str
    colour: int = 0
    strong: bool = False


Box = tuple[float, float, float, float]  # left, top, right, bottom


def scatter(
    name: str, title: str, points: Sequence[Point], *, x_axis: str, y_axis: str
) -> Figure | None:
    """Draw points above a logarithmic scale; None for fewer than two.

    A line joins the points that no cheaper point exceeds. A label that would cover another label or
    a point is left out; its point keeps its name under the pointer. The scale has no 0: strong
    points at 0 are drawn as horizontal lines.
    """
    known = [point for point in points if point.x >= 0 and not math.isnan(point.y)]
    shown = [point for point in known if point.x]
    free = [point for point in known if not point.x and point.strong]
    if len(shown) < 2:
        return None
    heights = [point.y for point in [*shown, *free]]
    low, high = nice(min(0.0, *heights), max(heights))
    y_ticks = [(value, tick_label(value)) for value in ticks(low, high)]
    left = 10 + max(text_width(label, SMALL) for _, label in y_ticks)
    exponents = [math.log10(point.x) for point in shown]
    margin = max(0.08 * (max(exponents) - min(exponents)), 0.08)
    start = min(exponents) - margin
    end = max(exponents) + margin
    bottom = TOP + HEIGHT
    x = linear(start, end, left, WIDTH - 10)
    y = linear(low, high, bottom, TOP)
    placed = [
        (point, x(exponent), y(point.y)) for point, exponent in zip(shown, exponents, strict=True)
    ]
    x_ticks = decades(start, end) or [float(f"{shown[0].x:.2g}")]
    drawing = fill(
        "scatter.svg.j2",
        points=placed,
        labels=_labels(placed, left, [y(point.y) for point in free]),
        free=[(point, y(point.y)) for point in free],
        frontier=_frontier(placed),
        x_ticks=[(x(math.log10(value)), _brief(value)) for value in x_ticks],
        y_ticks=[(y(value), label) for value, label in y_ticks],
        left=left,
        right=WIDTH,
        top=TOP,
        bottom=bottom,
        radius=RADIUS,
        x_axis=x_axis,
        y_axis=y_axis,
    )
    description = f"{title}: " + "; ".join(point.note for point in [*shown, *free])
    return Figure(name, title, description, Markup(drawing), bottom + 36)


def decades(start: float, end: float) -> list[float]:
    """Return ticks between the powers 10^start and 10^end: 1, 2 and 5 times powers of ten.

    A long scale has ticks only at the powers of ten.
    """
    whole = range(math.floor(start), math.ceil(end) + 1)
    factors = (1, 2, 5) if end - start < 1.6 else (1, 3) if end - start < 2.6 else (1,)
    values = [factor * 10.0**power for power in whole for factor in factors]
    return [value for value in values if start <= math.log10(value) <= end]


def _brief(value: float) -> str:
    """Format the number at a tick: ``0.05``, ``20``, ``3k``."""
    return f"{value:g}" if value < 1000 else tick_label(value) if value >= 1e4 else f"{value:,.0f}"


def _frontier(placed: Sequence[tuple[Point, float, float]]) -> list[tuple[float, float]]:
    """Return the corners of the line that joins all points that no cheaper point exceeds."""
    corners: list[tuple[float, float]] = []
    for _, x, y in sorted(placed, key=lambda each: (each[1], each[2])):
        if not corners:
            corners.append((x, y))
        elif y < corners[-1][1] - 1e-9:
            corners += [(x, corners[-1][1]), (x, y)]
    return corners


def _labels(
    placed: Sequence[tuple[Point, float, float]], left: float, lines: Sequence[float]
) -> list[tuple[Point, float, float, str]]:
    """Choose positions for labels so that none overlap: (point, x, y, anchor).

    Labels without a free position are omitted. lines: the y of horizontal lines, with their names
    above their left ends.
    """
    dots = [(x - RADIUS, y - RADIUS, x + RADIUS, y + RADIUS) for _, x, y in placed]
    taken: list[Box] = [(left, y - LINE, left + 150, y + 2) for y in lines]
    labels = []
    for index in sorted(range(len(placed)), key=lambda at: (not placed[at][0].strong, at)):
        point, x, y = placed[index]
        width = text_width(point.name, SMALL)
        others = dots[:index] + dots[index + 1 :]
        for anchor, at, base in (
            ("start", x + 12, y + 4),
            ("end", x - 12, y + 4),
            ("middle", x, y - 10),
            ("middle", x, y + 19),
            ("start", x + 6, y - 7),
            ("end", x - 6, y - 7),
            ("start", x + 6, y + 16),
            ("end", x - 6, y + 16),
        ):
            begin = at - {"start": 0.0, "end": width, "middle": width / 2}[anchor]
            box = (begin, base - LINE + 3, begin + width, base + 2)
            inside = left < box[0] and box[2] < WIDTH and box[1] > 0 and box[3] < TOP + HEIGHT
            if inside and not any(_overlap(box, other) for other in [*taken, *others]):
                taken.append(box)
                labels.append((point, at, base, anchor))
                break
    return labels


def _overlap(a: Box, b: Box) -> bool:
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]


def rank_scatter(first: str, second: str, ranks: np.ndarray, depth: int) -> Figure:
    """Draw the ranks of queries in two systems, int [2, Q], on logarithmic scales.

    Points close to each other are combined into a larger one. Rank 0 means that the passage was not
    found; it is drawn beyond `depth`.
    """
    beyond = 4 * max(depth, 1)
    filled = np.where(ranks > 0, ranks, beyond)
    left = 44.0
    top = 20.0
    bottom = top + WIDTH - left - 12
    high = math.log10(beyond)
    x = linear(0, high, left + 8, WIDTH - 12)
    y = linear(0, high, bottom - 8, top + 4)
    step = high / CELLS
    cells = np.round(np.log10(filled) / step).astype(int)
    places, counts = np.unique(cells, axis=1, return_counts=True)
    bubbles = []
    for a, b, count in zip(*places.tolist(), counts.tolist(), strict=True):
        near = (cells == [[a], [b]]).all(axis=0)
        shown = [_rank(group.tolist()) for group in ranks[:, near]]
        note = f"{plural(count, 'query')}: {first} {shown[0]}, {second} {shown[1]}"
        radius = 1.8 + 0.9 * math.sqrt(count)
        bubbles.append((x(a * step), y(b * step), min(radius, 11), note))
    marks = [value for value in decades(0, math.log10(max(depth, 2))) if value <= depth]
    ticks_of = [(x(math.log10(value)), y(math.log10(value)), _brief(value)) for value in marks]
    drawing = fill(
        "rank-scatter.svg.j2",
        bubbles=bubbles,
        ticks=[*ticks_of, (x(high), y(high), "none")],
        left=left,
        right=WIDTH,
        top=top,
        bottom=bottom,
        first=first,
        second=second,
    )
    better = int((filled[1] < filled[0]).sum())
    worse = int((filled[1] > filled[0]).sum())
    title = f"Ranks in {first} and in {second}"
    description = f"{title}: {second} is better on {better} queries, {first} on {worse}"
    return Figure("rank-scatter", title, description, Markup(drawing), bottom + 36)


def _rank(ranks: list[int]) -> str:
    """Format the ranks of a group: ``3``, ``3 to 5``, ``not found``."""
    low = min(ranks)
    high = max(ranks)
    if not low:
        return "not found"
    return f"rank {low}" if low == high else f"ranks {low} to {high}"
