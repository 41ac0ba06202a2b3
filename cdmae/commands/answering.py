"""Systems of a finished run that can answer new queries, and the files that they read."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from cdmae.commands.configs import existing
from cdmae.config import seeds, systems
from cdmae.config.schema import Config
from cdmae.errors import InputError
from cdmae.fields import parse, show
from cdmae.files import read_json
from cdmae.layout import place

if TYPE_CHECKING:
    from cdmae.serving.engine import Engine


def askable(config: Config) -> list[str]:
    """List the systems that can answer new queries; the vectors of replicas are not kept.

    Raises `InputError` if the config has no such system.
    """
    asked = [name for name in seeds.first(config.systems) if can_be_asked(config, name)]
    if not asked:
        raise InputError(
            "the config has no system that can answer queries; pass the --configfile of a run "
            "that has one, or add a system of kind bm25 or retriever"
        )
    return asked


def can_be_asked(config: Config, name: str) -> bool:
    """Return whether a system can answer new queries; third-party runs and their fusions cannot."""
    system = config.systems[name]
    return bool(system.answered_by) and all(can_be_asked(config, part) for part in system.parts())


def best_system(config: Config, names: list[str]) -> str:
    """Return the system that the report recommends, among `names`."""
    from cdmae.report.facts import Facts

    for name in names:
        existing(place(config.results, "measures", system=name))
    return Facts(parse(Config, config.values())).choice(names).pick


def described(config: Config, name: str, collection: str) -> dict[str, Any]:
    """Describe a system for `cdmae.retrieval.asking`: its settings, and the folders it reads."""
    system = config.systems[name]
    reads = {}

    def read(key: str, what: str, **names: str) -> None:
        names = {"collection": collection, "system": name, **names}
        reads[key] = existing(place(config.results, what, **names), kept=what == "vectors")

    if system.kind == "bm25":
        read("index", "bm25")
    if system.kind in ("retriever", "head", "reranker"):
        read("model", "trained", system=systems.model_of(config, name))
    if system.kind == "reranker":
        owner = config.owner(collection)
        start = config.encoders[system.encoder].start
        read("tokens", "tokens", start=start, collection=owner)
    if system.encoded_by:
        read("vectors", "vectors")
        check_encoded(config, name, Path(reads["vectors"]).parents[1])
    if system.kind == "fusion":
        about = read_json(existing(place(config.results, "fusion", system=name)))
        if about["systems"] != list(system.of):
            raise InputError(f"{name} was fused from other systems; use ./run to update it")
        reads["weights"] = about["weights"]
    return {
        **system.values(),
        "name": name,
        "answered_by": system.answered_by,
        "encoded_by": system.encoded_by,
        "parts": [described(config, part, collection) for part in system.parts()],
        **reads,
    }


def check_encoded(config: Config, name: str, folder: Path) -> None:
    """Refuse to compare queries with vectors that were encoded with other settings.

    folder: of all vectors of the system. The keys of their pieces (`cdmae.retrieval.vectors`)
    record the settings of the encoder; results without pieces are not checked.
    """
    row = systems.systems(config)[name]
    keys = [read_json(path)[0] for path in sorted(folder.glob(".*.pieces/*/key.json"))]
    if keys and not any(key.items() <= row.items() for key in keys):
        other = [f"{key}: {show(value)}" for key, value in keys[0].items() if row.get(key) != value]
        raise InputError(
            f"{name} was searched with other settings ({', '.join(other)}); use ./run to update it"
        )


def engine_of(
    config: Config, names: list[str], collections: list[str], *, keep: bool = True
) -> Engine:
    """Make the engine that answers queries with systems of a run.

    keep: whether models and indexes stay in memory.
    """
    from cdmae.serving.engine import Engine

    folders = {
        name: Path(existing(place(config.results, "collection", collection=name)))
        for name in collections
    }
    return Engine(
        {other: {name: described(config, name, other) for name in names} for other in collections},
        folders,
        depth=config.evaluation.depth,
        lengths=config.evaluation.lengths,
        keep=keep,
    )


def importance_files(config: Config, encoder: str) -> tuple[Path, Path]:
    """Return an encoder's table of importance and the folder of its tokenizer."""
    entry = config.encoders[encoder]
    table = existing(str(Path(config.results, systems.importance_folder(entry))))
    tokenizer = existing(place(config.results, "tokenizer", start=entry.start))
    return Path(table), Path(tokenizer)
