"""Document every setting in ``config/README.md``: run ``python -m cdmae.config.reference``."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin

from pydantic.fields import FieldInfo

from cdmae import collections
from cdmae.config import schema
from cdmae.config.load import Written
from cdmae.fields import LARGEST, kinds_of, rules_of, show, tags

README = Path(__file__).parents[2] / "config/README.md"
MARK = "<!-- made by python -m cdmae.config.reference; a test checks that it is up to date -->\n"
LIMITS = {"gt": ">{:g}", "ge": "≥{:g}", "lt": "<{:g}", "le": "≤{:g}"}
HEAD = "| setting | default | values | meaning |\n|---|---|---|---|"


def page(text: str) -> str:
    """Return the text of the page with new tables in place of everything behind the mark."""
    sources = {name: collections.source(name).Settings for name in collections.names()}
    lines = [text.partition(MARK)[0] + MARK]
    lines += ["## top level\n", *_table({"": Written})]
    lines += ["\n## collections\n", *_table(sources)]
    for section, union in schema.SECTIONS.items():
        if section != "collections":
            lines += [f"\n## {section}\n", *_kinds(union)]
    for section, kind in (("evaluation", schema.Evaluation), ("report", schema.Report)):
        lines += [f"\n## {section}\n", *_table({"": kind})]
    return "\n".join(lines) + "\n"


def _kinds(union: Any) -> list[str]:
    """List the classes of a union, with the settings that select them, and their settings."""
    named = {}
    lines = []
    for kind in kinds_of(union):
        chosen = tags(kind)
        named[next(reversed(chosen.values()), "")] = kind
        if chosen:
            selected = ", ".join(f"{tag}: {value}" for tag, value in chosen.items())
            lines.append(f"- `{selected}`: {kind.__doc__.splitlines()[0]}")
    return [*lines, "", *_table(named)]


def _table(kinds: dict[str, Any]) -> list[str]:
    """Return a table of the settings of some classes, by the names of the classes.

    A setting that only some classes have, or that means something else in each, begins with their
    names.
    """
    having: dict[tuple[str, ...], list[str]] = {}
    for name, kind in kinds.items():
        for key, rule in rules_of(kind).items():
            if rule.description and key not in tags(kind):
                having.setdefault((key, *_cells(rule)), []).append(name)
    some = [names for names in having.values() if len(names) < len(kinds)]
    # without a class that has only what all have, such as objective none
    differing = {name for names in some for name in names}
    rows = [HEAD]
    for (key, default, values, meaning), names in having.items():
        only = f"{', '.join(names)}: " if len(names) < len(differing) else ""
        cells = (f"`{key}`", default, values, only + meaning)
        rows.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return rows


def _cells(rule: FieldInfo) -> tuple[str, str, str]:
    """Return the default of a setting, its values, and its meaning."""
    default = "required"
    if not rule.is_required():
        default = f"`{show(rule.get_default(call_default_factory=True))}`"
    return default, _values(rule.annotation, rule.metadata), _meaning(rule)


def _meaning(rule: FieldInfo) -> str:
    """Return the meaning of a setting on one line."""
    return " ".join((rule.description or "").split())


def _values(kind: Any, limits: Iterable[Any] = ()) -> str:
    """Return the names or the range that a type allows, as far as a default does not show it."""
    if get_origin(kind) is Annotated:
        inner, *own = get_args(kind)
        return _values(inner, own)
    if get_origin(kind) is Literal:
        return ", ".join(map(show, get_args(kind)))
    words = []
    for limit in limits:
        for name, form in LIMITS.items():
            bound = getattr(limit, name, None)
            if bound is not None and bound != LARGEST:
                words.append(form.format(bound))
    return " ".join(words)


if __name__ == "__main__":
    README.write_text(page(README.read_text(encoding="utf-8")), encoding="utf-8")
