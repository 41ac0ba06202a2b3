"""Write a table in four forms: HTML, Markdown, LaTeX (booktabs), and CSV with unrounded numbers."""

from __future__ import annotations

import base64
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import pandas as pd
from markupsafe import Markup

from cdmae import formats
from cdmae.report.templates import fill

# A table with more columns, or with prose, keeps its width on a narrow screen, and scrolls.
WIDE = 5
LONG = 14  # characters above which a column's name counts as prose
_TEX = str.maketrans(
    {mark: f"\\{mark}" for mark in "&%$#_{}"}
    | {
        "\\": r"\textbackslash{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "<": "$<$",
        ">": "$>$",
        "\N{MINUS SIGN}": "$-$",
        "\N{EN DASH}": "--",
        "\N{NO-BREAK SPACE}": "~",
        "→": r"$\rightarrow$",
        "∞": r"$\infty$",
        "×": r"$\times$",
        "±": r"$\pm$",
        "α": r"$\alpha$",
        "σ": r"$\sigma$",
        "▲": r"$^{\blacktriangle}$",
        "▼": r"$^{\blacktriangledown}$",
        "△": r"$^{\vartriangle}$",
        "▽": r"$^{\triangledown}$",
    }
)

# characters with a meaning in Markdown; an underscore within a word has no meaning
_MARKDOWN = re.compile(r"[\\`*<>|\[\]~]|(?<=\])\(|&(?=#?\w+;)|(?<![^\W_])_|_(?![^\W_])")

_PLAIN = re.compile(r"[-+\N{MINUS SIGN}]?[\d,]*\.?\d+")


class Spread(NamedTuple):
    """The standard deviation of a mean over trainings with different seeds, and their number."""

    deviation: float
    seeds: int


@dataclass(frozen=True)
class Cell:
    """A cell of a table.

    The CSV shows `value` instead of `text`; `note` explains the `mark`. spread: the spread of
    `value`, shown after the text. In the CSV, notes and spreads have columns of their own.
    """

    text: str
    value: float | str | None = None
    best: bool = False
    second: bool = False
    mark: str = ""
    note: str = ""
    spread: Spread | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "text", formats.one_line(self.text))

    @property
    def order(self) -> str:
        """Return the number by which a browser sorts the cell; "" if the text is this number."""
        is_number = isinstance(self.value, int | float)
        return f"{self.value:.6g}" if is_number and not _PLAIN.fullmatch(self.text) else ""

    @property
    def beside(self) -> str:
        """Format the spread for the text, with as many decimals as measures."""
        return f"\N{PLUS-MINUS SIGN}{self.spread.deviation:.1f}" if self.spread else ""


def number_cell(value: float | None, form: Callable[[Any], str]) -> Cell:
    """Make a cell for a number in a given form; a dash for None and nan."""
    return Cell(formats.NONE) if value is None or math.isnan(value) else Cell(form(value), value)


