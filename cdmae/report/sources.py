"""List the input of the paper's tables and of the model cards.

The workflow calls this module when it plans a run; it imports nothing that takes long.
"""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

from cdmae.config import seeds, systems
from cdmae.config.schema import Config
from cdmae.layout import place

EXHIBITS = Path(__file__).with_name("paper") / "exhibits.csv"
TABLES = tuple(row["name"] for row in csv.DictReader(EXHIBITS.read_text("utf-8").splitlines()))


def exhibit(config: Config, name: str) -> dict[str, Any]:
    """Return the input of a table of the paper.

    Raises `InputError` if the config cannot produce the table. The import takes a second, and
    therefore happens only if a table is requested.
    """
    from cdmae.report.paper.exhibits import wanted

    shown = wanted(name, config)
    names = [each for each in config.systems if seeds.base(each) in shown]
    return {
        "name": name,
        "config": config.values(),
        "systems": names,
    }


def card(config: Config, system: str) -> dict[str, Any]:
    """List the facts for a trained system's model card; `about` lists files to read."""
    entry = config.systems[system]
    encoder = config.encoders[entry.encoder]
    stage = config.stages[entry.stage]
    parts = {
        "stage": stage.values(is_taught=entry.is_taught),
        "encoder": encoder.values(),
        "start": config.starts[encoder.start].values(),
        "importance": config.importance[encoder.importance].values()
        if encoder.masked_by_importance
        else {},
    }
    before = {
        name: config.encoders[name].values() for name in systems.before(config, entry.encoder)
    }
    collections = {part.get("collection") for part in (*parts.values(), *before.values())}
    used = [name for name in config.collections if name in collections]
    return {
        "name": system,
        "system": entry.values(),
        "objective": type(encoder).__doc__.splitlines()[0],
        **parts,
        **({"before": before} if before else {}),
        "licence": config.report.licence,
        "languages": list(config.report.languages),
        "collections": {name: config.collections[name].values() for name in used},
        "about": {name: place(config.results, "about", collection=name) for name in used},
        "beside": systems.of_kind(config, "bm25")[:1],
    }
