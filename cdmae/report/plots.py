"""Draw the ranks of queries in two systems."""

from __future__ import annotations

import math

import numpy as np
from markupsafe import Markup

from cdmae.formats import plural
from cdmae.report.charts import WIDTH, Figure, linear, tick_label
from cdmae.report.templates import fill

CELLS = 26  # cells of a scatter of ranks, along each axis


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
