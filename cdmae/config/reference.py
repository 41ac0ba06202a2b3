"""Document every setting in ``config/README.md``, and in a JSON schema.

Run ``python -m cdmae.config.reference``.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import jinja2

from cdmae import collections
from cdmae.config import schema
from cdmae.config.load import DEFAULTS, Written
from cdmae.fields import allowed, json_schema, kinds_of, show, some_of, tags_of, whole


def page() -> str:
    """Render the whole page as Markdown from the template `settings.md.j2`."""
    environment = jinja2.Environment(
        trim_blocks=True, keep_trailing_newline=True, undefined=jinja2.StrictUndefined
    )
    environment.filters |= {"show": show, "allowed": allowed}
    template = environment.from_string(
        Path(__file__).with_name("settings.md.j2").read_text(encoding="utf-8")
    )
    sources = {name: _rules(collections.source(name).Settings) for name in collections.names()}
    named = {
        name: _kinds(section) for name, section in schema.SECTIONS.items() if name != "collections"
    }
    single = {"evaluation": _rules(schema.Evaluation), "report": _rules(schema.Report)}
    return template.render(sources=sources, top=_rules(Written), **named, **single)


def _rules(kind: type) -> dict[str, dict[str, Any]]:
    """Map the settings of a class, other than sections, to their rules."""
    rules = json_schema(kind)
    return {
        name: whole(rule, rules) for name, rule in rules["properties"].items() if "source" in rule
    }


def _kinds(section: Any) -> dict[str, dict[str, Any]]:
    """Return the rules of all settings in a section, and of the settings that select a class.

    `rules` maps each setting to its rule; if only some kinds have the setting, its description
    begins with their names. `tags` maps each selecting setting to a rule per value.
    """
    kinds = {kind: _rules(kind) for kind in kinds_of(section)}
    tags = {
        tag: {rules[tag]["const"]: rules[tag] for rules in kinds.values() if tag in rules}
        for tag in tags_of(section)
    }
    least = set.intersection(*map(set, kinds.values()))
    most = [rules for rules in kinds.values() if len(kinds) == 1 or rules.keys() > least]
    found: dict[str, Any] = {}
    for key in dict.fromkeys(key for rules in kinds.values() for key in rules if key not in tags):
        names = [_name(rules, tags) for rules in most if key in rules]
        rule = next(rules[key] for rules in kinds.values() if key in rules)
        only = "" if len(names) == len(most) else f"{', '.join(names)}: "
        found[key] = rule | {"description": only + rule["description"]}
    return {"rules": found, "tags": tags}


def _name(rules: dict[str, Any], tags: Iterable[str]) -> str:
    """Name a kind by the values of its selecting settings, such as ``retriever dense``."""
    return " ".join(rules[tag]["const"] for tag in tags if tag in rules)


def editor_schema() -> dict[str, Any]:
    """Return the JSON schema of a config file: every key is optional, and null removes a key.

    An entry may have the settings of all kinds, because another file may set its kind.
    """
    sources = [json_schema(collections.source(name).Settings) for name in collections.names()]
    for name, source in zip(collections.names(), sources, strict=True):
        source["properties"]["source"] = {"const": name, "type": "string"}
        # no further key, except one with null, which removes a setting of another file's source
        source["additionalProperties"] = {"not": {}}
    rules = json_schema(Written)
    rules["properties"]["collections"]["additionalProperties"] = {"anyOf": sources}
    rules["$defs"] = {
        name: rules["$defs"][name] for name in ("Start", "Importance", "Evaluation", "Report")
    }
    for section, kinds in schema.SECTIONS.items():
        if tags_of(kinds):
            rules["$defs"][section] = json_schema(some_of(kinds))
            rules["properties"][section]["additionalProperties"] = {"$ref": f"#/$defs/{section}"}
    for section, defaults in DEFAULTS.items():
        rules["properties"][defaults]["$ref"] = f"#/$defs/{section}"
    return _removable(rules)


LEFT_OUT = ("title", "required")


def _removable(rule: Any) -> Any:
    """Allow null for every key, require no key, and omit the titles that pydantic adds."""
    if isinstance(rule, list):
        return [_removable(part) for part in rule]
    if not isinstance(rule, dict):
        return rule
    rule = {
        key: _removable(part)
        for key, part in rule.items()
        if key not in LEFT_OUT or isinstance(part, dict)
    }
    if isinstance(rule.get("additionalProperties"), dict):
        rule["additionalProperties"] = {"anyOf": [rule["additionalProperties"], {"type": "null"}]}
    for part in rule.get("properties", {}).values():
        if "$ref" in part:
            part["anyOf"] = [{"$ref": part.pop("$ref")}, {"type": "null"}]
        if "enum" in part:
            part["enum"].append(None)
        if isinstance(part.get("type"), str) and "const" not in part:
            part["type"] = [part["type"], "null"]
    return rule


if __name__ == "__main__":
    checkout = Path(__file__).parents[2]
    (checkout / "config/README.md").write_text(page(), encoding="utf-8")
    (checkout / "workflow/schemas/config.schema.json").write_text(
        json.dumps(editor_schema(), indent=1) + "\n", encoding="utf-8"
    )
