"""Draw the report's figures with matplotlib, as SVG in the colours and the font of the page."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import matplotlib as mpl
from markupsafe import Markup, escape

from cdmae import formats

mpl.use("svg")
import matplotlib.pyplot as plt  # noqa: E402 (after the choice of a backend)
from matplotlib.axes import Axes  # noqa: E402
from matplotlib.figure import Figure  # noqa: E402

COLOURS = dict(
    re.findall(
        r"--([\w-]+):light-dark\((#\w+),",
        Path(__file__).with_name("colours.css").read_text(encoding="utf-8"),
    )
)
# every colour is drawn as a placeholder, which `svg` replaces by a variable or by a literal colour
HEX = {name: f"#0000{number:02x}" for number, name in enumerate(COLOURS, 1)}
SERIES = [name for name in COLOURS if re.fullmatch(r"s\d", name)]
GREY = "s2"
LINES = ("-", "--", ":")
WIDE = 4  # inches, above which a figure takes the space of two
AIR = 1.06  # the page's font may be wider than the one by which matplotlib measures
STYLE = {
    "svg.fonttype": "none", "svg.hashsalt": "cdmae", "font.size": 9,
    "axes.spines.top": False, "axes.spines.right": False, "axes.edgecolor": HEX["soft"],
    "axes.labelcolor": HEX["soft"], "text.color": HEX["ink"], "xtick.color": HEX["soft"],
    "ytick.color": HEX["soft"], "ytick.labelcolor": HEX["ink"], "grid.color": HEX["rule"],
    "axes.axisbelow": True, "figure.constrained_layout.use": True, "legend.frameon": False,
    "legend.fontsize": 8,
}  # fmt: skip


class Drawn(NamedTuple):
    """A figure: its title, a description for screen readers, and the SVG with placeholders."""

    title: str
    description: str
    body: str
    wide: bool

    @property
    def html(self) -> Markup:
        """Return the figure for the page, in the page's colours and font."""
        body = self.body
        for name, code in HEX.items():
            body = body.replace(code, f"var(--{name})")
        body = re.sub(r"(font: [\d.]+px) [^;\"]*", r"\1 var(--sans)", body)
        kind = ' class="wide"' if self.wide else ""
        title = f"<figcaption>{escape(self.title)}</figcaption>"
        return Markup(f"<figure{kind}>{title}{body}</figure>")

    @property
    def standalone(self) -> str:
        """Return the figure as the text of an SVG file."""
        body = self.body
        for name, code in HEX.items():
            body = body.replace(code, COLOURS[name])
        return body + "\n"


class Series(NamedTuple):
    """A line: its name, its points, and its colour."""

    name: str
    x: Sequence[float]
    y: Sequence[float]
    colour: str


class Interval(NamedTuple):
    """A row of a forest: its label, the interval and the mean, its colour, and if it is filled."""

    label: str
    low: float
    mean: float
    high: float
    colour: str
    filled: bool


@contextmanager
def _axes(width: float, height: float, panels: int = 1) -> Iterator[tuple[Figure, list[Axes]]]:
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(1, panels, squeeze=False, figsize=(width, height))
        yield figure, list(axes[0])
        plt.close(figure)


def _drawn(figure: Figure, title: str, description: str) -> Drawn:
    out = io.StringIO()
    figure.savefig(out, format="svg", transparent=True, metadata={"Date": None})
    text = out.getvalue()
    text = text[text.index("<svg") :]
    description = formats.printable(description)
    label = f'role="img" aria-label="{escape(description)}"'
    text = re.sub(r'width="[\d.]+pt" height="[\d.]+pt"', label, text, count=1)
    text = re.sub(r"<metadata>.*?</metadata>\s*", "", text, flags=re.DOTALL)
    text = re.sub(r'<g id="[\w.]+">', "<g>", text)
    return Drawn(title, description, text.strip(), figure.get_figwidth() > WIDE)


def forest(title: str, rows: Sequence[Interval], unit: str) -> Drawn | None:
    """Draw differences with their intervals."""
    if not rows:
        return None
    longest = max(len(row.label) for row in rows)
    with _axes(3.2 + 0.062 * longest * AIR, 0.6 + 0.24 * len(rows)) as (figure, [axes]):
        for at, row in enumerate(rows):
            colour = HEX[row.colour]
            axes.plot([row.low, row.high], [at, at], color=colour, lw=1.5)
            face = colour if row.filled else HEX["paper"]
            axes.plot(row.mean, at, "o", color=colour, mfc=face, ms=5)
        axes.axvline(0, color=HEX["ink"], lw=0.8)
        axes.set_yticks(range(len(rows)), [_text(row.label) for row in rows])
        axes.tick_params(left=False)
        axes.spines["left"].set_visible(False)
        axes.grid(axis="x")
        axes.invert_yaxis()
        axes.set_xlabel(unit)
        told = (f"{row.label} {row.mean:+.1f} ({row.low:+.1f} to {row.high:+.1f})" for row in rows)
        return _drawn(figure, title, "; ".join(told))


def lines(
    title: str, series: Sequence[Series], x: str, y: str, *, names: Sequence[str] = ()
) -> Drawn | None:
    """Draw one line per series; names: the names of the positions 0, 1, ... on the x axis."""
    series = [line for line in series if len(line.x)]
    if not series:
        return None
    legend = len(series) > 1
    extra = 0.16 * -(-len(series) // 2) if legend else 0
    with _axes(3.6, 2.1 + extra) as (figure, [axes]):
        for at, line in enumerate(series):
            dashes = LINES[at // len(SERIES) % len(LINES)]
            mark = "o" if len(line.x) < 12 else ""
            style = {"marker": mark, "ms": 3.5, "lw": 1.6, "ls": dashes}
            axes.plot(line.x, line.y, color=HEX[line.colour], label=_text(line.name), **style)
        axes.grid(axis="y")
        axes.set_xlabel(x)
        axes.set_ylabel(y)
        if names:
            axes.set_xticks(range(len(names)), names)
        if legend:
            figure.legend(loc="outside lower center", ncols=2)
        told = (f"{line.name} from {line.y[0]:.3g} to {line.y[-1]:.3g}" for line in series)
        return _drawn(figure, title, "; ".join(told))


def bars(
    title: str, groups: Sequence[tuple[str, Sequence[tuple[str, float]], str]], unit: str
) -> Drawn | None:
    """Draw horizontal bars on one scale; groups: (name, [(label, value)], colour), a panel each."""
    groups = [group for group in groups if group[1]]
    if not groups:
        return None
    tall = max(len(rows) for _, rows, _ in groups)
    high = max(value for _, rows, _ in groups for _, value in rows)
    with _axes(2.8 * len(groups), 0.6 + 0.2 * tall, len(groups)) as (figure, panels):
        for axes, (name, rows, colour) in zip(panels, groups, strict=True):
            values = [value for _, value in rows]
            drawn = axes.barh(range(len(rows)), values, color=HEX[colour], height=0.6)
            axes.set_yticks(range(len(rows)), [_text(label) for label, _ in rows])
            axes.bar_label(drawn, fmt="%.1f", padding=3)
            axes.set_xlim(0, 1.2 * high)
            axes.invert_yaxis()
            axes.tick_params(left=False)
            axes.set_title(_text(name), loc="left", fontsize=9)
            axes.set_xlabel(unit)
        told = (f"{name}: {', '.join(label for label, _ in rows)}" for name, rows, _ in groups)
        return _drawn(figure, title, "; ".join(told))


def _text(text: str) -> str:
    """Protect a name from matplotlib's formulas, and SVG from control characters."""
    return formats.printable(text).replace("$", r"\$")
