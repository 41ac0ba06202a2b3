"""Document every setting in ``config/README.md``: run ``python -m cdmae.config.reference``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin

from pydantic.fields import FieldInfo

from cdmae import collections
from cdmae.config import schema
from cdmae.config.load import Written
from cdmae.fields import LARGEST, kinds_of, show, tags

README = Path(__file__).parents[2] / "config/README.md"
MARK = "<!-- made by python -m cdmae.config.reference; a test checks that it is up to date -->\n"
LIMITS = {"gt": ">{:g}", "ge": "≥{:g}", "lt": "<{:g}", "le": "≤{:g}"}
HEAD = ["| setting | default | values | meaning |", "|---|---|---|---|"]


def page(text: str) -> str:
    """Return the text of the page with new tables in place of everything behind the mark."""
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
    """Return a section: its kinds, and a table for the settings of each class that they share.

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
            _row(key, rule)
            for key, rule in getattr(owner, "__pydantic_fields__", {}).items()
            if key in owner.__annotations__ and rule.description and key not in tags(owner)
        ]
        having = [name for name, kind in kinds.items() if issubclass(kind, owner)]
        if rows and len(having) < len(kinds):
            lines += [f"Only {', '.join(having)}:", ""]
        if rows:
            lines += [*HEAD, *rows, ""]
    return lines


def _row(key: str, rule: FieldInfo) -> str:
    """Return the row of a setting: its default, its values or range, and its meaning."""
    default = "required"
    if not rule.is_required():
        default = f"`{show(rule.get_default(call_default_factory=True))}`"
    meaning = " ".join((rule.description or "").split())
    cells = (f"`{key}`", default, _values(rule.annotation, *rule.metadata), meaning)
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _values(kind: Any, *limits: Any) -> str:
    """Return the names or the range that a type allows, as far as a default does not show it."""
    if get_origin(kind) is Annotated:
        return _values(*get_args(kind))
    if get_origin(kind) is Literal:
        return ", ".join(map(show, get_args(kind)))
    words = []
    for limit in limits:
        for name, form in LIMITS.items():
            bound = getattr(limit, name, LARGEST)
            if bound not in (None, LARGEST):
                words.append(form.format(bound))
    return " ".join(words)


if __name__ == "__main__":
    README.write_text(page(README.read_text(encoding="utf-8")), encoding="utf-8")
