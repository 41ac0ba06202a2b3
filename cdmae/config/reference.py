"""Document every setting in ``config/README.md``: run ``python -m cdmae.config.reference``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin

from pydantic.fields import FieldInfo

from cdmae import collections
from cdmae.config import schema
from cdmae.config.load import Written
from cdmae.fields import kinds_of, show, tags

README = Path(__file__).parents[2] / "config/README.md"
MARK = "<!-- made by python -m cdmae.config.reference; a test checks that it is up to date -->\n"


def page(text: str) -> str:
    """Return the text of the page with new lists instead of everything behind the mark."""
    sections: dict[str, dict[str, Any]] = {"top level": {"": Written}}
    for section, union in schema.SECTIONS.items():
        sections[section] = {" ".join(tags(kind).values()): kind for kind in kinds_of(union)}
    names = collections.names()
    sections["collections"] = {name: collections.source(name).Settings for name in names}
    sections["evaluation"] = {"": schema.Evaluation}
    sections["report"] = {"": schema.Report}
    lines = [text.partition(MARK)[0] + MARK]
    for title, kinds in sections.items():
        lines += _section(title, kinds)
    return "\n".join(lines) + "\n"


def _section(title: str, kinds: dict[str, Any]) -> list[str]:
    """Return a section: its kinds, and a list for the settings of each class that they share.

    kinds: classes by the values that select them in a config.
    """
    lines = [f"## {title}", ""]
    if len(kinds) > 1:
        for name, kind in kinds.items():
            selected = ", ".join(f"{tag}: {value}" for tag, value in tags(kind).items())
            lines.append(f"- `{selected or name}`: {kind.__doc__.splitlines()[0]}")
        lines.append("")
    classes = dict.fromkeys(each for kind in kinds.values() for each in kind.__mro__[::-1])
    for owner in classes:
        rows = [
            _line(key, rule)
            for key, rule in getattr(owner, "__pydantic_fields__", {}).items()
            if key in owner.__annotations__ and rule.description and key not in tags(owner)
        ]
        having = [name for name, kind in kinds.items() if issubclass(kind, owner)]
        lacking = [name for name in kinds if name not in having]
        if rows and lacking:
            fewer = [f"All except {', '.join(lacking)}:", f"Only {', '.join(having)}:"]
            lines += [min(fewer, key=len), ""]
        if rows:
            lines += [*rows, ""]
    return lines


def _line(key: str, rule: FieldInfo) -> str:
    """Return the line of a setting: its default, its other values if they have names, and text."""
    default = rule.get_default(call_default_factory=True)
    values = [] if default in ("", (), {}) else [f"`{show(default)}`"]
    if rule.is_required():
        values = ["required"]
    values += [f"`{show(name)}`" for name in _names(rule.annotation) if name != default]
    bracket = f" ({', '.join(values)})" if values else ""
    meaning = " ".join((rule.description or "").split())
    return f"- `{key}`{bracket}: {meaning}"


def _names(kind: Any) -> list[Any]:
    """List the values of a type that allows only these; without the empty text."""
    if get_origin(kind) is Annotated:
        return _names(get_args(kind)[0])
    return [value for value in get_args(kind) if value] if get_origin(kind) is Literal else []


if __name__ == "__main__":
    README.write_text(page(README.read_text(encoding="utf-8")), encoding="utf-8")
