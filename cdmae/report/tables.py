"""Write a frame of texts as HTML, LaTeX (booktabs) and Markdown, by pandas."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import pandas as pd
from markupsafe import Markup, escape
from pandas.io.formats.style import Styler

from cdmae.report import notation

PLUS_MINUS = "\N{PLUS-MINUS SIGN}"
BOLD = "font-weight: bold"
# characters that LaTeX does not print as they are, and that pandas does not escape
TEX = {
    "<": "$<$",
    ">": "$>$",
    "→": r"$\rightarrow$",
    "∞": r"$\infty$",
    PLUS_MINUS: r"$\pm$",
    notation.MINUS: "$-$",
    notation.NONE: "--",
}


def html(
    frame: pd.DataFrame,
    caption: str,
    *,
    texts: Sequence[str] = (),
    best: Iterable[str] = (),
    marked: str = "",
) -> Markup:
    """Format a frame for the page, in a box that scrolls sideways on a narrow screen.

    The first column names the rows. texts: the further columns with prose. best: the columns whose
    largest number is bold. marked: the name of a row that stands out. Without rows: nothing.
    """
    if frame.empty:
        return Markup("")
    style = _styled(frame, best, "html")
    classes = pd.DataFrame("", index=style.index, columns=style.columns)
    classes[[*texts]] = "text"
    classes.loc[style.data.iloc[:, 0] == marked] += " marked"
    style.set_td_classes(classes)
    sides = ["text-align: left" if name in texts else "" for name in style.columns]
    style.apply_index(lambda _: sides, axis=1)
    style.set_uuid(re.sub(r"\W+", "-", caption.lower()))
    style.set_caption(escape(caption))
    style.set_table_attributes('class="sortable"')
    table = style.to_html(doctype_html=False).replace("<th ", '<th scope="col" ')
    return Markup(f'<div class="scroll" tabindex="0">{table}</div>')


def latex(frame: pd.DataFrame, caption: str, *, best: Iterable[str] = ()) -> str:
    """Format a frame as LaTeX ``tabular``, the best value of a column bold; needs booktabs."""
    text = _styled(frame, best, "latex").to_latex(hrules=True, convert_css=True)
    return f"% {caption}\n{text.translate(str.maketrans(TEX))}"


def markdown(frame: pd.DataFrame, caption: str, *, plain: Sequence[str] = ()) -> str:
    """Format a frame as Markdown below its title; plain: the columns that are Markdown already."""
    cells = frame.fillna(notation.NONE).map(notation.markdown)
    cells[[*plain]] = frame[[*plain]]
    sides = ["right" if frame[name].map(number).notna().any() else "left" for name in frame]
    table = cells.to_markdown(index=False, colalign=sides, disable_numparse=True)
    return f"{caption}\n\n{table}\n"


def _styled(frame: pd.DataFrame, best: Iterable[str], escape: str) -> Styler:
    """Escape a frame's cells, and make the largest number of some columns bold."""
    style = frame.reset_index(drop=True).style.hide(axis="index")
    for name in best:
        numbers = frame[name].map(number)
        if numbers.nunique() > 1:
            bold = [BOLD if each == numbers.max() else "" for each in numbers]
            style.apply(lambda _, bold=bold: bold, subset=[name])
    style.format(escape=escape, na_rep=notation.NONE)
    return style.format_index(escape=escape, axis=1)


def number(text: object) -> float:
    """Read the number at the beginning of a cell, such as ``10.2 ±0.3``; nan without one."""
    plain = str(text).replace(notation.MINUS, "-").replace(",", "")
    found = re.match(r"[-+]?\d*\.?\d+", plain)
    return float(found[0]) if found else float("nan")
