"""What the config's entries demand of each other: every name leads somewhere, to the right kind, without a cycle."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from cdmae import collections
from cdmae.collections.judged import unpacked
from cdmae.config import pretrained, systems
from cdmae.config.checks import (
    check_cycles,
    check_example,
    check_results,
    check_time,
    fits_in_paths,
    read_measure,
)
from cdmae.config.encoders import Encoder
from cdmae.config.rankers import Stage, System
from cdmae.config.schema import SECTIONS, Config
from cdmae.errors import InputError
from cdmae.fields import named, refusal, show, suggestion

Mistakes = Iterator[tuple[str, str]]  # in an entry: the key of a setting, and what is said behind its value
SMALL = 2**24  # bytes of files that are read whenever the config is checked: less than a second
MOST_TUNED = 4  # systems of a fusion whose weights are chosen
MINED = ("bm25", "retriever", "external", "run", "fusion")  # kinds that search a whole collection, and so can be mined


def check(config: Config) -> None:
    """Check a config whose entries are right, each by itself."""
    check_results(config.results)
    check_example(config.report.example)
    relevant = {name: _check_collection(config, name) for name in config.collections}
    entries = [((part, name), entry) for part in SECTIONS for name, entry in getattr(config, part).items()]
    for place, entry in [*entries, (("evaluation",), config.evaluation)]:
        for keys, name, section in named(entry):
            if name not in (known := getattr(config, section)):
                others = [other for other in known if (section, other) != place]  # none is made from itself
                raise refusal((*place, *keys), f" is {show(name)}; {suggestion(name, others)}")
    for name, start in config.starts.items():
        if start.checkpoint:
            pretrained.check(start.checkpoint, ("starts", name, "checkpoint"))
        elif not start.collection:
            raise refusal(("starts", name), " has neither checkpoint nor collection; allowed: one of them")
    for section, mistakes in (("encoders", _encoder), ("stages", _stage), ("systems", _system)):
        for name, entry in getattr(config, section).items():
            for key, words in mistakes(config, name, entry):
                raise refusal((section, name, key), f" is {show(getattr(entry, key))}{words}")
    for name, stage in config.stages.items():
        known = relevant[stage.collection]
        collections.check_batch(f"stages.{name}", stage.queries, stage.collection, stage.split, known)
    edges = {name: named(system) for name, system in config.systems.items()}
    check_cycles("systems", {name: [other for _, other, part in edges[name] if part == "systems"] for name in edges})
    for mined in systems.mined(config):
        _check_mined(config, *mined)
    _check_targets(config)
    _check_measures(config)
    _check_lengths(config)


# --- collections -----------------------------------------------------------------------------------------------------


def _check_collection(config: Config, name: str) -> dict[str, int]:
    """Ask for the files, and read them where that takes no time; the first job reads large ones anyway.

    Returns by split how many queries have a relevant passage, as far as that is known without the job.
    """
    _ask(config, name, "judged")
    _check_apart(config, name)
    files = _ask(config, name, "depends")
    for file in files:
        pretrained.check_plain(file, ("collections", name))
        check_time(file, ("collections", name))
    small = sum(unpacked(Path(file), SMALL) for file in files) < SMALL
    return _ask(config, name, "check") if small else {}


def _check_apart(config: Config, name: str) -> None:
    """Refuse a collection that would read the results: it would change with every run, and never be finished."""
    results = Path(config.results).resolve()
    for folder in map(Path.resolve, _ask(config, name, "folders")):
        if results.is_relative_to(folder):
            where = "in which the results are written"
        elif folder.is_relative_to(results):
            where = "which is inside the results"
        else:
            continue
        words = f" reads all of {folder}, {where} ({config.results}); allowed: a folder apart from `results`"
        raise refusal(("collections", name), words)


def _ask(config: Config, name: str, question: str) -> Any:
    """Ask the source of a collection for ``judged``, ``depends`` or ``check``; errors get the path in the config.

    A mistake in a file of its own stands at no place of the config.
    """
    try:
        return getattr(config.collections[name].settings, question)()
    except InputError as error:
        words = str(error)
        keys = () if re.search(r", line \d", words) else ("collections", name, words.partition(" ")[0])
        raise InputError(f"collections.{name}: {words}", keys=keys) from None


def _unfit(config: Config, collection: str, split: str) -> str:
    """Say what is wrong with a split of a collection; nothing where there are judgments of it."""
    judged = _ask(config, collection, "judged")
    if split not in judged:
        return f"; {suggestion(split, judged)} (splits of collections.{collection})"
    if not fits_in_paths(split):
        what = f"splits of collections.{collection} named by up to 64 letters, digits, ., - and _"
        return f", which cannot be part of a path; allowed: {what}"
    names = ", ".join(name for name in judged if judged[name]) or "none"
    return "" if judged[split] else f", which has no judgments; allowed: {names}"


# --- entries ---------------------------------------------------------------------------------------------------------


def _most(entry: Any, key: str, most: int | None, whose: str, where: str = "") -> Mistakes:
    """Refuse a number above `most`, which may be unknown before a job."""
    if most is not None and getattr(entry, key) > most:
        yield key, f"; allowed{where}: up to {most}, {whose}"


def _kind(entries: dict[str, Any], system: System, key: str, *kinds: str) -> Mistakes:
    """Refuse an entry that a system names of other kinds than `kinds`."""
    kind, what = entries[getattr(system, key)].kind, "stage" if key == "stage" else "system"
    if kind not in kinds:
        fitting = ", ".join(name for name in entries if entries[name].kind in kinds) or "there is none"
        yield key, f", of kind {kind}; allowed: a {what} of kind {' or '.join(kinds)} ({fitting})"


def _positions(config: Config, start: str) -> tuple[int | None, str]:
    """Return the positions of a start, as far as they are known before the job that loads it, and whose they are."""
    if checkpoint := config.starts[start].checkpoint:
        return pretrained.positions(checkpoint), f"the positions of starts.{start}"
    return config.starts[start].positions, f"starts.{start}.positions"


def _encoder(config: Config, name: str, encoder: Encoder) -> Mistakes:
    if not encoder.pretrained:
        return
    start, owner = config.starts[encoder.start], f"starts.{encoder.start}"
    if encoder.after and encoder.start != (first := config.encoders[encoder.after].start):
        yield "start", f"; allowed: {first}, that of encoders.{encoder.after}, where it begins"
    if encoder.snapshot_of:
        whole = config.encoders[encoder.snapshot_of]
        last = whole.take_step or whole.steps or None
        yield from _most(encoder, "take_step", last, f"the last step of encoders.{encoder.snapshot_of}")
    if "pmi_span" in encoder.maskings and (unit := config.importance[encoder.importance].unit) != "word":
        yield "importance", f", whose unit is {unit}; allowed for pmi_span: one of words"
    layers = pretrained.number(start.checkpoint, "num_hidden_layers") if start.checkpoint else start.layers
    if encoder.objective == "simlm":
        if encoder.decoder_ratio < encoder.encoder_ratio:
            masked = " with objective simlm, whose decoder masks all that the encoder masks"
            yield "decoder_ratio", f"; allowed{masked}: from encoder_ratio, {encoder.encoder_ratio}"
        copied = " with objective simlm, whose decoder begins as a copy of the last layers"
        yield from _most(encoder, "decoder_layers", layers, f"those of {owner}", copied)
    if encoder.objective in ("condenser", "cocondenser") and layers is not None:
        yield from _most(encoder, "early_layers", layers - 1, f"{owner} has {layers} layers")
    if encoder.generator:
        yield from _generator(name, encoder, start.checkpoint)
    yield from _most(encoder, "max_length", *_positions(config, encoder.start))


def _generator(name: str, encoder: Encoder, checkpoint: str) -> Mistakes:
    """Refuse a generator that cannot have the word-pieces of the start; its job compares them one by one."""
    pretrained.check(encoder.generator, ("encoders", name, "generator"))
    if not checkpoint:
        remedy = "has word-pieces of its own; allowed: a generator for a start with a checkpoint"
        yield "generator", f", but starts.{encoder.start} {remedy}"
    own, start = (pretrained.number(model, "vocab_size") for model in (encoder.generator, checkpoint))
    if own is not None and start is not None and own != start:
        words = f", which knows {own:,} word-pieces; allowed: one with the {start:,} of starts.{encoder.start}"
        yield "generator", words
    positions = pretrained.positions(encoder.generator)
    yield from _most(encoder, "max_length", positions, f"the positions of the generator {encoder.generator}")


def _stage(config: Config, name: str, stage: Stage) -> Mistakes:
    if unfit := _unfit(config, stage.collection, stage.split):
        yield "split", unfit
    lengths = ("query_length", "passage_length") if stage.kind == "retriever" else ("max_length",)
    for trained, system in config.systems.items():
        if system.stage != name:
            continue
        for key in lengths:
            yield from _most(stage, key, *_positions(config, systems.start_of(config, trained)))
        if stage.margin and config.systems[system.negatives].triples:
            yield "margin", f", but systems.{system.negatives} has triples, which have no scores; allowed: 0"
        if stage.random_negatives and system.teacher and config.systems[system.teacher].kind == "run":
            words = f", but the teacher of systems.{trained} is a run, which scores what it ranks; allowed: 0"
            yield "random_negatives", words


def _system(config: Config, name: str, system: System) -> Mistakes:
    if system.stage:
        yield from _kind(config.stages, system, "stage", system.kind)
        yield from _kind(config.systems, system, "negatives", *MINED)
    if system.teacher:
        yield from _kind(config.systems, system, "teacher", "reranker", "run")
    if system.kind == "reranker" and system.depth > (most := config.evaluation.depth):
        yield "depth", f"; allowed: up to evaluation.depth, {most}"
    if system.kind == "fusion":
        yield from _fusion(config, system)
    if system.kind == "run":
        _check_runs(config, name, system)
    if system.kind == "external":
        pretrained.check_retriever(system.model, ("systems", name, "model"))


def _fusion(config: Config, system: System) -> Mistakes:
    if len(set(system.of)) < max(2, len(system.of)):
        yield "of", "; allowed: at least two systems, each once"
    if system.weights and (len(system.weights) != len(system.of) or not any(system.weights)):
        yield "weights", f"; allowed: one for each of the {len(system.of)} systems, not all 0"
    if system.weights and system.tuned_on:
        yield "weights", ", but tuned_on chooses them; leave one of the two out"
    if system.tuned_on and system.tuned_on not in (targets := systems.targets(config)):
        yield "tuned_on", f"; allowed: one of {', '.join(show(list(target)) for target in targets)}"
    if system.tuned_on and len(system.of) > MOST_TUNED:
        yield "tuned_on", f"; allowed with up to {MOST_TUNED} systems, and of has {len(system.of)}"


def _check_runs(config: Config, name: str, system: System) -> None:
    """Refuse files that are not there, and a system that lacks the run of a split that is measured or trained on."""
    keys = ("systems", name, "runs")
    for collection, files in system.runs.items():
        for split, file in files.items():
            if words := _unfit(config, collection, split):
                raise refusal((*keys, collection, split), f": the split is {split}{words}")
            place = (*keys, collection, split)
            pretrained.check_plain(file, place)
            if file.startswith("-"):
                raise refusal(place, f" is {file}, which a job would take for an option; allowed: an absolute path")
            if not os.path.isfile(file):
                raise refusal(place, f" is {show(file)}, which is no file; allowed: a run as TREC text")
            check_time(file, place)
    for collection, split in systems.targets(config):
        if split not in system.runs.get(collection, {}):
            raise refusal(keys, f" lacks {split} of {collection}, where the system is measured")


def _check_mined(config: Config, name: str, collection: str, split: str) -> None:
    """Refuse what has no run over training queries: a file or published triples that are not there, some fusions."""
    system = config.systems[name]
    for place, part in enumerate(system.of):
        entry, keys = config.systems[part], ("systems", name, "of", place)
        if entry.kind not in MINED or entry.triples:
            unfit = "whose negatives are triples" if entry.triples else f"of kind {entry.kind}"
            raise refusal(keys, f" is {part}, {unfit}; allowed in a fusion that gives negatives: what searches")
    if system.kind == "run" and split not in system.runs.get(collection, {}):
        raise refusal(
            ("systems", name, "runs"), f" lacks {split} of {collection}, where the system is mined or a teacher"
        )
    if system.triples:
        allowed = config.collections[collection].settings.triples()
        if system.triples not in allowed:
            none = f"collections.{collection} has none; leave it out"
            words = f" is {system.triples}; {suggestion(system.triples, allowed) if allowed else none}"
            raise refusal(("systems", name, "triples"), words)


# --- evaluation ------------------------------------------------------------------------------------------------------


def _check_targets(config: Config) -> None:
    """Refuse splits without judgments, those that a system is trained on, and systems that nothing is measured on."""
    evaluated = config.evaluation.collections
    if config.systems and not any(evaluated.values()):
        words = " names no split, but there are systems; allowed: at least one split"
        raise refusal(("evaluation", "collections"), words)
    for collection, splits in evaluated.items():
        keys = ("evaluation", "collections", collection)
        if len(set(splits)) < len(splits):
            raise refusal(keys, f" is {show(list(splits))}; allowed: each split once, or none: only searched")
        for split in splits:
            if words := _unfit(config, collection, split):
                raise refusal(keys, f" is {show(split)}{words}")
            for name in systems.of_kind(config, *systems.TRAINED):
                if systems.trains_on(config, name) == (collection, split):
                    stage = f"stages.{config.systems[name].stage} trains systems.{name} on"
                    raise refusal(keys, f" names {split}, which {stage}; allowed: splits that nothing is trained on")
    for collection, grades in config.evaluation.relevant.items():
        for split in grades:
            if split not in evaluated.get(collection, ()):
                words = "which is not evaluated; allowed: splits of evaluation.collections"
                raise refusal(("evaluation", "relevant"), f" names {collection} {split}, {words}")


def _check_measures(config: Config) -> None:
    """Refuse measures that ir_measures does not compute, and those that look deeper than the runs go."""
    evaluation = config.evaluation
    if evaluation.collections and not evaluation.measures:
        raise refusal(("evaluation", "measures"), " is []; allowed: at least one measure")
    cutoffs: dict[str, int] = {}
    for measure in evaluation.measures:
        if measure in cutoffs:
            raise refusal(("evaluation", "measures"), f" has {show(measure)} twice; allowed: each once")
        cutoffs[measure] = read_measure(measure).params.get("cutoff", 1)
    deepest = max(cutoffs, key=cutoffs.__getitem__, default="")
    if cutoffs.get(deepest, 0) > evaluation.depth:
        words = f" is {evaluation.depth}; allowed: from {cutoffs[deepest]}, the depth of {deepest}"
        raise refusal(("evaluation", "depth"), words)


def _check_lengths(config: Config) -> None:
    """Refuse lengths of collections that are not evaluated, and those that a system has no positions for."""
    for collection, length in config.evaluation.lengths.items():
        keys = ("evaluation", "lengths", collection)
        if collection not in config.evaluation.collections:
            raise refusal(keys, f": not evaluated; {suggestion(collection, config.evaluation.collections)}")
        for name, system in config.systems.items():
            if system.encoder:
                positions, _ = _positions(config, systems.start_of(config, name))
            else:
                positions = pretrained.positions(system.model) if system.model else None
            if positions is not None and length > positions:
                raise refusal(keys, f" is {length}; allowed: up to {positions}, the positions of systems.{name}")
