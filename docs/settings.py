"""Document every setting in ``config/README.md``: run ``make settings``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin

from pydantic.fields import FieldInfo

from cdmae import collections
from cdmae.config import schema
from cdmae.config.load import Written
from cdmae.fields import kinds_of, show, tags

README = Path(__file__).parents[1] / "config/README.md"
UNLISTED = (*schema.SECTIONS, "collections", "evaluation", "report")  # have sections of their own
MARK = "<!-- made by docs/settings.py; a test checks that it is up to date -->\n"


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
    """Return a section: its kinds with their own settings, then the settings that kinds share.

    kinds: classes by the values that select them in a config.
    """
    owners: dict[type, list[str]] = {}  # class -> the kinds that have its settings
    for name, kind in kinds.items():
        for owner in kind.__mro__[::-1]:
            owners.setdefault(owner, []).append(name)
    lines = [f"## {title}", ""]
    if len(kinds) > 1:
        selecting = dict.fromkeys(tag for kind in kinds.values() for tag in tags(kind))
        if selecting:
            lines += [f"By {' and '.join(f'`{tag}`' for tag in selecting)}:", ""]
        for name, kind in kinds.items():
            lines.append(f"- `{name}`: {kind.__doc__.splitlines()[0]}")
            for owner in kind.__mro__[::-1]:
                if owners[owner] == [name]:
                    lines += [f"  {row}" for row in _rows(owner)]
        lines.append("")
    for owner, having in owners.items():
        rows = _rows(owner)
        if not rows or len(kinds) > 1 and len(having) == 1:
            continue
        lacking = [name for name in kinds if name not in having]
        if lacking:
            fewer = [f"All except {', '.join(lacking)}:", f"Only {', '.join(having)}:"]
            lines += [min(fewer, key=len), ""]
        lines += [*rows, ""]
    return lines


def _rows(owner: type) -> list[str]:
    """Return a line for each setting that a class adds."""
    return [
        _line(key, rule)
        for key, rule in getattr(owner, "__pydantic_fields__", {}).items()
        if key in owner.__annotations__
        and key not in tags(owner)
        and not (issubclass(Written, owner) and key in UNLISTED)
    ]


def _line(key: str, rule: FieldInfo) -> str:
    """Return the line of a setting: its default, its other values if they have names, and text."""
    if not rule.description:
        raise SystemExit(f"the setting {key} has no docstring")
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
