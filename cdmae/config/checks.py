"""What the config's entries demand of each other: every name leads somewhere, to the right kind, without a cycle."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator
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

    from cdmae.config.schema import Config, Encoder, Stage, System

Rule = tuple[str, bool, str]
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")
SPLIT = re.compile(r"\w[\w.-]*")  # part of paths, too; MS MARCO has a dev.small
LONGEST = 64  # letters of a name: a path may join three of them, and file systems take 255 bytes between slashes
ROOT = Path(__file__).resolve().parents[2]
SOURCES = (".ci", ".git", ".snakemake", ".venv", "benchmarks", "cdmae", "config", "docs", "envs", "tests", "workflow")
SMALL = 2**24  # bytes of files that are read whenever the config is checked: less than a second
# Of ir_measures, those whose packages are pinned, so that the same one computes a measure everywhere. Accuracy's is
# left out: it divides by zero where all that a query found is relevant.
PROVIDERS = ("pytrec_eval", "msmarco", "judged", "compat")

NOT_PRETRAINED = ("start", "objective", "seed")  # the keys of an encoder with objective none
READ_IMPORTANCE = ("importance", "pmi_span")  # maskings
MASKING = ("decoder_ratio", "sigma", "max_length")  # what the masks that are shown depend on
MOST_TUNED = 4  # systems of a fusion whose weights are chosen
SEARCHES = ("bm25", "retriever", "external", "run")  # kinds that search a whole collection, and so can be mined


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
        if not name:
            raise refusal(keys, f" is missing: the name of an entry of {section}")
        if name not in getattr(config, section):
            raise refusal(keys, f" is {show(name)}; {suggestion(name, getattr(config, section))}")
    for section, rules in RULES.items():
        for name, entry in getattr(config, section).items():
            for key, wrong, words in rules(config, name, entry):
                if wrong:
                    raise refusal((section, name, key), f" is {show(getattr(entry, key))}{words}")
    for name, stage in config.stages.items():
        with _at("stages", name, "queries"):
            known = relevant[stage.collection]
            collections.check_batch(f"stages.{name}", stage.queries, stage.collection, stage.split, known)
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
    with _at("collections", name):
        for file in files:
            pretrained.check_plain(file, f"collections.{name}")
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
        if start.checkpoint:
            with _at("starts", name, "checkpoint"):
                pretrained.check(start.checkpoint, f"starts.{name}.checkpoint")
        elif not start.collection:
            raise refusal(("starts", name), " has neither checkpoint nor collection; allowed: one of them")
        else:
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


def _unfit(config: Config, collection: str, split: str) -> str:
    """Say what is wrong with a split of a collection; nothing where there are judgments of it."""
    judged = splits(config, collection)
    if split not in judged:
        return f"; {suggestion(split, judged)} (splits of collections.{collection})"
    if not SPLIT.fullmatch(split):
        what = f"splits of collections.{collection} named by letters, digits, ., - and _"
        return f", which cannot be part of a path; allowed: {what}"
    names = ", ".join(name for name in judged if judged[name]) or "none"
    return "" if judged[split] else f", which has no judgments; allowed: {names}"


# --- rules -----------------------------------------------------------------------------------------------------------
# A rule is the key of a setting, whether its value is wrong, and what is said of that behind the value.


def _most(entry: Any, key: str, most: int | None, whose: str, where: str = "") -> Rule:
    """Refuse a number above `most`, which may be unknown before a job."""
    wrong = most is not None and getattr(entry, key) > most
    return key, wrong, f"; allowed{where}: up to {most}, {whose}"


def _kind(entry: Any, key: str, entries: dict[str, Any], kinds: tuple[str, ...], what: str) -> Rule:
    """Refuse an entry, named by a setting, of other kinds than `kinds`; `what` calls the entries of its section."""
    kind = entries[getattr(entry, key)].kind
    fitting = ", ".join(name for name in entries if entries[name].kind in kinds) or "there is none"
    return key, kind not in kinds, f", of kind {kind}; allowed: a {what} of kind {' or '.join(kinds)} ({fitting})"


def _positions(config: Config, start: str) -> tuple[int | None, str]:
    """Return the positions of a start, as far as they are known before the job that loads it, and whose they are."""
    if checkpoint := config.starts[start].checkpoint:
        return pretrained.positions(checkpoint), f"the positions of starts.{start}"
    return config.starts[start].positions, f"starts.{start}.positions"


def _encoder(config: Config, name: str, encoder: Encoder) -> Iterator[Rule]:
    if not encoder.pretrained:
        return
    start, owner = config.starts[encoder.start], f"starts.{encoder.start}"
    if encoder.after:
        first = config.encoders[encoder.after].start
        yield "start", first != encoder.start, f"; allowed: {first}, that of encoders.{encoder.after}, where it begins"
    if encoder.snapshot_of:
        whole = config.encoders[encoder.snapshot_of]
        last = whole.take_step or whole.steps or None
        yield _most(encoder, "take_step", last, f"the last step of encoders.{encoder.snapshot_of}")
    if "pmi_span" in encoder.maskings:
        unit = config.importance[encoder.importance].unit
        yield "importance", unit != "word", f", whose unit is {unit}; allowed for pmi_span: one of words"
    layers = pretrained.number(start.checkpoint, "num_hidden_layers") if start.checkpoint else start.layers
    if encoder.objective == "simlm":
        words = "; allowed with objective simlm, whose decoder masks all that the encoder masks: from encoder_ratio, "
        yield "decoder_ratio", encoder.decoder_ratio < encoder.encoder_ratio, f"{words}{encoder.encoder_ratio}"
        copied = " with objective simlm, whose decoder begins as a copy of the last layers"
        yield _most(encoder, "decoder_layers", layers, f"those of {owner}", copied)
    if encoder.objective in ("condenser", "cocondenser") and layers is not None:
        yield _most(encoder, "early_layers", layers - 1, f"{owner} has {layers} layers")
    if encoder.generator:
        yield from _generator(name, encoder, start.checkpoint)
    yield _most(encoder, "max_length", *_positions(config, encoder.start))


def _generator(name: str, encoder: Encoder, checkpoint: str) -> Iterator[Rule]:
    """Refuse a generator that cannot have the word-pieces of the start; its job compares them one by one."""
    with _at("encoders", name, "generator"):
        pretrained.check(encoder.generator, f"encoders.{name}.generator")
    remedy = "has word-pieces of its own; allowed: a generator for a start with a checkpoint"
    yield "generator", not checkpoint, f", but starts.{encoder.start} {remedy}"
    own, start = (pretrained.number(model, "vocab_size") for model in (encoder.generator, checkpoint))
    if own is not None and start is not None:
        words = f", which knows {own:,} word-pieces; allowed: one with the {start:,} of starts.{encoder.start}"
        yield "generator", own != start, words
    positions = pretrained.positions(encoder.generator)
    yield _most(encoder, "max_length", positions, f"the positions of the generator {encoder.generator}")


def _stage(config: Config, name: str, stage: Stage) -> Iterator[Rule]:
    unfit = _unfit(config, stage.collection, stage.split)
    yield "split", bool(unfit), unfit
    for student, system in config.systems.items():
        if system.stage == name:
            for key in ("query_length", "passage_length") if stage.kind == "retriever" else ("max_length",):
                yield _most(stage, key, *_positions(config, config.encoders[system.encoder].start))
            triples = bool(stage.margin) and bool(config.systems[system.negatives].triples)
            yield "margin", triples, f", but systems.{system.negatives} has triples, which have no scores; allowed: 0"
            unscored = bool(system.teacher) and config.systems[system.teacher].kind == "run" and stage.random_negatives
            words = f", but the teacher of systems.{student} is a run, which scores what it ranks; allowed: 0"
            yield "random_negatives", bool(unscored), words


def _system(config: Config, name: str, system: System) -> Iterator[Rule]:
    for place, source in system.sources().items():
        if source == name:
            raise refusal(("systems", name, *place), f" is {name}: a system cannot be made from its own run")
    if system.stage:
        yield _kind(system, "stage", config.stages, (system.kind,), "stage")
        yield _kind(system, "negatives", config.systems, SEARCHES, "system")
    if system.teacher:
        yield _kind(system, "teacher", config.systems, ("reranker", "run"), "system")
    if system.kind == "reranker":
        most = config.evaluation.depth
        yield "depth", system.depth > most, f"; allowed: up to evaluation.depth, {most}"
    if system.kind == "fusion":
        yield from _fusion(config, system)
    if system.kind == "run":
        _check_runs(config, name, system)
    if system.triples:
        yield from _triples(config, name, system)
    if system.kind == "external":
        with _at("systems", name, "model"):
            pretrained.check_retriever(system.model, f"systems.{name}.model")


def _fusion(config: Config, system: System) -> Iterator[Rule]:
    few = len(set(system.of)) < max(2, len(system.of))
    yield "of", few, "; allowed: at least two systems, each once"
    odd = bool(system.weights) and (len(system.weights) != len(system.of) or not any(system.weights))
    yield "weights", odd, f"; allowed: one for each of the {len(system.of)} systems, not all 0"
    yield "weights", bool(system.weights and system.tuned_on), ", but tuned_on chooses them; leave one of the two out"
    targets = _targets(config)
    unknown = bool(system.tuned_on) and system.tuned_on not in targets
    yield "tuned_on", unknown, f"; allowed: one of {', '.join(show(list(target)) for target in targets)}"
    many = bool(system.tuned_on) and len(system.of) > MOST_TUNED
    yield "tuned_on", many, f"; allowed with up to {MOST_TUNED} systems, and of has {len(system.of)}"


def _targets(config: Config) -> list[tuple[str, str]]:
    return [(name, split) for name, splits_ in config.evaluation.collections.items() for split in splits_]


def _check_runs(config: Config, name: str, system: System) -> None:
    """Refuse files that are not there, and a system that lacks the run of a split that is measured or trained on."""
    keys = ("systems", name, "runs")
    for collection, files in system.runs.items():
        if collection not in config.collections:
            raise refusal((*keys, collection), f": not a collection; {suggestion(collection, config.collections)}")
        for split, file in files.items():
            if words := _unfit(config, collection, split):
                raise refusal((*keys, collection, split), f": the split is {split}{words}")
            if not Path(file).expanduser().is_file():
                raise refusal((*keys, collection, split), f" is {file}, which is no file; allowed: a run as TREC text")
    trained = [other.stage for other in config.systems.values() if name in (other.negatives, other.teacher)]
    mined = [(config.stages[stage].collection, config.stages[stage].split) for stage in trained]
    for collection, split in [*_targets(config), *mined]:
        if split not in system.runs.get(collection, {}):
            raise refusal(keys, f" lacks {split} of {collection}, where the system is measured, mined or a teacher")


def _triples(config: Config, name: str, system: System) -> Iterator[Rule]:
    """Refuse published triples of a collection, on which others are trained, that has none of that name."""
    trained = [other.stage for other in config.systems.values() if other.negatives == name]
    for collection in dict.fromkeys(config.stages[stage].collection for stage in trained):
        entry = config.collections[collection]
        source = collections.source(entry.source)
        allowed = source.triples(entry.settings) if hasattr(source, "triples") else {}
        none = f"collections.{collection} has none; leave it out"
        remedy = suggestion(system.triples, allowed) if allowed else none
        yield "triples", system.triples not in allowed, f"; {remedy}"


RULES: dict[str, Callable[[Config, str, Any], Iterator[Rule]]] = {
    "encoders": _encoder,
    "stages": _stage,
    "systems": _system,
}


def check_cycles(section: str, needs: dict[str, list[str]]) -> None:
    """Refuse entries of a section that need each other in a circle; `needs` names what an entry is made from."""
    try:
        TopologicalSorter(needs).prepare()
    except CycleError as error:
        circle = error.args[1][:0:-1]  # its last name is its first one
        begin = circle.index(next(name for name in needs if name in circle))
        names = " -> ".join([*circle[begin:], *circle[: begin + 1]])
        raise refusal((section,), f" need each other in a circle: {names}; allowed: chains that end") from None


def read_measure(name: str, *, of: tuple[str, ...] = ("evaluation", "measures")) -> Measure:
    """Parse a measure; raises `InputError` for one that ir_measures does not compute as a mean.

    of: the keys of the config, or the option, that name it.
    """
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
            of,
            f" has {show(name)}; allowed: what {', '.join(PROVIDERS[:-1])} and {PROVIDERS[-1]} of ir_measures compute "
            "as a mean, such as nDCG@10, R(rel=2)@1000 or Judged@10",
        )
    if written != name.replace("(rel=1)", ""):  # which has an effect where evaluation.relevant says another grade
        raise refusal(of, f" has {show(name)}; allowed: {written}, as ir_measures writes it")
    return measure


def _check_evaluation(config: Config) -> None:
    evaluation = config.evaluation
    if config.systems and not any(evaluation.collections.values()):
        words = " names no split, but there are systems; allowed: at least one split"
        raise refusal(("evaluation", "collections"), words)
    for collection, chosen in evaluation.collections.items():
        keys = ("evaluation", "collections", collection)
        if collection not in config.collections:
            raise refusal(keys, f": not a collection; {suggestion(collection, config.collections)}")
        if len(set(chosen)) < len(chosen):
            raise refusal(keys, f" is {show(list(chosen))}; allowed: each split once, or none: only searched")
        for split in chosen:
            if words := _unfit(config, collection, split):
                raise refusal(keys, f" is {show(split)}{words}")
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
            positions = pretrained.positions(model) if model else start and start.positions
            if positions is not None and length > positions:
                raise refusal(keys, f" is {length}; allowed: up to {positions}, the positions of systems.{name}")
    for collection, grades in evaluation.relevant.items():
        for split in grades:
            if split not in evaluation.collections.get(collection, ()):
                raise refusal(
                    ("evaluation", "relevant"),
                    f" names {collection} {split}, which is not evaluated; allowed: splits of evaluation.collections",
                )
