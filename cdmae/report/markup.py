"""HTML and SVG of tables and figures as values: everything is escaped unless it is already HTML."""

from __future__ import annotations

import html
from collections.abc import Iterable
from typing import Any

_VOID = {"br", "col", "hr", "img", "input", "link", "meta", "wbr"}


class Markup(str):
    """Text that is already HTML, in templates too."""

    __slots__ = ()

    def __html__(self) -> str:
        """Tell jinja2 not to escape it."""
        return self


def escape(value: Any) -> Markup:
    """`value` as HTML: `Markup` as it is, None as nothing, an iterable piece by piece, everything else escaped."""
    if hasattr(value, "__html__"):
        return Markup(value.__html__())
    if isinstance(value, Markup):
        return value
    if value is None or value is False:
        return Markup("")
    if isinstance(value, Iterable) and not isinstance(value, str):
        return Markup("".join(escape(part) for part in value))
    return Markup(html.escape(str(value), quote=True))


def tag(name: str, /, *children: Any, **attributes: Any) -> Markup:
    """An element: ``tag("td", "5 < 6", class_="number")``.

    In the name of an attribute an underscore stands for a hyphen and a last one is dropped; None and False leave the
    attribute out, True writes it without a value.
    """
    written = "".join(_attribute(key.rstrip("_").replace("_", "-"), value) for key, value in attributes.items())
    if name in _VOID:
        return Markup(f"<{name}{written}>")
    return Markup(f"<{name}{written}>{escape(children)}</{name}>")


def join(parts: Iterable[Any], between: str) -> Markup:
    """The `parts`, escaped, with `between` (escaped as well) between them."""
    return Markup(escape(between).join(escape(part) for part in parts))


def breakable(name: str) -> Markup:
    """A name that may be broken after each hyphen, underscore and slash."""
    broken = str(escape(name))
    for mark in "-_/":
        broken = broken.replace(mark, mark + "<wbr>")
    return Markup(broken)


def _attribute(name: str, value: Any) -> str:
    if value is None or value is False:
        return ""
    return f" {name}" if value is True else f' {name}="{escape(value)}"'
