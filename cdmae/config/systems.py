"""Look up entries of a config; their names are the edges of the workflow's graph."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from cdmae.config import seeds

if TYPE_CHECKING:
    from cdmae.config.encoders import Encoder
    from cdmae.config.schema import Config

# columns of rules for several kinds, as settings of some of these
OF_SOME = ("after", "candidates", "in_batch_teacher", "joint_teacher")
WHOLE = 100_000  # passages per query that are read from a teacher's run: the maximum depth
Row = dict[str, Any]


def encoders(config: Config) -> dict[str, Row]:
    """Map each encoder to its values for the rules; an empty value means that there is no input.

    corpus: the pre-training collection; importance_folder: the importance or the n-grams that its
    masks read, below the results; checkpoint, generator: the files of models in local folders.
    """
    return {
        name: {
            "start": encoder.start,
            "corpus": encoder.collection,
            "after": encoder.after,
            "importance_folder": importance_folder(encoder),
            "checkpoint": model_files(config.starts[encoder.start].checkpoint),
            "generator": model_files(encoder.generator),
        }
        for name, encoder in config.encoders.items()
    }


def importance_folder(encoder: Encoder) -> str:
    """Return the folder that an encoder's masks read, below the results; empty for none."""
    if not encoder.reads_importance:
        return ""
    what = "importance" if encoder.masked_by_importance else "ngrams"
    return f"{what}/{encoder.importance}/{encoder.start}/{encoder.collection}"


def collections(config: Config) -> dict[str, Row]:
    """Map each collection to its values for the rules; an empty value means there is no input.

    files: of its source. shared: the collection whose passages it has. written: the file of texts
    that another job writes, below the results. writer: the files of the model that writes them.
    """
    rows = {}
    for name, collection in config.collections.items():
        source = collection.settings
        rows[name] = {
            "files": list(map(str, collection.ask(name, "depends"))),
            "shared": source.shared,
            "written": f"texts/{name}.tsv" if source.writer else "",
            "writer": model_files(source.writer),
        }
    return rows


def starts(config: Config) -> dict[str, Row]:
    """Map each entry of `starts` to its values for the rules: a collection, or files of a model."""
    return {
        name: {"collection": start.collection, "checkpoint": model_files(start.checkpoint)}
        for name, start in config.starts.items()
    }


def systems(config: Config) -> dict[str, Row]:
    """Map each system to its values for the rules: its settings and the columns of its kind.

    network: the system with the trained model in use. start: the entry of `starts` with its
    tokenizer. model_files: of a published model in a local folder.
    """
    rows = {}
    for name, system in config.systems.items():
        network = model_of(config, name)
        rows[name] = {
            "network": network,
            "start": start_of(config, network) if network else "",
            "model_files": model_files(system.model),
            "encoded_by": system.encoded_by,
            **{key: getattr(system, key) for key in OF_SOME},
            **system.columns(config, name),
            **system.values(),
        }
    return rows


def model_files(model: str) -> list[str]:
    """List the files of a model in a local folder; the list is empty for a name at the hub."""
    folder = Path(model)
    if not model or not folder.is_dir():
        return []
    return sorted(str(path) for path in folder.iterdir() if not path.name.startswith("."))


def targets(config: Config) -> list[tuple[str, str]]:
    """List the (collection, split) pairs of the evaluation, in the order of the config."""
    return [
        (name, split) for name, splits in config.evaluation.collections.items() for split in splits
    ]


def of_kind(config: Config, *kinds: str) -> list[str]:
    """List the systems of some kinds, in the order of the config."""
    return [name for name, system in config.systems.items() if system.kind in kinds]


def trained(config: Config) -> list[str]:
    """List the systems with a model of their own, in the order of the config."""
    return [name for name, system in config.systems.items() if system.trained]


def model_of(config: Config, name: str) -> str:
    """Return the system with the trained model in use: itself or another; or ""."""
    system = config.systems[name]
    if system.kind == "head":
        return system.of
    return name if system.trained else ""


def learns(config: Config, name: str) -> bool:
    """Return whether a system or one of its parts is trained, so that a seed changes its runs."""
    system = config.systems[name]
    return system.trained or any(learns(config, part) for part in system.parts())


def start_of(config: Config, system: str) -> str:
    """Name the entry of `starts` that provides a trained system's tokenizer."""
    return config.encoders[config.systems[system].encoder].start


def trains_on(config: Config, system: str) -> tuple[str, str]:
    """Name the (collection, split) that a trained system is trained on."""
    stage = config.stages[config.systems[system].stage]
    return stage.collection, stage.split


def taught(config: Config) -> list[str]:
    """List the students that a reranker teaches; each gets its own scores."""
    rerankers = of_kind(config, "reranker")
    return [name for name, system in config.systems.items() if system.teacher in rerankers]


def taught_like(config: Config, student: str) -> str:
    """Return the first student with the same candidates and teacher: they share scores."""
    return next(name for name in taught(config) if _drawn(config, name) == _drawn(config, student))


def _drawn(config: Config, student: str) -> tuple[Any, ...]:
    """Return the inputs of a teacher's scores: the teacher and the candidates."""
    system = config.systems[student]
    stage = config.stages[system.stage]
    return system.teacher, system.negatives, stage.collection, stage.drawn()


def mined(config: Config) -> dict[tuple[str, str, str], int]:
    """Map the runs over training queries, (system, collection, split), to their greatest depth.

    A teacher's run is read to its end if it comes from files. Any other teacher searches to the
    depth of the evaluation. Runs for a fusion also have the depth of the evaluation, because the
    depth affects how scores are scaled.
    """
    depths: dict[tuple[str, str, str], int] = {}

    def mine(name: str, on: tuple[str, str], depth: int) -> None:
        depths[name, *on] = max(depths.get((name, *on), 0), depth)
        for part in config.systems[name].parts():
            mine(part, on, config.evaluation.depth)

    scored = taught(config)
    for name in trained(config):
        system, on = config.systems[name], trains_on(config, name)
        mine(system.negatives, on, config.stages[system.stage].depth)
        if system.teacher and name not in scored:
            from_files = config.systems[system.teacher].kind == "run"
            mine(system.teacher, on, WHOLE if from_files else config.evaluation.depth)
    return depths


def keeps_vectors(config: Config, name: str) -> bool:
    """Return whether a system's index or its vectors are kept on disk after its search.

    A replica keeps no vectors, unless its evaluation links those of a search for negatives.
    """
    if config.systems[name].kind == "bm25":
        return True
    is_mined = any(source == name for source, *_ in mined(config))
    return config.evaluation.keep_vectors and (name == seeds.base(name) or is_mined)


def masked_by_importance(config: Config) -> list[str]:
    """List the encoders of the first seed that mask by importance."""
    names = seeds.first(config.encoders)
    return [name for name in names if config.encoders[name].masked_by_importance]


def needed_encoders(config: Config) -> list[str]:
    """List the encoders that a run makes: the first seed's, and all that trained systems need."""
    needed = set(seeds.first(config.encoders))
    for system in trained(config):
        encoder = config.systems[system].encoder
        needed.update([encoder, *before(config, encoder)])
    return [name for name in config.encoders if name in needed]


def before(config: Config, encoder: str) -> list[str]:
    """List the encoders that an encoder continues from, the latest first."""
    name = config.encoders[encoder].after
    return [name, *before(config, name)] if name else []
