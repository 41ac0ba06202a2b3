"""What the config's entries demand of each other: every name leads somewhere, to the right kind, without a cycle.

An entry takes only the keys of its kind. Written out in the entry, a key without effect is refused; inherited from
the defaults of a section, it does not apply.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cdmae import collections
from cdmae.config import pretrained
from cdmae.errors import InputError
from cdmae.fields import known, show, suggestion

if TYPE_CHECKING:
    from ir_measures import Measure

    from cdmae.config.schema import Config, Encoder, Stage, System

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
    """The values of some keys, in the order of the schema."""
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
    for name in config.starts:
        _check_start(config, name, values["starts"][name] or {})
    for name, encoder in config.encoders.items():
        _check_encoder(config, encoder, f"encoders.{name}")
    for name, stage in config.stages.items():
        _check_stage(config, stage, f"stages.{name}")
        collections.check_batch(
            f"stages.{name}", stage.queries, stage.collection, stage.split, relevant[stage.collection]
        )
    for name, system in config.systems.items():
        _check_system(config, name, system, values["systems"][name] or {})
    check_cycles("systems", {name: list(system.sources().values()) for name, system in config.systems.items()})
    _check_evaluation(config)


def _check_results(results: str) -> None:
    """Refuse a folder that paths of the workflow cannot start with, or in which code lies."""
    if not results.strip() or not results.isprintable() or re.search(r"[\s*?\[\]{}]", results):
        raise InputError(
            f"results is {show(results)}; allowed: a folder without spaces, wildcards and control characters"
        )
    if any(len(os.fsencode(part)) > 255 for part in Path(results).parts):
        raise InputError(f"results is {show(results)}; allowed: up to 255 bytes between two slashes")
    folder = Path(results).resolve()
    if ROOT.is_relative_to(folder):
        raise InputError(f"results is {show(results)}, in which the checkout lies; allowed: a folder of its own")
    there = next(path for path in (folder, *folder.parents) if path.exists())
    if not there.is_dir():
        raise InputError(f"results is {show(results)}, but {there} is a file; allowed: a folder")
    for each in SOURCES:
        if folder.is_relative_to(ROOT / each):
            raise InputError(f"results is {show(results)}, inside {each} of the checkout; allowed: a folder of its own")


def _ask(config: Config, collection: str, question: str) -> Any:
    """What the source of a collection answers to ``splits`` or ``depends``, errors with the path in the config."""
    found, path = config.collections[collection], f"collections.{collection}"
    try:
        return getattr(collections.source(found.source), question)(found.settings)
    except InputError as error:
        raise InputError(str(error) if str(error).startswith(path) else f"{path}: {error}") from None


def _check_collection(config: Config, name: str) -> dict[str, int]:
    """Ask for the files, and read them where that takes no time: large ones are read by the first job anyway.

    Returns by split how many queries have a relevant passage, as far as that is known without the job.
    """
    splits(config, name)
    for each in _ask(config, name, "depends"):
        if re.search(r"[{}]", str(each)):
            raise InputError(
                f"collections.{name}: the path {each} has braces, which Snakemake takes for wildcards; rename it"
            )
    if sum(Path(path).stat().st_size for path in _ask(config, name, "depends")) <= SMALL:
        found = config.collections[name]
        return collections.source(found.source).check(found.settings, name)
    return {}


def _known(config: Config, path: str, name: str, section: str) -> None:
    if not name:
        raise InputError(f"{path} is missing: the name of an entry of {section}")
    if name not in getattr(config, section):
        raise InputError(f"{path} is {show(name)}; {suggestion(name, getattr(config, section))}")


def refuse_others(values: dict[str, Any], allowed: Iterable[str], path: str, what: str) -> None:
    """Refuse values with other keys than those that go with `what`."""
    for key in values:
        if key not in allowed:
            raise InputError(f"{path}.{key} does not go with {what}; allowed: {', '.join(allowed)}")


def _check_start(config: Config, name: str, values: dict[str, Any]) -> None:
    start, path = config.starts[name], f"starts.{name}"
    if start.checkpoint:
        refuse_others(values, ("checkpoint",), path, "checkpoint")
        pretrained.check(start.checkpoint, f"{path}.checkpoint")
    elif not start.collection:
        raise InputError(f"{path} has neither checkpoint nor collection; allowed: one of them")
    else:
        _known(config, f"{path}.collection", start.collection, "collections")


def _check_length(config: Config, start: str, length: int, path: str) -> None:
    found = config.starts[start]
    if not found.checkpoint and length > found.positions:
        raise InputError(f"{path} is {length}; allowed: up to {found.positions}, starts.{start}.positions")


def _check_positions(config: Config, name: str, length: int, path: str) -> None:
    """Refuse a length that a system cannot read, where that is known before its job."""
    system = config.systems[name]
    if system.encoder:
        start = config.starts[config.encoders[system.encoder].start]
        model, positions = start.checkpoint, None if start.checkpoint else start.positions
    else:
        model, positions = system.model, None
    positions = pretrained.number(model, "max_position_embeddings") if model else positions
    if positions is not None and length > positions:
        raise InputError(f"{path} is {length}; allowed: up to {positions}, the positions of systems.{name}")


def _check_encoder(config: Config, encoder: Encoder, path: str) -> None:
    _known(config, f"{path}.start", encoder.start, "starts")
    if not encoder.pretrained:
        return
    _check_before(config, encoder, path)
    _known(config, f"{path}.collection", encoder.collection, "collections")
    if encoder.reads_importance:
        _known(config, f"{path}.importance", encoder.importance, "importance")
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


def _check_before(config: Config, encoder: Encoder, path: str) -> None:
    """Refuse an encoder with other word-pieces than the one that it goes on from, and a snapshot after the end."""
    if encoder.after and (start := config.encoders[encoder.after].start) != encoder.start:
        raise InputError(
            f"{path}.start is {encoder.start}; allowed: {start}, that of encoders.{encoder.after}, where it begins"
        )
    if encoder.snapshot_of:
        whole = config.encoders[encoder.snapshot_of]
        last = whole.take_step or whole.steps
        if last and encoder.take_step > last:
            raise InputError(
                f"{path}.take_step is {encoder.take_step}; allowed: up to {last}, the last step of "
                f"encoders.{encoder.snapshot_of}"
            )


def _check_layers(config: Config, encoder: Encoder, path: str) -> None:
    """Refuse more layers of the encoder than its start has, where that is known before the job that loads it."""
    start = config.starts[encoder.start]
    layers = pretrained.number(start.checkpoint, "num_hidden_layers") if start.checkpoint else start.layers
    if layers is None:
        return
    if encoder.objective == "simlm" and encoder.decoder_layers > layers:
        raise InputError(
            f"{path}.decoder_layers is {encoder.decoder_layers}; allowed with objective simlm, whose decoder begins as "
            f"a copy of the last layers: up to {layers}, those of starts.{encoder.start}"
        )
    if encoder.objective in ("condenser", "cocondenser") and encoder.early_layers >= layers:
        raise InputError(
            f"{path}.early_layers is {encoder.early_layers}; allowed: up to {layers - 1}, starts.{encoder.start} has "
            f"{layers} layers"
        )


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
    sizes = [pretrained.number(each, "vocab_size") for each in (generator, checkpoint)]
    if None not in sizes and sizes[0] != sizes[1]:
        raise InputError(
            f"{what}, which knows {sizes[0]:,} word-pieces; allowed: one with the {sizes[1]:,} of "
            f"starts.{encoder.start}"
        )
    positions = pretrained.number(generator, "max_position_embeddings")
    if positions is not None and encoder.max_length > positions:
        raise InputError(
            f"{path}.max_length is {encoder.max_length}; allowed: up to {positions}, the positions of the generator "
            f"{generator}"
        )


def splits(config: Config, collection: str) -> dict[str, bool]:
    """The splits of a collection, and whether each has judgments."""
    return dict(_ask(config, collection, "splits"))


def _check_split(config: Config, collection: str, split: str, path: str) -> None:
    found = splits(config, collection)
    if split not in found:
        raise InputError(f"{path} is {show(split)}; {suggestion(split, found)} (splits of collections.{collection})")
    if not SPLIT.fullmatch(split):
        raise InputError(
            f"{path} is {show(split)}, which cannot be part of a path; allowed: splits of collections.{collection} "
            "named by letters, digits, ., - and _"
        )
    if not found[split]:
        judged = [name for name, has in found.items() if has]
        raise InputError(f"{path} is {show(split)}, which has no judgments; allowed: {', '.join(judged) or 'none'}")


def _check_unseen(config: Config, collection: str, split: str, path: str) -> None:
    for name, system in config.systems.items():
        stage = config.stages.get(system.stage)
        if stage and (stage.collection, stage.split) == (collection, split):
            raise InputError(
                f"{path} names {split}, which stages.{system.stage} trains systems.{name} on; allowed: splits that "
                "nothing is trained on"
            )


def _check_stage(config: Config, stage: Stage, path: str) -> None:
    _known(config, f"{path}.collection", stage.collection, "collections")
    _check_split(config, stage.collection, stage.split, f"{path}.split")


def _check_system(config: Config, name: str, system: System, values: dict[str, Any]) -> None:
    path = f"systems.{name}"
    refuse_others(values, ("kind", *known(type(system), system.kind)), path, f"kind {system.kind}")
    needed = known(type(system), system.kind, needed=True)
    for key in needed:
        if not getattr(system, key):
            raise InputError(f"{path}.{key} is missing; kind {system.kind} needs {', '.join(needed)}")
    for key, source in system.sources().items():
        _known(config, f"{path}.{key}", source, "systems")
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
    _known(config, f"{path}.encoder", system.encoder, "encoders")
    _known(config, f"{path}.stage", system.stage, "stages")
    stage = config.stages[system.stage]
    if stage.kind != system.kind:
        fitting = [name for name, each in config.stages.items() if each.kind == system.kind]
        raise InputError(
            f"{path}.stage is {system.stage}, of kind {stage.kind}; allowed: a stage of kind {system.kind} "
            f"({', '.join(fitting) or 'there is none'})"
        )
    _check_kind(config, f"{path}.negatives", system.negatives, SEARCHES)
    _check_triples(config, system.negatives, stage.collection)
    if system.teacher:
        _check_kind(config, f"{path}.teacher", system.teacher, ("reranker",))
    start = config.encoders[system.encoder].start
    lengths = ("query_length", "passage_length") if system.kind == "retriever" else ("max_length",)
    for key in lengths:
        _check_length(config, start, getattr(stage, key), f"stages.{system.stage}.{key}")


def _check_triples(config: Config, name: str, collection: str) -> None:
    """Refuse published triples of a collection that has none of that name."""
    wanted = config.systems[name].triples
    source = collections.source(config.collections[collection].source)
    if not wanted:
        return
    allowed = source.triples(config.collections[collection].settings) if hasattr(source, "triples") else {}
    if wanted not in allowed:
        known = suggestion(wanted, allowed) if allowed else f"collections.{collection} has none; leave it out"
        raise InputError(f"systems.{name}.triples is {show(wanted)}; {known}")


def _check_kind(config: Config, path: str, name: str, kinds: tuple[str, ...]) -> None:
    kind = config.systems[name].kind
    if kind not in kinds:
        fitting = [each for each, system in config.systems.items() if system.kind in kinds]
        raise InputError(
            f"{path} is {name}, of kind {kind}; allowed: a system of kind {' or '.join(kinds)} "
            f"({', '.join(fitting) or 'there is none'})"
        )


def check_cycles(section: str, needs: dict[str, list[str]]) -> None:
    """Refuse entries of a section that need each other in a circle; `needs`: those that each is made from."""
    done: set[str] = set()

    def visit(name: str, trail: list[str]) -> None:
        if name in trail:
            cycle = " -> ".join([*trail[trail.index(name) :], name])
            raise InputError(f"{section} need each other in a circle: {cycle}; allowed: chains that end")
        if name not in done:
            for source in needs[name]:
                visit(source, [*trail, name])
            done.add(name)

    for name in needs:
        visit(name, [])


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
            _check_unseen(config, collection, split, path)
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
        for name in config.systems:
            _check_positions(config, name, length, path)
    for collection, grades in evaluation.relevant.items():
        for split in grades:
            if split not in evaluation.collections.get(collection, ()):
                raise InputError(
                    f"evaluation.relevant names {collection} {split}, which is not evaluated; allowed: splits of "
                    "evaluation.collections"
                )
    if evaluation.baseline:
        _known(config, "evaluation.baseline", evaluation.baseline, "systems")