@dataclass(frozen=True)
class Table:
    """A table: rows of cells below the names of the `columns`.

    The first `heads` columns name the row; the others contain numbers. texts: the columns that
    contain prose, which are left-aligned. name: the base name of the table's files.
    """

    name: str
    caption: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Cell | str]]
    heads: int = 1
    texts: Sequence[str] = ()

    @classmethod
    def of(
        cls,
        name: str,
        caption: str,
        frame: pd.DataFrame,
        forms: Mapping[str, Callable[[Any], str]] | None = None,
        **sides: Any,
    ) -> Table:
        """Make a table from a frame; `forms` formats columns, and missing values become dashes."""
        cells = []
        for column, values in frame.items():
            own = values.tolist()
            if forms and column in forms:
                own = [number_cell(value, forms[column]) for value in own]
            cells.append(own)
        rows = [list(row) for row in zip(*cells, strict=True)]
        return cls(name, caption, list(frame), rows, **sides)

    def html(self) -> Markup:
        """Format the table for the page, with links to download the other forms."""
        prose = self.texts or (len(self.columns) >= WIDE and max(map(len, self.columns)) > LONG)
        across = len(self.columns) + sum(map(bool, self._seeds))
        files = [
            ("csv", "csv", _base64(self.csv())),
            ("md", "markdown", _base64(self.markdown())),
            ("tex", "x-tex", _base64(self.tex())),
        ]
        page = fill(
            "columns.html.j2",
            table=self,
            title=self._title,
            files=files,
            rows=self._cells.to_numpy().tolist(),
            wide=across > WIDE or (prose and across > 2),
            columns=list(zip(self.columns, self._sides, self._seeds, strict=True)),
        )
        return Markup(page)

    def markdown(self) -> str:
        """Format the table as Markdown below its title, with the best values in bold."""
        text = self._written(_markdown).to_markdown(
            index=False, colalign=self._sides, disable_numparse=True
        )
        return f"{self._title}\n\n{text}\n"

    def tex(self) -> str:
        """Format the table as LaTeX ``tabular``: best value bold, second underlined.

        The document needs booktabs and amssymb.
        """
        sides = "".join(side[0] for side in self._sides)
        cells = self._written(_tex)
        tabular = cells.to_latex(index=False, escape=False, column_format=sides)
        return f"% {self._title}\n{tabular}"

    def csv(self) -> str:
        """Format the table as CSV, with unrounded numbers and without marks.

        Deviations and notes have columns of their own.
        """
        columns = []
        for seeds, (name, cells) in zip(self._seeds, self._cells.items(), strict=True):
            columns.append(cells.map(_csv))
            if seeds:
                deviations = cells.map(
                    lambda cell: _number(cell.spread.deviation) if cell.spread else ""
                )
                columns.append(deviations.rename(f"{name}, deviation over {seeds} seeds"))
        notes = [
            cells.map(lambda cell: cell.note).rename(f"{name}, note")
            for name, cells in self._cells.items()
        ]
        return pd.concat([*columns, *(column for column in notes if column.any())], axis=1).to_csv(
            index=False
        )

    @cached_property
    def _cells(self) -> pd.DataFrame:
        rows = [
            [cell if isinstance(cell, Cell) else Cell(cell) for cell in row] for row in self.rows
        ]
        return pd.DataFrame(rows, columns=self.columns)

    @cached_property
    def _seeds(self) -> list[int]:
        """Return each column's number of seeds in its spreads; 0 for a column without spreads."""
        columns = self._cells.to_numpy().T
        return [
            max((cell.spread.seeds for cell in column if cell.spread), default=0)
            for column in columns
        ]

    @property
    def _sides(self) -> list[str]:
        prose = [at < self.heads or name in self.texts for at, name in enumerate(self.columns)]
        return ["left" if of_column else "right" for of_column in prose]

    @property
    def _title(self) -> str:
        if not any(self._seeds):
            return self.caption
        spread = f"standard deviation over {max(self._seeds)} seeds, where there are several"
        return f"{self.caption}; \N{PLUS-MINUS SIGN}: {spread}"

    def _written(self, form: Callable[[Cell], str]) -> pd.DataFrame:
        """Format cells and column names as text, escaped here because pandas lacks the marks."""
        return self._cells.map(form).set_axis([form(Cell(name)) for name in self.columns], axis=1)


def _base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def highlight(cells: pd.Series) -> pd.Series:
    """Mark the best and the second best value of a column; values that look equal share a rank.

    A column with only one value is not marked.
    """
    values = [
        float(f"{cell.value:.1f}") if isinstance(cell.value, float) else None for cell in cells
    ]
    ordered = sorted({value for value in values if value is not None}, reverse=True)
    if len(ordered) < 2:
        return cells
    first, second = ordered[:2]
    marked = [
        replace(cell, best=value == first, second=value == second)
        for cell, value in zip(cells, values, strict=True)
    ]
    return pd.Series(marked, cells.index)


def _number(value: float | str) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _csv(cell: Cell) -> str:
    """Format a cell for a program; an apostrophe protects text from a spreadsheet's formulas."""
    if cell.value is not None:
        return _number(cell.value)
    return f"'{cell.text}" if cell.text.startswith(tuple("=+-@＝＋－＠")) else cell.text


def _markdown(cell: Cell) -> str:
    text = _MARKDOWN.sub(r"\\\g<0>", cell.text)
    return " ".join(filter(None, (f"**{text}**" if cell.best else text, cell.beside))) + cell.mark


def _tex(cell: Cell) -> str:
    text, beside, mark = (part.translate(_TEX) for part in (cell.text, cell.beside, cell.mark))
    if cell.best or cell.second:
        text = rf"\textbf{{{text}}}" if cell.best else rf"\underline{{{text}}}"
    return " ".join(filter(None, (text, beside))) + mark
