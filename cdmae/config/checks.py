"""What the config's entries demand of each other: every name leads somewhere, to the right kind, without a cycle."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cdmae import collections
from cdmae.config import pretrained
from cdmae.errors import InputError
from cdmae.fields import Keys, refusal, show, suggestion

if TYPE_CHECKING:
    from ir_measures import Measure

    from cdmae.config.schema import Config

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


def pick(values: dict[str, Any], keys: Iterable[str]) -> dict[str, Any]:
    """Return the values of some keys, in their own order."""
    return {key: value for key, value in values.items() if key in keys}


def check_name(name: str, section: str) -> None:
    """Refuse a name that cannot be part of a path."""
    what = f"{section} has the name {show(name)}"
    if not NAME.fullmatch(name):
        raise InputError(f"{what}; allowed: letters, digits, - and _", keys=(section, name))
    if len(name) > LONGEST:
        raise InputError(f"{what} of {len(name)} letters; allowed: up to {LONGEST}", keys=(section, name))


def check(config: Config) -> None:
    """Check a config whose entries are right, each by itself."""
    _check_results(config.results)
    relevant = {name: _check_collection(config, name) for name in config.collections}
    for keys, name, section in _names(config):
        _check_entry(config, keys, name, section)
    for name, start in config.starts.items():
        if start.checkpoint:
            with _at("starts", name, "checkpoint"):
                pretrained.check(start.checkpoint, f"starts.{name}.checkpoint")
    for name in config.encoders:
        _check_encoder(config, name)
    for name, stage in config.stages.items():
        _check_split(config, stage.collection, stage.split, ("stages", name, "split"))
        with _at("stages", name, "queries"):
            known = relevant[stage.collection]
            collections.check_batch(f"stages.{name}", stage.queries, stage.collection, stage.split, known)
    for name in config.systems:
        _check_system(config, name)
    check_cycles("systems", {name: list(system.sources().values()) for name, system in config.systems.items()})
    _check_evaluation(config)


@contextmanager
def _at(*keys: str) -> Iterator[None]:
    """Tell where in the config the cause of an error lies."""
    try:
        yield
    except InputError as error:
        raise InputError(str(error), keys=keys) from None


def _check_results(results: str) -> None:
    """Refuse a folder that paths of the workflow cannot start with, or in which code lies."""

    def refused(words: str) -> InputError:
        return refusal(("results",), f" is {show(results)}{words}")

    if not results.strip() or not results.isprintable() or re.search(r"[\s*?\[\]{}<>]", results):
        raise refused("; allowed: a folder without spaces, wildcards, control characters, < and >")
    if any(len(os.fsencode(part)) > 255 for part in Path(results).parts):
        raise refused("; allowed: up to 255 bytes between two slashes")
    folder = Path(results).resolve()
    if ROOT.is_relative_to(folder):
        raise refused(", in which the checkout lies; allowed: a folder of its own")
    nearest = next(path for path in (folder, *folder.parents) if path.exists())
    if not nearest.is_dir():
        raise refused(f", but {nearest} is a file; allowed: a folder")
    for source in SOURCES:
        if folder.is_relative_to((ROOT / source).resolve()):
            raise refused(f", inside {source} of the checkout; allowed: a folder of its own")


def _check_collection(config: Config, name: str) -> dict[str, int]:
    """Ask for the files, and read them where that takes no time; the first job reads large ones anyway.

    Returns by split how many queries have a relevant passage, as far as that is known without the job.
    """
    splits(config, name)
    files = _ask(config, name, "depends")
    for file in files:
        if re.search(r"[{}]", str(file)):
            words = f": the path {file} has braces, which Snakemake takes for wildcards; rename it"
            raise refusal(("collections", name), words)
    small = sum(Path(file).stat().st_size for file in files) <= SMALL
    return _ask(config, name, "check", name) if small else {}


def _ask(config: Config, name: str, question: str, *more: str) -> Any:
    """Ask the source of a collection for its ``splits``, ``depends`` or ``check``; errors get the path in the config.

    A mistake in a file of its own stands at no place of the config.
    """
    collection = config.collections[name]
    try:
        return getattr(collections.source(collection.source), question)(collection.settings, *more)
    except InputError as error:
        words = str(error).removeprefix(f"collections.{name}: ")
        keys = () if re.search(r", line \d", words) else ("collections", name, words.partition(" ")[0])
        where = "" if words.startswith(f"collections.{name}") else f"collections.{name}: "
        raise InputError(where + words, keys=keys) from None


def splits(config: Config, collection: str) -> dict[str, bool]:
    """Return the splits of a collection, and whether they have judgments."""
    return dict(_ask(config, collection, "splits"))


def _names(config: Config) -> Iterator[tuple[Keys, str, str]]:
    """List every name of an entry: where it stands, the name, and the section that it leads to."""
    for name, start in config.starts.items():
        if not start.checkpoint:
            if not start.collection:
                raise refusal(("starts", name), " has neither checkpoint nor collection; allowed: one of them")
            yield ("starts", name, "collection"), start.collection, "collections"
    for name, encoder in config.encoders.items():
        yield ("encoders", name, "start"), encoder.start, "starts"
        if encoder.pretrained:
            yield ("encoders", name, "collection"), encoder.collection, "collections"
        if encoder.reads_importance:
            yield ("encoders", name, "importance"), encoder.importance, "importance"
    for name, stage in config.stages.items():
        yield ("stages", name, "collection"), stage.collection, "collections"
    for name, system in config.systems.items():
        if system.stage:
            yield ("systems", name, "encoder"), system.encoder, "encoders"
            yield ("systems", name, "stage"), system.stage, "stages"
        for keys, source in system.sources().items():
            yield ("systems", name, *keys), source, "systems"
    if config.evaluation.baseline:
        yield ("evaluation", "baseline"), config.evaluation.baseline, "systems"


def _check_entry(config: Config, keys: Keys, name: str, section: str) -> None:
    """Refuse a name that leads to no entry of a section."""
    if not name:
        raise refusal(keys, f" is missing: the name of an entry of {section}")
    if name not in getattr(config, section):
        raise refusal(keys, f" is {show(name)}; {suggestion(name, getattr(config, section))}")


def _check_kind(config: Config, keys: Keys, name: str, kinds: tuple[str, ...], section: str = "systems") -> None:
    """Refuse an entry of a section, named at `keys`, of other kinds than `kinds`."""
    entries = getattr(config, section)
    if entries[name].kind not in kinds:
        fitting = ", ".join(other for other, entry in entries.items() if entry.kind in kinds) or "there is none"
        raise refusal(
            keys,
            f" is {name}, of kind {entries[name].kind}; allowed: a {section[:-1]} of kind {' or '.join(kinds)} "
            f"({fitting})",
        )


def _check_most(keys: Keys, value: int, most: int | None, whose: str, where: str = "") -> None:
    """Refuse a number above `most`, which may be unknown before a job."""
    if most is not None and value > most:
        raise refusal(keys, f" is {value}; allowed{where}: up to {most}, {whose}")


def _check_length(config: Config, start: str, length: int, keys: Keys) -> None:
    """Refuse a length beyond the positions of a random start; the job that loads a checkpoint tells those of it."""
    settings = config.starts[start]
    _check_most(keys, length, None if settings.checkpoint else settings.positions, f"starts.{start}.positions")


def _check_split(config: Config, collection: str, split: str, keys: Keys) -> None:
    judged = splits(config, collection)
    if split not in judged:
        raise refusal(keys, f" is {show(split)}; {suggestion(split, judged)} (splits of collections.{collection})")
    if not SPLIT.fullmatch(split):
        raise refusal(
            keys,
            f" is {show(split)}, which cannot be part of a path; allowed: splits of collections.{collection} named by "
            "letters, digits, ., - and _",
        )
    if not judged[split]:
        names = ", ".join(name for name in judged if judged[name]) or "none"
        raise refusal(keys, f" is {show(split)}, which has no judgments; allowed: {names}")


def _check_encoder(config: Config, name: str) -> None:
    encoder, keys = config.encoders[name], ("encoders", name)
    if not encoder.pretrained:
        return
    if encoder.after and (start := config.encoders[encoder.after].start) != encoder.start:
        raise refusal(
            (*keys, "start"),
            f" is {encoder.start}; allowed: {start}, that of encoders.{encoder.after}, where it begins",
        )
    if encoder.snapshot_of:
        whole = config.encoders[encoder.snapshot_of]
        last = whole.take_step or whole.steps or None
        _check_most((*keys, "take_step"), encoder.take_step, last, f"the last step of encoders.{encoder.snapshot_of}")
    if "pmi_span" in encoder.maskings and (unit := config.importance[encoder.importance].unit) != "word":
        raise refusal(
            (*keys, "importance"),
            f" is {encoder.importance}, whose unit is {unit}; allowed for pmi_span: one of words",
        )
    if encoder.objective == "simlm" and encoder.decoder_ratio < encoder.encoder_ratio:
        raise refusal(
            (*keys, "decoder_ratio"),
            f" is {encoder.decoder_ratio}; allowed with objective simlm, whose decoder masks all that the encoder "
            f"masks: from encoder_ratio, {encoder.encoder_ratio}",
        )
    start, owner = config.starts[encoder.start], f"starts.{encoder.start}"
    layers = pretrained.number(start.checkpoint, "num_hidden_layers") if start.checkpoint else start.layers
    if encoder.objective == "simlm":
        copied = " with objective simlm, whose decoder begins as a copy of the last layers"
        _check_most((*keys, "decoder_layers"), encoder.decoder_layers, layers, f"those of {owner}", copied)
    if encoder.objective in ("condenser", "cocondenser") and layers is not None:
        _check_most((*keys, "early_layers"), encoder.early_layers, layers - 1, f"{owner} has {layers} layers")
    if encoder.generator:
        _check_generator(config, name)
    _check_length(config, encoder.start, encoder.max_length, (*keys, "max_length"))


def _check_generator(config: Config, name: str) -> None:
    """Refuse a generator that cannot have the word-pieces of the start; its job compares them one by one."""
    encoder, keys = config.encoders[name], ("encoders", name, "generator")
    generator, checkpoint = encoder.generator, config.starts[encoder.start].checkpoint
    with _at(*keys):
        pretrained.check(generator, f"encoders.{name}.generator")
    if not checkpoint:
        raise refusal(
            keys,
            f" is {show(generator)}, but starts.{encoder.start} has word-pieces of its own; allowed: a generator for a "
            "start with a checkpoint",
        )
    sizes = [pretrained.number(model, "vocab_size") for model in (generator, checkpoint)]
    if None not in sizes and sizes[0] != sizes[1]:
        raise refusal(
            keys,
            f" is {show(generator)}, which knows {sizes[0]:,} word-pieces; allowed: one with the {sizes[1]:,} of "
            f"starts.{encoder.start}",
        )
    positions = pretrained.number(generator, "max_position_embeddings")
    whose = f"the positions of the generator {generator}"
    _check_most(("encoders", name, "max_length"), encoder.max_length, positions, whose)


def _check_system(config: Config, name: str) -> None:
    system, keys = config.systems[name], ("systems", name)
    for place, source in system.sources().items():
        if source == name:
            raise refusal((*keys, *place), f" is {name}: a system cannot be made from its own run")
    if system.stage:
        stage, start = config.stages[system.stage], config.encoders[system.encoder].start
        _check_kind(config, (*keys, "stage"), system.stage, (system.kind,), "stages")
        _check_kind(config, (*keys, "negatives"), system.negatives, SEARCHES)
        _check_triples(config, system.negatives, stage.collection)
        if system.teacher:
            _check_kind(config, (*keys, "teacher"), system.teacher, ("reranker",))
        for key in ("query_length", "passage_length") if system.kind == "retriever" else ("max_length",):
            _check_length(config, start, getattr(stage, key), ("stages", system.stage, key))
    if system.kind == "reranker" and system.depth > config.evaluation.depth:
        words = f" is {system.depth}; allowed: up to evaluation.depth, {config.evaluation.depth}"
        raise refusal((*keys, "depth"), words)
    if system.kind == "fusion" and len(set(system.of)) < max(2, len(system.of)):
        raise refusal((*keys, "of"), f" is {show(list(system.of))}; allowed: at least two systems, each once")
    if system.kind == "external":
        with _at(*keys, "model"):
            pretrained.check_retriever(system.model, f"systems.{name}.model")


def _check_triples(config: Config, name: str, collection: str) -> None:
    """Refuse published triples of a collection that has none of that name."""
    triples, entry = config.systems[name].triples, config.collections[collection]
    source = collections.source(entry.source)
    allowed = source.triples(entry.settings) if hasattr(source, "triples") else {}
    if triples and triples not in allowed:
        remedy = suggestion(triples, allowed) if allowed else f"collections.{collection} has none; leave it out"
        raise refusal(("systems", name, "triples"), f" is {show(triples)}; {remedy}")


def check_cycles(section: str, needs: dict[str, list[str]]) -> None:
    """Refuse entries of a section that need each other in a circle; `needs` names what an entry is made from."""
    try:
        TopologicalSorter(needs).prepare()
    except CycleError as error:
        circle = error.args[1][:0:-1]  # its last name is its first one
        begin = circle.index(next(name for name in needs if name in circle))
        names = " -> ".join([*circle[begin:], *circle[: begin + 1]])
        raise refusal((section,), f" need each other in a circle: {names}; allowed: chains that end") from None


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
        raise refusal(
            ("evaluation", "measures"),
            f" has {show(name)}; allowed: what {', '.join(PROVIDERS[:-1])} and {PROVIDERS[-1]} of ir_measures compute "
            "as a mean, such as nDCG@10, R(rel=2)@1000 or Judged@10",
        )
    if written != name.replace("(rel=1)", ""):  # which has an effect where evaluation.relevant says another grade
        raise refusal(("evaluation", "measures"), f" has {show(name)}; allowed: {written}, as ir_measures writes it")
    return measure


def _check_evaluation(config: Config) -> None:
    evaluation = config.evaluation
    if config.systems and not evaluation.collections:
        words = " is empty, but there are systems; allowed: at least one collection"
        raise refusal(("evaluation", "collections"), words)
    for collection, chosen in evaluation.collections.items():
        keys = ("evaluation", "collections", collection)
        if collection not in config.collections:
            raise refusal(keys, f": not a collection; {suggestion(collection, config.collections)}")
        if not chosen or len(set(chosen)) < len(chosen):
            raise refusal(keys, f" is {show(list(chosen))}; allowed: at least one split, each once")
        for split in chosen:
            _check_split(config, collection, split, keys)
            for name, system in config.systems.items():
                stage = config.stages.get(system.stage)
                if stage and (stage.collection, stage.split) == (collection, split):
                    raise refusal(
                        keys,
                        f" names {split}, which stages.{system.stage} trains systems.{name} on; allowed: splits that "
                        "nothing is trained on",
                    )
    if evaluation.collections and not evaluation.measures:
        raise refusal(("evaluation", "measures"), " is []; allowed: at least one measure")
    for place, measure in enumerate(evaluation.measures):
        if measure in evaluation.measures[:place]:
            raise refusal(("evaluation", "measures"), f" has {show(measure)} twice; allowed: each once")
        cutoff = read_measure(measure).params.get("cutoff", 1)
        if cutoff > evaluation.depth:
            words = f" is {evaluation.depth}; allowed: from {cutoff}, the depth of {measure}"
            raise refusal(("evaluation", "depth"), words)
    for collection, length in evaluation.lengths.items():
        keys = ("evaluation", "lengths", collection)
        if collection not in evaluation.collections:
            raise refusal(keys, f": not evaluated; {suggestion(collection, evaluation.collections)}")
        for name, system in config.systems.items():
            start = config.starts[config.encoders[system.encoder].start] if system.encoder else None
            model = start.checkpoint if start else system.model
            positions = pretrained.number(model, "max_position_embeddings") if model else start and start.positions
            _check_most(keys, length, positions, f"the positions of systems.{name}")
    for collection, grades in evaluation.relevant.items():
        for split in grades:
            if split not in evaluation.collections.get(collection, ()):
                raise refusal(
                    ("evaluation", "relevant"),
                    f" names {collection} {split}, which is not evaluated; allowed: splits of evaluation.collections",
                )
