"""What the config's entries demand of each other: every name leads somewhere, to the right kind, without a cycle.

An entry takes only the keys of its kind. Written out in the entry, a key without effect is refused; inherited from
the defaults of a section, it does not apply.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cdmae import collections
from cdmae.config import pretrained
from cdmae.errors import InputError
from cdmae.fields import known, show, suggestion

if TYPE_CHECKING:
    from ir_measures import Measure

    from cdmae.config.schema import Config, Encoder, Start, System

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")
SPLIT = re.compile(r"\w[\w.-]*")  # part of paths, too; MS MARCO has a dev.small
LONGEST = 64  # letters of a name: a path may join three of them, and file systems take 255 bytes between slashes
ROOT = Path(__file__).resolve().parents[2]
SOURCES = (".ci", ".git", ".snakemake", ".venv", "benchmarks", "cdmae", "config", "docs", "envs", "tests", "workflow")
SMALL = 2**24  # bytes of files that are read whenever the config is checked: less than a second
# Of ir_measures, those whose packages are pinned, so that the same one computes a measure everywhere. Accuracy's is
# left out: it divides by zero where all that a query found is relevant.
PROVIDERS = ("pytrec_eval", "msmarco", "judged", "compat")

RANDOM_START = (
    "collection", "vocabulary", "layers", "hidden", "heads", "feedforward", "positions", "initializer", "dropout",
)  # fmt: skip
NOT_PRETRAINED = ("start", "objective", "seed")  # the keys of an encoder with objective none
READ_IMPORTANCE = ("importance", "pmi_span")  # maskings
MASKING = ("decoder_ratio", "sigma", "max_length")  # what the masks that are shown depend on
SEARCHES = ("bm25", "retriever", "external")  # kinds that search a whole collection, and so can be mined


def pick(values: dict[str, Any], keys: tuple[str, ...]) -> dict[str, Any]:
    """Return the values of some keys, in the order of the schema."""
    return {key: value for key, value in values.items() if key in keys}


def check_name(name: str, section: str) -> None:
    """Refuse a name that cannot be part of a path."""
    if not NAME.fullmatch(name):
        raise InputError(f"{section} has the name {show(name)}; allowed: letters, digits, - and _")
    if len(name) > LONGEST:
        raise InputError(f"{section} has the name {show(name)} of {len(name)} letters; allowed: up to {LONGEST}")


def check(config: Config, values: dict[str, Any]) -> None:
    """Check a parsed config; `values` tells what was written out from what is a default."""
    _check_results(config.results)
    relevant = {name: _check_collection(config, name) for name in config.collections}
    for name, start in config.starts.items():
        _check_start(config, start, f"starts.{name}", values["starts"][name])
    for name, encoder in config.encoders.items():
        _check_encoder(config, encoder, f"encoders.{name}")
    for name, stage in config.stages.items():
        _check_entry(config, f"stages.{name}.collection", stage.collection, "collections")
        _check_split(config, stage.collection, stage.split, f"stages.{name}.split")
        collections.check_batch(
            f"stages.{name}", stage.queries, stage.collection, stage.split, relevant[stage.collection]
        )
    for name, system in config.systems.items():
        _check_system(config, name, system, values["systems"][name])
    check_cycles("systems", {name: list(system.sources().values()) for name, system in config.systems.items()})
    _check_evaluation(config)


def _check_results(results: str) -> None:
    """Refuse a folder that paths of the workflow cannot start with, or in which code lies."""
    what = f"results is {show(results)}"
    if not results.strip() or not results.isprintable() or re.search(r"[\s*?\[\]{}<>]", results):
        raise InputError(f"{what}; allowed: a folder without spaces, wildcards, control characters, < and >")
    if any(len(os.fsencode(part)) > 255 for part in Path(results).parts):
        raise InputError(f"{what}; allowed: up to 255 bytes between two slashes")
    folder = Path(results).resolve()
    if ROOT.is_relative_to(folder):
        raise InputError(f"{what}, in which the checkout lies; allowed: a folder of its own")
    nearest = next(path for path in (folder, *folder.parents) if path.exists())
    if not nearest.is_dir():
        raise InputError(f"{what}, but {nearest} is a file; allowed: a folder")
    for source in SOURCES:
        if folder.is_relative_to(ROOT / source):
            raise InputError(f"{what}, inside {source} of the checkout; allowed: a folder of its own")


def _ask(config: Config, name: str, question: str) -> Any:
    """Ask the source of a collection for its ``splits`` or ``depends``; errors get the path in the config."""
    collection, path = config.collections[name], f"collections.{name}"
    try:
        return getattr(collections.source(collection.source), question)(collection.settings)
    except InputError as error:
        raise InputError(str(error) if str(error).startswith(path) else f"{path}: {error}") from None


def _check_collection(config: Config, name: str) -> dict[str, int]:
    """Ask for the files, and read them where that takes no time; the first job reads large ones anyway.

    Returns by split how many queries have a relevant passage, as far as that is known without the job.
    """
    splits(config, name)
    files = _ask(config, name, "depends")
    for path in files:
        if re.search(r"[{}]", str(path)):
            raise InputError(
                f"collections.{name}: the path {path} has braces, which Snakemake takes for wildcards; rename it"
            )
    if sum(Path(path).stat().st_size for path in files) > SMALL:
        return {}
    collection = config.collections[name]
    return collections.source(collection.source).check(collection.settings, name)


def _check_entry(config: Config, path: str, name: str, section: str) -> None:
    """Refuse a name that leads to no entry of a section."""
    if not name:
        raise InputError(f"{path} is missing: the name of an entry of {section}")
    if name not in getattr(config, section):
        raise InputError(f"{path} is {show(name)}; {suggestion(name, getattr(config, section))}")


def _check_most(path: str, value: int, most: int | None, whose: str, where: str = "") -> None:
    """Refuse a number above `most`, which may be unknown before a job."""
    if most is not None and value > most:
        raise InputError(f"{path} is {value}; allowed{where}: up to {most}, {whose}")


def refuse_others(values: dict[str, Any], allowed: Iterable[str], path: str, what: str) -> None:
    """Refuse values with other keys than those that go with `what`."""
    for key in values:
        if key not in allowed:
            raise InputError(f"{path}.{key} does not go with {what}; allowed: {', '.join(allowed)}")


def _check_start(config: Config, start: Start, path: str, values: dict[str, Any]) -> None:
    if start.checkpoint:
        refuse_others(values, ("checkpoint",), path, "checkpoint")
        pretrained.check(start.checkpoint, f"{path}.checkpoint")
    elif not start.collection:
        raise InputError(f"{path} has neither checkpoint nor collection; allowed: one of them")
    else:
        _check_entry(config, f"{path}.collection", start.collection, "collections")


def _check_length(config: Config, start: str, length: int, path: str) -> None:
    """Refuse a length beyond the positions of a start, as far as they are known before the job that loads it."""
    settings = config.starts[start]
    if settings.checkpoint:
        _check_most(path, length, pretrained.positions(settings.checkpoint), f"the positions of starts.{start}")
    else:
        _check_most(path, length, settings.positions, f"starts.{start}.positions")


def _check_encoder(config: Config, encoder: Encoder, path: str) -> None:
    _check_entry(config, f"{path}.start", encoder.start, "starts")
    if not encoder.pretrained:
        return
    if encoder.after and (start := config.encoders[encoder.after].start) != encoder.start:
        raise InputError(
            f"{path}.start is {encoder.start}; allowed: {start}, that of encoders.{encoder.after}, where it begins"
        )
    if encoder.snapshot_of:
        whole = config.encoders[encoder.snapshot_of]
        last = whole.take_step or whole.steps or None
        _check_most(f"{path}.take_step", encoder.take_step, last, f"the last step of encoders.{encoder.snapshot_of}")
    _check_entry(config, f"{path}.collection", encoder.collection, "collections")
    if encoder.reads_importance:
        _check_entry(config, f"{path}.importance", encoder.importance, "importance")
        unit = config.importance[encoder.importance].unit
        if "pmi_span" in encoder.maskings and unit != "word":
            raise InputError(
                f"{path}.importance is {encoder.importance}, whose unit is {unit}; allowed for pmi_span: one of words"
            )
    if encoder.objective == "simlm" and encoder.decoder_ratio < encoder.encoder_ratio:
        raise InputError(
            f"{path}.decoder_ratio is {encoder.decoder_ratio}; allowed with objective simlm, whose decoder masks all "
            f"that the encoder masks: from encoder_ratio, {encoder.encoder_ratio}"
        )
    _check_layers(config, encoder, path)
    if encoder.generator:
        _check_generator(config, encoder, path)
    _check_length(config, encoder.start, encoder.max_length, f"{path}.max_length")


def _check_layers(config: Config, encoder: Encoder, path: str) -> None:
    """Refuse more layers of the encoder than its start has, where that is known before the job that loads it."""
    start, name = config.starts[encoder.start], f"starts.{encoder.start}"
    layers = pretrained.number(start.checkpoint, "num_hidden_layers") if start.checkpoint else start.layers
    if encoder.objective == "simlm":
        copied = " with objective simlm, whose decoder begins as a copy of the last layers"
        _check_most(f"{path}.decoder_layers", encoder.decoder_layers, layers, f"those of {name}", copied)
    if encoder.objective in ("condenser", "cocondenser") and layers is not None:
        _check_most(f"{path}.early_layers", encoder.early_layers, layers - 1, f"{name} has {layers} layers")


def _check_generator(config: Config, encoder: Encoder, path: str) -> None:
    """Refuse a generator that cannot have the word-pieces of the start; its job compares them one by one."""
    generator, checkpoint = encoder.generator, config.starts[encoder.start].checkpoint
    pretrained.check(generator, f"{path}.generator")
    what = f"{path}.generator is {show(generator)}"
    if not checkpoint:
        raise InputError(
            f"{what}, but starts.{encoder.start} has word-pieces of its own; allowed: a generator for a start with a "
            "checkpoint"
        )
    sizes = [pretrained.number(model, "vocab_size") for model in (generator, checkpoint)]
    if None not in sizes and sizes[0] != sizes[1]:
        raise InputError(
            f"{what}, which knows {sizes[0]:,} word-pieces; allowed: one with the {sizes[1]:,} of "
            f"starts.{encoder.start}"
        )
    positions = pretrained.positions(generator)
    _check_most(f"{path}.max_length", encoder.max_length, positions, f"the positions of the generator {generator}")


def splits(config: Config, collection: str) -> dict[str, bool]:
    """Return the splits of a collection, and whether they have judgments."""
    return dict(_ask(config, collection, "splits"))


def _check_split(config: Config, collection: str, split: str, path: str) -> None:
    judged = splits(config, collection)
    if split not in judged:
        raise InputError(f"{path} is {show(split)}; {suggestion(split, judged)} (splits of collections.{collection})")
    if not SPLIT.fullmatch(split):
        raise InputError(
            f"{path} is {show(split)}, which cannot be part of a path; allowed: splits of collections.{collection} "
            "named by letters, digits, ., - and _"
        )
    if not judged[split]:
        names = ", ".join(name for name in judged if judged[name]) or "none"
        raise InputError(f"{path} is {show(split)}, which has no judgments; allowed: {names}")


def _check_system(config: Config, name: str, system: System, values: dict[str, Any]) -> None:
    path = f"systems.{name}"
    refuse_others(values, ("kind", *known(type(system), system.kind)), path, f"kind {system.kind}")
    needed = known(type(system), system.kind, needed=True)
    for key in needed:
        if not getattr(system, key):
            raise InputError(f"{path}.{key} is missing; kind {system.kind} needs {', '.join(needed)}")
    for key, source in system.sources().items():
        _check_entry(config, f"{path}.{key}", source, "systems")
        if source == name:
            raise InputError(f"{path}.{key} is {name}: a system cannot be made from its own run")
    if system.kind in ("retriever", "reranker"):
        _check_trained(config, system, path)
    if system.kind == "reranker" and system.depth > config.evaluation.depth:
        raise InputError(f"{path}.depth is {system.depth}; allowed: up to evaluation.depth, {config.evaluation.depth}")
    if system.kind == "fusion" and len(set(system.of)) < max(2, len(system.of)):
        raise InputError(f"{path}.of is {show(list(system.of))}; allowed: at least two systems, each once")
    if system.kind == "external":
        pretrained.check_retriever(system.model, f"{path}.model")


def _check_trained(config: Config, system: System, path: str) -> None:
    _check_entry(config, f"{path}.encoder", system.encoder, "encoders")
    _check_entry(config, f"{path}.stage", system.stage, "stages")
    stage = config.stages[system.stage]
    _check_kind(f"{path}.stage", system.stage, config.stages, (system.kind,), "stage")
    _check_kind(f"{path}.negatives", system.negatives, config.systems, SEARCHES, "system")
    _check_triples(config, system.negatives, stage.collection)
    if system.teacher:
        _check_kind(f"{path}.teacher", system.teacher, config.systems, ("reranker",), "system")
    start = config.encoders[system.encoder].start
    lengths = ("query_length", "passage_length") if system.kind == "retriever" else ("max_length",)
    for key in lengths:
        _check_length(config, start, getattr(stage, key), f"stages.{system.stage}.{key}")


def _check_triples(config: Config, name: str, collection: str) -> None:
    """Refuse published triples of a collection that has none of that name."""
    triples, entry = config.systems[name].triples, config.collections[collection]
    if not triples:
        return
    source = collections.source(entry.source)
    allowed = source.triples(entry.settings) if hasattr(source, "triples") else {}
    if triples not in allowed:
        remedy = suggestion(triples, allowed) if allowed else f"collections.{collection} has none; leave it out"
        raise InputError(f"systems.{name}.triples is {show(triples)}; {remedy}")


def _check_kind(path: str, name: str, entries: dict[str, Any], kinds: tuple[str, ...], what: str) -> None:
    """Refuse an entry, named at `path`, of other kinds than `kinds`; `what` calls the entries of its section."""
    if entries[name].kind not in kinds:
        fitting = ", ".join(other for other, entry in entries.items() if entry.kind in kinds) or "there is none"
        raise InputError(
            f"{path} is {name}, of kind {entries[name].kind}; allowed: a {what} of kind {' or '.join(kinds)} "
            f"({fitting})"
        )


def check_cycles(section: str, needs: dict[str, list[str]]) -> None:
    """Refuse entries of a section that need each other in a circle; `needs` names what an entry is made from."""
    try:
        TopologicalSorter(needs).prepare()
    except CycleError as error:
        circle = error.args[1][:0:-1]  # its last name is its first one
        begin = circle.index(next(name for name in needs if name in circle))
        names = " -> ".join([*circle[begin:], *circle[: begin + 1]])
        raise InputError(f"{section} need each other in a circle: {names}; allowed: chains that end") from None


def read_measure(name: str) -> Measure:
    """Parse a measure of the config; raises `InputError` for one that ir_measures does not compute as a mean."""
    import ir_measures  # 45 ms that few jobs need to pay

    try:
        measure = ir_measures.parse_measure(name)
        written = str(measure)
        known = any(ir_measures.providers.registry[provider].supports(measure) for provider in PROVIDERS)
        numbers = [measure.params.get(key, 1) for key in ("cutoff", "rel")]
        gains = [number for pair in measure.params.get("gains", {}).items() for number in pair]
        whole = all(type(number) is int for number in numbers + gains) and 1 <= min(numbers) <= max(numbers) <= 100_000
        usable = known and whole and isinstance(measure.aggregator(), ir_measures.MeanAgg)  # counts are summed
    except Exception:  # its parser raises whatever Python does
        usable = False
    if not usable:
        raise InputError(
            f"evaluation.measures has {show(name)}; allowed: what {', '.join(PROVIDERS[:-1])} and {PROVIDERS[-1]} of "
            "ir_measures compute as a mean, such as nDCG@10, R(rel=2)@1000 or Judged@10"
        )
    if written != name.replace("(rel=1)", ""):  # which has an effect where evaluation.relevant says another grade
        raise InputError(f"evaluation.measures has {show(name)}; allowed: {written}, as ir_measures writes it")
    return measure


def _check_evaluation(config: Config) -> None:
    evaluation = config.evaluation
    if config.systems and not evaluation.collections:
        raise InputError("evaluation.collections is empty, but there are systems; allowed: at least one collection")
    for collection, chosen in evaluation.collections.items():
        path = f"evaluation.collections.{collection}"
        if collection not in config.collections:
            raise InputError(f"{path}: not a collection; {suggestion(collection, config.collections)}")
        if not chosen or len(set(chosen)) < len(chosen):
            raise InputError(f"{path} is {show(list(chosen))}; allowed: at least one split, each once")
        for split in chosen:
            _check_split(config, collection, split, path)
            for name, system in config.systems.items():
                stage = config.stages.get(system.stage)
                if stage and (stage.collection, stage.split) == (collection, split):
                    raise InputError(
                        f"{path} names {split}, which stages.{system.stage} trains systems.{name} on; allowed: splits "
                        "that nothing is trained on"
                    )
    if evaluation.collections and not evaluation.measures:
        raise InputError("evaluation.measures is []; allowed: at least one measure")
    for place, measure in enumerate(evaluation.measures):
        if measure in evaluation.measures[:place]:
            raise InputError(f"evaluation.measures has {show(measure)} twice; allowed: each once")
        cutoff = read_measure(measure).params.get("cutoff", 1)
        if cutoff > evaluation.depth:
            raise InputError(f"evaluation.depth is {evaluation.depth}; allowed: from {cutoff}, the depth of {measure}")
    for collection, length in evaluation.lengths.items():
        path = f"evaluation.lengths.{collection}"
        if collection not in evaluation.collections:
            raise InputError(f"{path}: not evaluated; {suggestion(collection, evaluation.collections)}")
        for name, system in config.systems.items():
            start = config.starts[config.encoders[system.encoder].start] if system.encoder else None
            model = start.checkpoint if start else system.model
            positions = pretrained.positions(model) if model else start and start.positions
            _check_most(path, length, positions, f"the positions of systems.{name}")
    for collection, grades in evaluation.relevant.items():
        for split in grades:
            if split not in evaluation.collections.get(collection, ()):
                raise InputError(
                    f"evaluation.relevant names {collection} {split}, which is not evaluated; allowed: splits of "
                    "evaluation.collections"
                )
    if evaluation.baseline:
        _check_entry(config, "evaluation.baseline", evaluation.baseline, "systems")
