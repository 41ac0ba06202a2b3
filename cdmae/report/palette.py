"""Read the style sheets of the page and of the figures, and choose colours: those of colours.css, light and dark."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

SERIES = 8  # colours of lines, s0 to s7


def style_sheet(name: str) -> str:
    """Return one of the style sheets beside this module."""
    return Path(__file__).with_name(f"{name}.css").read_text(encoding="utf-8")


COLOURS = {name: (light, dark) for name, light, dark in re.findall(
    r"--([\w-]+):light-dark\((#\w+),(#\w+)\)", style_sheet("colours")
)}  # fmt: skip


def variables() -> str:
    """Return the colours as CSS variables: the system's scheme, unless the page's ``data-theme`` says otherwise."""
    return style_sheet("colours")


def literal(style: str) -> str:
    """Write the colours of `style` out, dark ones in a media query: figures that stand alone know no variables."""
    light, dark = (re.sub(r"var\(--([\w-]+)\)", lambda use, i=i: COLOURS[use[1]][i], style) for i in (0, 1))
    return f"{light}\n@media(prefers-color-scheme:dark){{{dark}}}"


def assign(encoders: dict[str, dict[str, Any]]) -> dict[str, int]:
    """Choose a colour per encoder: the first that masks by importance has the first, the first other one the second.

    The first that is not pre-trained has the third, which is grey.
    """
    kinds = [
        2 if entry.get("objective") == "none" else int(entry.get("decoder_masking") != "importance")
        for entry in encoders.values()
    ]
    names = list(encoders)
    chosen = {names[kinds.index(kind)]: kind for kind in range(3) if kind in kinds}
    others = [name for name in names if name not in chosen]
    return chosen | {name: 3 + index % (SERIES - 3) for index, name in enumerate(others)}
