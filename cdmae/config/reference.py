"""Every setting as a page and as a JSON schema: ``python -m cdmae.config.reference`` writes both into ``config/``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jinja2

from cdmae import collections
from cdmae.config import schema
from cdmae.config.load import Written
from cdmae.fields import allowed, json_schema, show, whole


def page() -> str:
    """Return the whole page, Markdown: the template `settings.md.j2`, filled."""
    environment = jinja2.Environment(trim_blocks=True, keep_trailing_newline=True, undefined=jinja2.StrictUndefined)
    environment.filters |= {"show": show, "allowed": allowed}
    template = environment.from_string(Path(__file__).with_name("settings.md.j2").read_text(encoding="utf-8"))
    sources = {name: _rules(collections.source(name).Settings) for name in collections.names()}
    named = {name: _rules(cls) for name, cls in schema.SECTIONS.items() if name != "collections"}
    single = {"evaluation": _rules(schema.Evaluation), "report": _rules(schema.Report)}
    return template.render(sources=sources, top=_rules(Written), **named, **single)


def _rules(cls: type) -> dict[str, dict[str, Any]]:
    """Map the settings of a class to their rules, but for those that are sections of their own."""
    rules = json_schema(cls)
    return {name: whole(rule, rules) for name, rule in rules["properties"].items() if "description" in rule}


def editor_schema() -> dict[str, Any]:
    """Return the JSON schema of a config file: it may leave out any key, and null removes what another file has."""
    sources = [json_schema(collections.source(name).Settings) for name in collections.names()]
    for name, source in zip(collections.names(), sources, strict=True):
        source["properties"]["source"] = {"const": name, "type": "string"}
    rules = json_schema(Written)
    rules["properties"]["collections"]["additionalProperties"] = {"anyOf": sources}
    return _removable(rules)


def _removable(rule: Any) -> Any:
    """Allow null for every key, and leave out the titles that pydantic adds."""
    if isinstance(rule, list):
        return [_removable(part) for part in rule]
    if not isinstance(rule, dict):
        return rule
    rule = {key: _removable(part) for key, part in rule.items() if key != "title" or isinstance(part, dict)}
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
    folder = Path(__file__).parents[2] / "config"
    (folder / "README.md").write_text(page(), encoding="utf-8")
    (folder / "schema.json").write_text(json.dumps(editor_schema(), indent=1) + "\n", encoding="utf-8")
