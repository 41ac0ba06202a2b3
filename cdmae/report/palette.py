"""The colours of the page and of the figures, each in a light and a dark form (text and lines at 4.5:1 or more)."""

from __future__ import annotations

import re
from importlib import resources
from typing import Any

# name: (light, dark)
COLOURS = {
    "paper": ("#fcfcfa", "#16191c"),
    "raised": ("#f3f3ee", "#1f2428"),
    "ink": ("#1b2125", "#e9e7e2"),
    "soft": ("#566067", "#a9b1b7"),
    "rule": ("#d8dad4", "#363d43"),
    "strong-rule": ("#8a9299", "#79828a"),
    "band": ("#e3e5df", "#2c3338"),
    "shadow": ("#c9ccc4", "#04060a"),
    "link": ("#0b57a4", "#85b9f2"),
    "warning": ("#8a4b00", "#f0b35f"),
    "warning-paper": ("#fdf3e1", "#2c2415"),
    "shade": ("#e8663a", "#c9542b"),
    "s0": ("#b5441a", "#f39a6b"),
    "s1": ("#22669f", "#7cb8ee"),
    "s2": ("#636c74", "#a9b1b8"),
    "s3": ("#2b7a4b", "#79c997"),
    "s4": ("#7648a0", "#c0a2e6"),
    "s5": ("#8a6800", "#dcb855"),
    "s6": ("#0e7480", "#5fc8d2"),
    "s7": ("#a3306a", "#ee90bd"),
}
SERIES = 8
_USE = re.compile(r"var\(--([a-z0-9-]+)\)")


def style_sheet(name: str) -> str:
    """One of the style sheets beside this module."""
    return resources.files("cdmae.report").joinpath(f"{name}.css").read_text(encoding="utf-8")


def variables() -> str:
    """The colours as CSS variables: the system's scheme, unless the page's ``data-theme`` says otherwise."""
    light, dark = (
        "".join(f"--{name}:{pair[index]};" for name, pair in COLOURS.items()) + f"color-scheme:{scheme};"
        for index, scheme in enumerate(("light", "dark"))
    )
    return (
        f":root{{{light}}}\n@media(prefers-color-scheme:dark){{:root:not([data-theme=light]){{{dark}}}}}\n"
        f":root[data-theme=dark]{{{dark}}}\n"
    )


def literal(style: str) -> str:
    """`style` with the colours written out, dark ones in a media query: for figures that stand alone."""
    light, dark = (_USE.sub(lambda use, i=index: COLOURS[use[1]][i], style) for index in (0, 1))
    return f"{light}\n@media(prefers-color-scheme:dark){{{dark}}}"


def assign(encoders: dict[str, dict[str, Any]]) -> dict[str, int]:
    """A colour per encoder: masked by importance the first, uniformly the second, not pre-trained the grey third."""
    chosen: dict[str, int] = {}
    kinds = (
        lambda entry: entry.get("objective") != "none" and entry.get("decoder_masking") == "importance",
        lambda entry: entry.get("objective") != "none" and entry.get("decoder_masking") != "importance",
        lambda entry: entry.get("objective") == "none",
    )
    for colour, fits in enumerate(kinds):
        first = next((name for name, entry in encoders.items() if fits(entry)), None)
        if first is not None:
            chosen[first] = colour
    others = [name for name in encoders if name not in chosen]
    return chosen | {name: 3 + index % (SERIES - 3) for index, name in enumerate(others)}
