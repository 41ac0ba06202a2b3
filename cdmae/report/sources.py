"""List the results that the report, the paper's tables and the model cards read, by name.

The workflow calls this module when it plans a run; it imports nothing that takes long.
"""

from __future__ import annotations

from typing import Any

from cdmae.config import maskings, seeds, splits, systems
from cdmae.config.schema import Config
from cdmae.layout import place

TABLES = (
    "table_main",
    "table_stages",
    "table_beir",
    "table_nanobeir",
    "table_projection",
    "table_corpus",
    "table_negatives",
)


def facts(config: Config) -> dict[str, Any]:
    """List the facts that the report reads; the report's rule adds versions and times.

    Measures cover every seed; all other facts about a training come from the first seed.
    """
    trained = seeds.first(systems.trained(config))
    roles = splits.roles(config)
    shown = roles.deciding if roles else None
    # without those whose training queries a teacher labels: they have no judgments
    judged = [name for name in trained if not config.stages[config.systems[name].stage].labels]

    def at(what: str, **names: str) -> str:
        return place(config.results, what, **names)

    return {
        "config": config.values(),
        "collections": {name: at("collection", collection=name) for name in config.collections},
        "measures": {name: at("measures", system=name) for name in config.systems},
        "encoders": {name: at("encoder", encoder=name) for name in seeds.first(config.encoders)},
        "trained": {name: at("trained", system=name) for name in trained},
        "masked_terms": {
            name: at("masked_terms", encoder=name) for name in systems.masked_by_importance(config)
        },
        "benchmarks": at("benchmarks"),
        "logs": at("logs"),
        "mined": {
            name: _negatives_of(config, name) for name in judged if config.systems[name].searches
        },
        "teachers": {
            name: at("teacher", system=systems.taught_like(config, name))
            for name in seeds.first(systems.taught(config))
            if name in judged
        },
        "runs": {
            name: at("run", system=name, collection=shown.collection, split=shown.name)
            for name in (seeds.first(config.systems) if shown else ())
        },
        "fusions": {name: at("fusion", system=name) for name in systems.of_kind(config, "fusion")},
        "sparsity": {
            name: at("sparsity", system=name) for name in seeds.first(systems.sparse(config))
        },
        "indexes": {
            name: at("bm25", system=name, collection=shown.collection)
            for name in (systems.of_kind(config, "bm25") if shown else ())
        },
        "deciding": list(roles.deciding) if roles else [],
        "reported": list(roles.reported) if roles else [],
    }


def _negatives_of(config: Config, system: str) -> str:
    collection, split = systems.trains_on(config, system)
    by = config.systems[system].negatives
    return place(config.results, "negatives", system=by, collection=collection, split=split)


def exhibit(config: Config, name: str) -> dict[str, Any]:
    """List the results behind a table of the paper.

    Raises `InputError` if the config cannot produce the table. The import takes a second, and
    therefore happens only if a table is requested.
    """
    from cdmae.report.paper.exhibits import wanted

    on = config.results
    shown = wanted(name, config.values())
    collections = config.evaluation.collections
    return {
        "config": config.values(),
        "collections": {each: place(on, "collection", collection=each) for each in collections},
        "measures": {
            each: place(on, "measured", system=each)
            for each in config.systems
            if seeds.base(each) in shown
        },
    }


def card(config: Config, system: str) -> dict[str, Any]:
    """List the facts for a trained system's model card; `about` lists files to read."""
    entry = config.systems[system]
    encoder = config.encoders[entry.encoder]
    stage = config.stages[entry.stage]
    parts = {
        "stage": stage.values(**entry.teachers()),
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
        "pretraining": {
            "words": encoder.in_words,
            "masked": maskings.in_words(encoder.maskings[-1]) if encoder.maskings else "",
        },
        **parts,
        **({"before": before} if before else {}),
        "licence": config.report.licence,
        "languages": list(config.report.languages),
        "collections": {name: config.collections[name].values() for name in used},
        "about": {name: place(config.results, "about", collection=name) for name in used},
        "beside": systems.beside(config, system),
    }
