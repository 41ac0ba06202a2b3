"""Document every setting in ``config/README.md``: run ``python -m cdmae.config.reference``."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin

import jinja2
from pydantic.fields import FieldInfo

from cdmae import collections
from cdmae.config import schema
from cdmae.config.load import Written
from cdmae.fields import LARGEST, kinds_of, rules_of, show, tags
from cdmae.tokens.scripts import Language

PLAIN = {int: "a whole number", float: "a number", bool: "true or false", str: "text"}
LIMITS = {"gt": "above {}", "ge": "from {}", "lt": "below {}", "le": "to {}"}


def page() -> str:
    """Render the whole page as Markdown from the template `settings.md.j2`."""
    environment = jinja2.Environment(
        trim_blocks=True, keep_trailing_newline=True, undefined=jinja2.StrictUndefined
    )
    template = environment.from_string(
        Path(__file__).with_name("settings.md.j2").read_text(encoding="utf-8")
    )
    sources = {name: collections.source(name).Settings for name in collections.names()}
    single = {"top": Written, "evaluation": schema.Evaluation, "report": schema.Report}
    named = {name: kind for name, kind in schema.SECTIONS.items() if name != "collections"}
    return template.render(
        languages=", ".join(f"`{language}`" for language in get_args(Language)),
        sources={name: _section(kind) for name, kind in sources.items()},
        **{name: _section(kind) for name, kind in (single | named).items()},
    )


def _section(union: Any) -> dict[str, Any]:
    """Return the rows of all settings of a class, or of the classes of a union.

    `rules`: for each setting its default, the expected values and its meaning, which begins with
    the names of the kinds if only some have it. `tags`: for each setting that selects a class, the
    meanings of its values.
    """
    kinds = [kind for kind in kinds_of(union) if union is not Written or kind is Written]
    selecting: dict[str, dict[str, str]] = {}
    having: dict[str, list[str]] = {}  # the kinds with a setting
    first: dict[str, FieldInfo] = {}
    for kind in kinds:
        for key, rule in rules_of(kind).items():
            if key in tags(kind):
                selecting.setdefault(key, {}).setdefault(rule.default, _meaning(rule))
            elif rule.description:
                first.setdefault(key, rule)
                having.setdefault(key, []).append(" ".join(tags(kind).values()))
    common = {key for key in having if len(having[key]) == len(kinds)}
    # kinds with no setting of their own, such as an encoder that is not pre-trained
    least = sum(not (having.keys() & rules_of(kind).keys()) - common for kind in kinds)
    rows = {}
    for key, rule in first.items():
        only = f"{', '.join(having[key])}: " if len(having[key]) < len(kinds) - least else ""
        default = "required"
        if not rule.is_required():
            default = show(rule.get_default(call_default_factory=True))
        rows[key] = [default, expected(rule.annotation, rule.metadata), only + _meaning(rule)]
    return {"rules": rows, "tags": selecting}


def _meaning(rule: FieldInfo) -> str:
    """Return the meaning of a setting on one line."""
    return " ".join((rule.description or "").split())


def expected(kind: Any, limits: Iterable[Any] = ()) -> str:
    """Describe the values of a type, such as ``a whole number from 1``."""
    if get_origin(kind) is Annotated:
        inner, *own = get_args(kind)
        return expected(inner, own)
    if get_origin(kind) is Literal:
        return ", ".join(map(show, get_args(kind)))
    if get_origin(kind) is tuple:
        return f"a list, each {expected(get_args(kind)[0])}"
    words = [PLAIN.get(kind, "a mapping")]
    for limit in limits:
        for name, form in LIMITS.items():
            bound = getattr(limit, name, None)
            if bound is not None and bound != LARGEST:
                words.append(form.format(f"{bound}" if isinstance(bound, int) else f"{bound:g}"))
    return " ".join(words)


if __name__ == "__main__":
    readme = Path(__file__).parents[2] / "config/README.md"
    readme.write_text(page(), encoding="utf-8")
