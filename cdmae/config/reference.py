"""Every setting as a page and as a JSON schema: ``python -m cdmae.config.reference`` writes both into ``config/``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from cdmae import collections
from cdmae.config import schema
from cdmae.config.load import Written
from cdmae.fields import json_schema, reference

INTRODUCTION = """\
# Every setting

Made by `python -m cdmae.config.reference` from `cdmae/config/schema.py`; a test compares. Section numbers are the
paper's, `A` is its appendix, decisions are those of `docs/paper.md`.

| file | what it is |
|---|---|
| `config.yaml` | the default: documentation search on a laptop's CPU, in minutes |
| `smoke.yaml` | the same in a minute and a half |
| `full.yaml` | the same with everything, for a GPU |
| `paper.yaml` | the paper: MS MARCO, TREC DL, BEIR |
| `recipes/` | published recipes of other pre-trainings, each over `paper.yaml` |
| `paper-ablations.yaml` | what the paper's tables 4 and 5 and its figure 4 need, over `paper.yaml` |
| `ablations.yaml` | the paper's ablations, over the default |
| `objectives.yaml` | the paper's competitors, trained by the same trainer, over the default |
| `collection.yaml` | a template for a collection of your own with training queries |
| `unlabelled.yaml` | a template for one without |
| `schema.json` | for editors: the first line `# yaml-language-server: $schema=PATH/schema.json` completes keys |

`./run --configfile FILE` lays FILE over `config.yaml`, key by key; null removes an entry, and `standalone: true` in it
leaves `config.yaml` out. What no file says has the default below. A key that is unknown, a value that does not fit and
a name that leads nowhere are refused before any job starts.

Relative paths in a config begin at the checkout, where every job runs, wherever the config file lies; `~` is your home.
"""

SECTIONS = {
    "the top level": (Written, "Beside the sections below."),
    "starts": (schema.Start, "By name. Where encoders start."),
    "importance": (schema.Importance, "By name. Equations 7 and 8."),
    "encoders": (schema.Encoder, "By name. Pre-training; `pretraining` holds defaults for all of them."),
    "stages": (schema.Stage, "By name. Recipes of training; `training` holds defaults for all of them."),
    "systems": (schema.System, "By name. Queries in, ranked passages out; each kind takes its own keys only."),
    "evaluation": (schema.Evaluation, "What every system is measured on."),
    "report": (schema.Report, "The page at the end."),
}


def page() -> str:
    """Return the whole page, Markdown."""
    parts = [INTRODUCTION]
    for name in collections.names():
        text = f"By name. With `source: {name}`; see `cdmae/collections/sources/{name}`."
        parts.append(_section(f"collections, {name}", collections.source(name).Settings, text))
    parts.extend(_section(name, cls, text) for name, (cls, text) in SECTIONS.items())
    return "\n".join(parts)


def _section(name: str, cls: type, text: str) -> str:
    lines = [f"## {name}", "", text, "", "| setting | default | allowed | meaning | source |", "|---|---|---|---|---|"]
    for row in reference(cls):
        unit = f" ({row['unit']})" if row["unit"] else ""
        cells = [f"`{row['name']}`", f"`{row['default']}`", row["allowed"], row["meaning"] + unit, row["source"]]
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines) + "\n"


def editor_schema() -> dict[str, Any]:
    """Return the JSON schema of a config file: it may leave out any key, and null removes what another file has."""
    sources = [json_schema(collections.source(name).Settings) for name in collections.names()]
    for name, source in zip(collections.names(), sources, strict=True):
        source["properties"]["source"] = {"const": name, "type": "string"}
    rules = json_schema(Written)
    rules["properties"]["collections"]["additionalProperties"] = {"anyOf": sources}
    return _removable(rules)


def _removable(rule: Any) -> Any:
    """Allow null for everything that has a name of its own, and leave out the titles that pydantic adds."""
    if isinstance(rule, list):
        return [_removable(part) for part in rule]
    if not isinstance(rule, dict):
        return rule
    rule = {key: _removable(part) for key, part in rule.items() if key != "title" or isinstance(part, dict)}
    if isinstance(rule.get("additionalProperties"), dict):
        rule["additionalProperties"] = {"anyOf": [rule["additionalProperties"], {"type": "null"}]}
    return rule


if __name__ == "__main__":
    folder = Path(__file__).parents[2] / "config"
    (folder / "README.md").write_text(page(), encoding="utf-8")
    (folder / "schema.json").write_text(json.dumps(editor_schema(), indent=1) + "\n", encoding="utf-8")
