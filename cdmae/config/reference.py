"""Every setting as a page: ``python -m cdmae.config.reference > config/README.md``, from the schema."""

from __future__ import annotations

from cdmae import collections
from cdmae.config import schema
from cdmae.fields import reference

INTRODUCTION = """\
# Every setting

Made by `python -m cdmae.config.reference > config/README.md` from `cdmae/config/schema.py`; a test compares. Section
numbers are the paper's, `A` is its appendix, decisions are those of `DECISIONS.md`.

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

`./run --configfile FILE` lays FILE over `config.yaml`, key by key; null removes an entry, and `standalone: true` in it
leaves `config.yaml` out. What no file says has the default below. A key that is unknown, a value that does not fit and
a name that leads nowhere are refused before any job starts.

Relative paths in a config begin at the checkout, where every job runs, wherever the config file lies; `~` is your home.
"""

SECTIONS = {
    "the top level": (schema.Config, "`standalone`, in an overlay: leave `config.yaml` out."),
    "starts": (schema.Start, "By name. Where encoders start."),
    "importance": (schema.Importance, "By name. Equations 7 and 8."),
    "encoders": (schema.Encoder, "By name. Pre-training; `pretraining` holds defaults for all of them."),
    "stages": (schema.Stage, "By name. Recipes of training; `training` holds defaults for all of them."),
    "systems": (schema.System, "By name. Queries in, ranked passages out; each kind takes its own keys only."),
    "evaluation": (schema.Evaluation, "What every system is measured on."),
    "report": (schema.Report, "The page at the end."),
}


def page() -> str:
    """The whole page, Markdown."""
    parts = [INTRODUCTION]
    for name in collections.names():
        text = f"By name. With `source: {name}`; see `cdmae/collections/{name}`."
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


if __name__ == "__main__":
    print(page(), end="")
