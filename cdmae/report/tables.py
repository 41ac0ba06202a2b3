"""A table once, written four ways: HTML for the page, Markdown, LaTeX (booktabs) and CSV with the unrounded numbers."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import pandas as pd

from cdmae.report.markup import Markup, breakable, escape, join, tag

if TYPE_CHECKING:
    from cdmae.report.facts import Spread

WIDE = 5  # a table with more columns, or with prose, keeps its width on a narrow screen and scrolls in its box
LONG = 14  # characters of a column's name that is as good as prose
NAME = 28  # a shorter first cell without spaces is not broken where there is room
_TEX = {
    **{mark: f"\\{mark}" for mark in "&%$#_{}"},
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "\N{MINUS SIGN}": "$-$",
    "\N{EN DASH}": "--",
    "\N{NO-BREAK SPACE}": "~",
    "\N{RIGHTWARDS ARROW}": r"$\rightarrow$",
    "\N{BLACK UP-POINTING TRIANGLE}": r"$^{\blacktriangle}$",
    "\N{BLACK DOWN-POINTING TRIANGLE}": r"$^{\blacktriangledown}$",
    "\N{WHITE UP-POINTING TRIANGLE}": r"$^{\vartriangle}$",
    "\N{WHITE DOWN-POINTING TRIANGLE}": r"$^{\triangledown}$",
    "\N{INFINITY}": r"$\infty$",
    "\N{MULTIPLICATION SIGN}": r"$\times$",
    "\N{PLUS-MINUS SIGN}": r"$\pm$",
    "\N{GREEK SMALL LETTER ALPHA}": r"$\alpha$",
    "\N{GREEK SMALL LETTER SIGMA}": r"$\sigma$",
    "<": "$<$",
    ">": "$>$",
}


@dataclass(frozen=True)
class Cell:
    """What a cell shows. The CSV has `value` instead of `text`; `mark` follows the text, explained by `note`.

    `spread`, in the units of `value`, follows the text too; in the CSV it is a column of its own.
    """

    text: str
    value: float | str | None = None
    best: bool = False
    second: bool = False
    mark: str = ""
    note: str = ""
    spread: Spread | None = None

    @property
    def beside(self) -> str:
        """The spread as it stands beside the text, to the decimal of measures."""
        return f"\N{PLUS-MINUS SIGN}{self.spread.deviation:.1f}" if self.spread else ""


@dataclass(frozen=True)
class Table:
    """Rows of cells below the names of the `columns`; the first `heads` columns name the row, the others hold numbers.

    `texts`: columns that are prose, set to the left. `name` is that of its files.
    """

    name: str
    caption: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Cell | str]]
    heads: int = 1
    texts: Sequence[str] = ()

    def html(self) -> Markup:
        """The table for the page, with the other forms to take away."""
        head = tag(
            "tr", [tag("th", escape(name), scope="col", class_=self._side(i)) for i, name in enumerate(self.columns)]
        )
        body = [tag("tr", [self._cell(i, cell) for i, cell in enumerate(row)]) for row in self._cells.to_numpy()]
        marked = any(cell.mark for cell in self._cells.to_numpy().flat)
        kinds = {"wide": self._wide(), "marked": marked, "narrow": self._narrow(), "spreads": any(self._seeds)}
        classes = [name for name, fits in kinds.items() if fits]
        table = tag("table", tag("thead", head), tag("tbody", body), class_=" ".join(classes) or None)
        caption = tag("figcaption", escape(self._title()), " ", self._downloads())
        box = tag("div", table, class_="scroll", tabindex="0", role="region", aria_label=self.caption)
        return tag("figure", caption, box, class_="table", id=f"table-{self.name}")

    def markdown(self) -> str:
        """The table for a README, below its title: the best bold."""
        sides = ["left" if self._side(i) is None else "right" for i in range(len(self.columns))]
        text = self._written(_markdown).to_markdown(index=False, colalign=sides, disable_numparse=True)
        return f"{self._title()}\n\n{text}\n"

    def tex(self) -> str:
        """The table for a paper, as ``tabular`` (needs booktabs, amssymb): the best bold, the second underlined."""
        sides = "".join("l" if self._side(i) is None else "r" for i in range(len(self.columns)))
        text = self._written(_tex).to_latex(index=False, escape=False, column_format=sides)
        return f"% {self._title()}\n{text}"

    def csv(self) -> str:
        """The table for a program: numbers unrounded, no marks, a column of deviations after one that has spreads."""
        columns = []
        for seeds, (name, cells) in zip(self._seeds, self._cells.items(), strict=True):
            columns.append(cells.map(lambda cell: cell.text if cell.value is None else _number(cell.value)))
            if seeds:
                deviations = cells.map(lambda cell: _number(cell.spread.deviation) if cell.spread else "")
                columns.append(deviations.rename(f"{name}, deviation over {seeds} seeds"))
        return pd.concat(columns, axis=1).to_csv(index=False)

    @cached_property
    def _cells(self) -> pd.DataFrame:
        return pd.DataFrame([[as_cell(cell) for cell in row] for row in self.rows], columns=self.columns)

    def _written(self, form: Callable[[Cell], str]) -> pd.DataFrame:
        """Cells and names of columns as texts of a form, escaped: pandas does not know the signs that stand here."""
        return self._cells.map(form).set_axis([form(Cell(name)) for name in self.columns], axis=1)

    @cached_property
    def _seeds(self) -> list[int]:
        """For every column, how many seeds its spreads are over; 0 without."""
        columns = self._cells.to_numpy().T
        return [max((cell.spread.seeds for cell in column if cell.spread), default=0) for column in columns]

    def _spread(self) -> str:
        return f"\N{PLUS-MINUS SIGN} standard deviation over {max(self._seeds)} seeds"

    def _title(self) -> str:
        return f"{self.caption}, {self._spread()}" if any(self._seeds) else self.caption

    def _wide(self) -> bool:
        prose = self.texts or (len(self.columns) >= WIDE and max(map(len, self.columns)) > LONG)
        count = len(self.columns) + sum(map(bool, self._seeds))
        return count > WIDE or (bool(prose) and count > 2)

    def _narrow(self) -> bool:
        return len(self.columns) <= 4 and not self.texts

    def _side(self, column: int) -> str | None:
        return None if column < self.heads or self.columns[column] in self.texts else "number"

    def _cell(self, column: int, cell: Cell) -> Markup:
        text: Markup = breakable(cell.text) if self._side(column) is None else escape(cell.text)
        if cell.best or cell.second:
            text = tag("b" if cell.best else "u", text)
        if self._seeds[column]:  # also beside a number without spread, so that numbers stand below each other
            text = Markup(text + tag("span", cell.beside, class_="spread"))
        if cell.mark:
            text = Markup(text + tag("span", cell.mark, class_="mark", title=cell.note or None))
        if column == 0:
            return tag(
                "th", text, scope="row", class_="name" if len(cell.text) <= NAME and " " not in cell.text else None
            )
        short = self._side(column) is None and len(cell.text) <= NAME - 4
        classes = [self._side(column), "name" if short else None]
        return tag("td", text, class_=" ".join(filter(None, classes)) or None)

    def _downloads(self) -> Markup:
        forms = (
            ("csv", "text/csv", self.csv()),
            ("md", "text/markdown", self.markdown()),
            ("tex", "text/x-tex", self.tex()),
        )
        links = [
            tag("a", kind, download=f"{self.name}.{kind}", href=_data(media, text), aria_label=f"{self.caption} {kind}")
            for kind, media, text in forms
        ]
        return tag("span", join(links, " "), class_="files")


def as_cell(cell: Cell | str) -> Cell:
    """A plain text is a cell too."""
    return Cell(cell) if isinstance(cell, str) else cell


def highlight(columns: Sequence[Sequence[Cell]]) -> list[list[Cell]]:
    """Mark the best and the second best of each column, equal if they read equal. Columns of one cell stay plain."""
    return [_highlight(list(cells)) for cells in columns]


def _highlight(cells: list[Cell]) -> list[Cell]:
    shown = sorted({float(f"{cell.value:.1f}") for cell in cells if isinstance(cell.value, float)}, reverse=True)
    if len(shown) < 2:
        return cells
    marked = []
    for cell in cells:
        value = float(f"{cell.value:.1f}") if isinstance(cell.value, float) else None
        marked.append(replace(cell, best=value == shown[0], second=value == shown[1]))
    return marked


def _number(value: float | str) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _data(media: str, text: str) -> str:
    return f"data:{media};charset=utf-8;base64,{base64.b64encode(text.encode()).decode()}"


def _markdown(cell: Cell) -> str:
    text = re.sub(r"([\\`*<|])", r"\\\1", cell.text).replace("\n", " ")  # a masked term may be any of these
    return " ".join(filter(None, (f"**{text}**" if cell.best else text, cell.beside))) + cell.mark


def _tex(cell: Cell) -> str:
    text, beside, mark = (
        "".join(_TEX.get(letter, letter) for letter in each) for each in (cell.text, cell.beside, cell.mark)
    )
    if cell.best or cell.second:
        text = rf"\textbf{{{text}}}" if cell.best else rf"\underline{{{text}}}"
    return " ".join(filter(None, (text, beside))) + mark
