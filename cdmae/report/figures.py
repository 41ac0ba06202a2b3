"""Draw the report's figures with matplotlib, as SVG in the colours and the font of the page."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import matplotlib as mpl
import pandas as pd
from markupsafe import Markup, escape

from cdmae.report.notation import printable

mpl.use("svg")
import matplotlib.pyplot as plt  # noqa: E402 (after the choice of a backend)
from matplotlib.axes import Axes  # noqa: E402
from matplotlib.figure import Figure  # noqa: E402

STYLES = Path(__file__).with_name("colours.css").read_text(encoding="utf-8")
# each colour of the style sheet is drawn as a placeholder, which `_html` replaces by its variable
HEX = {
    name: f"#0000{number:02x}"
    for number, name in enumerate(re.findall(r"--([\w-]+):light-dark", STYLES), 1)
}
SERIES = [name for name in HEX if re.fullmatch(r"s\d", name)]
GREY = "s2"
LINES = ("-", "--", ":")
MARKERS = "osD^vPX*"  # colours have one lightness, and repeat
MARKED = 10  # points of a long line with a marker
WIDE = 4  # inches, above which a figure takes the space of two
STYLE = {
    "svg.fonttype": "none", "svg.hashsalt": "cdmae", "font.size": 9,
    "axes.spines.top": False, "axes.spines.right": False, "axes.edgecolor": HEX["soft"],
    "axes.labelcolor": HEX["soft"], "text.color": HEX["ink"], "xtick.color": HEX["soft"],
    "ytick.color": HEX["soft"], "ytick.labelcolor": HEX["ink"], "grid.color": HEX["rule"],
    "axes.axisbelow": True, "figure.constrained_layout.use": True, "legend.frameon": False,
    "legend.fontsize": 8, "text.parse_math": False,
}  # fmt: skip


class Series(NamedTuple):
    """A line: its name, its values by position, its colour, and half widths of their intervals."""

    name: str
    values: pd.Series
    colour: str
    halves: pd.Series | None = None


@contextmanager
def _axes(width: float, height: float) -> Iterator[tuple[Figure, Axes]]:
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(figsize=(width, height))
        yield figure, axes
        plt.close(figure)


def _html(figure: Figure, title: str, description: str) -> Markup:
    """Return the figure with its title; description: for screen readers."""
    out = io.StringIO()
    figure.savefig(out, format="svg", transparent=True, metadata={"Date": None})
    body = out.getvalue().partition("<svg")[2]
    size = f"max-width:{6 * figure.get_figwidth():.1f}rem"  # the same size of letters everywhere
    label = f'role="img" style="{size}" aria-label="{escape(description)}"'
    body = re.sub(r'width="[\d.]+pt" height="[\d.]+pt"', lambda _: label, body, count=1)
    body = re.sub(r"<metadata>.*?</metadata>\s*", "", body, flags=re.DOTALL)
    body = re.sub(r'<g id="[\w.]+">', "<g>", body)
    body = re.sub(r"(font: [\d.]+px) [^;\"]*", r"\1 var(--sans)", body)
    for name, code in HEX.items():
        body = body.replace(code, f"var(--{name})")
    kind = ' class="wide"' if figure.get_figwidth() > WIDE else ""
    caption = f"<figcaption>{escape(title)}</figcaption>"
    return Markup(printable(f"<figure{kind}>{caption}<svg {body.strip()}</figure>"))


def forest(title: str, rows: pd.DataFrame, unit: str) -> Markup:
    """Draw differences with their intervals, filled where seeds are counted; nothing without rows.

    rows: the columns label, difference, low, high (in points), colour and seeds.
    """
    if rows.empty:
        return Markup("")
    longest = rows["label"].str.len().max()
    with _axes(3.2 + 0.066 * longest, 0.6 + 0.24 * len(rows)) as (figure, axes):
        for at, row in enumerate(rows.itertuples()):
            colour = HEX[row.colour]
            axes.plot([row.low, row.high], [at, at], color=colour, lw=1.5)
            face = colour if row.seeds > 1 else HEX["paper"]
            axes.plot(row.difference, at, "o", color=colour, mfc=face, ms=5)
        axes.axvline(0, color=HEX["ink"], lw=0.8)
        axes.set_yticks(range(len(rows)), rows["label"].map(printable))
        axes.tick_params(left=False)
        axes.spines["left"].set_visible(False)
        axes.grid(axis="x")
        axes.invert_yaxis()
        axes.set_xlabel(unit)
        told = rows["label"] + rows["difference"].map(" {:+.1f}".format)
        return _html(figure, title, "; ".join(told))


def lines(
    title: str, series: Sequence[Series], x: str, y: str, *, logarithmic: bool = False
) -> Markup:
    """Draw one line per series; logarithmic: the x axis, with a tick at each position."""
    series = [line for line in series if len(line.values)]
    if not series:
        return Markup("")
    rows = -(-len(series) // 2)  # of the legend
    with _axes(3.6, 2.1 + 0.16 * rows) as (figure, axes):
        for at, line in enumerate(series):
            dashes = LINES[at // len(MARKERS) % len(LINES)]
            every = max(1, len(line.values) // MARKED)
            style = {"marker": MARKERS[at % len(MARKERS)], "markevery": (at % every, every)}
            style |= {"ms": 4.5, "lw": 1.6, "ls": dashes}
            style |= {"color": HEX[line.colour], "label": printable(line.name), "elinewidth": 1}
            axes.errorbar(line.values.index, line.values, line.halves, **style)
        axes.grid(axis="y")
        axes.set_xlabel(x)
        axes.set_ylabel(y)
        if logarithmic:
            axes.set_xscale("log")
            ticks = series[0].values.index
            axes.set_xticks(ticks, [f"{tick:,.0f}" for tick in ticks])
            axes.minorticks_off()
        if len(series) > 1:
            figure.legend(loc="outside lower center", ncols=2)
        told = []
        for line in series:
            first = line.values.iloc[0]
            last = line.values.iloc[-1]
            told.append(f"{line.name} from {first:.3g} to {last:.3g}")
        return _html(figure, title, "; ".join(told))
