"""Check entries of a config against each other: their names, kinds and cycles.

Checks that concern only one kind of entry are in its class. The job that makes a collection checks
its content, and the numbers of queries and passages that the stages need.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from cdmae import collections
from cdmae.config import pretrained, systems
from cdmae.config.checks import check_cycles, check_results, read_measure
from cdmae.config.schema import SECTIONS, Config
from cdmae.errors import InputError
from cdmae.fields import Keys, moved, named, refusal, show, suggestion, unfit


def check(config: Config) -> None:
    """Check a config's entries against each other; each entry is valid by itself."""
    check_results(config.results)
    for name in config.collections:
        _check_collection(config, name)
    _check_names(config)
    config.report.check(config.systems)
    for name, start in config.starts.items():
        if start.checkpoint:
            pretrained.check(start.checkpoint, ("starts", name, "checkpoint"))
    for name, encoder in config.encoders.items():
        _within(("encoders", name), encoder.check, config)
    for name in config.collections:
        _within(("collections", name), _check_source, config, name)
    for name in config.stages:
        _within(("stages", name), _check_stage, config, name)
    edges = {}
    for name, system in config.systems.items():
        edges[name] = [other for _, other, part in named(system) if part == "systems"]
    check_cycles("systems", edges)
    for name, system in config.systems.items():
        _within(("systems", name), system.check, config, name)
    _check_targets(config)
    _check_measures(config)


def _within(place: Keys, check: Callable[..., None], *arguments: Any) -> None:
    """Check an entry, and prefix its keys to its errors."""
    try:
        check(*arguments)
    except InputError as error:
        raise moved(error, place) from None


def _check_names(config: Config) -> None:
    """Refuse references to entries that do not exist."""
    entries: dict[Keys, Any] = {("evaluation",): config.evaluation}
    for section in SECTIONS:
        for name, entry in getattr(config, section).items():
            entries[section, name] = entry
    mistakes = []
    for keys, entry in entries.items():
        for path, name, section in named(entry):
            known = getattr(config, section)
            if name not in known:
                # no entry depends on itself
                others = [other for other in known if (section, other) != keys]
                words = f" is {show(name)}, which is not in {section}; {suggestion(name, others)}"
                mistakes.append(refusal((*keys, *path), words))
    if mistakes:
        raise InputError(*mistakes)


def _check_collection(config: Config, name: str) -> None:
    """Refuse missing files, and results in a folder that is read whole: they would be passages."""
    collection = config.collections[name]
    collection.ask(name, "judged")
    results = Path(config.results).resolve()
    for folder in map(Path.resolve, collection.ask(name, "folders")):
        if results.is_relative_to(folder) or folder.is_relative_to(results):
            words = f" reads all of {folder}, and results is {config.results}"
            raise refusal(("collections", name), f"{words}; expected neither inside the other")


def _check_source(config: Config, name: str) -> None:
    """Refuse names, in the settings of a source, of entries that do not exist."""
    settings = config.collections[name].settings
    sections = ("importance", "starts", "collections")
    known = [getattr(config, section) for section in sections]
    chosen = settings.keywords_of
    is_known = [entry in entries for entry, entries in zip(chosen, known, strict=False)]
    if chosen and is_known != [True] * len(sections):
        words = "; expected names of entries of importance, of starts and of collections"
        raise unfit(settings, "keywords_of", words)
    shared = settings.shared
    owners = [each for each, own in config.collections.items() if not own.settings.shared]
    if shared and shared not in owners:
        raise refusal(("of",), f" is {show(shared)}; {suggestion(shared, owners)}")


def _check_stage(config: Config, name: str) -> None:
    """Refuse a split without judgments or labels, and a stage that does not fit its systems."""
    stage = config.stages[name]
    collection = config.collections[stage.collection]
    has_judgments = collection.ask(stage.collection, "judged").get(stage.split)
    if stage.labels and has_judgments:
        words = ", which has judgments; expected with labels: a split without them"
        raise unfit(stage, "split", words)
    is_labelled = stage.labels and has_judgments is False
    words = "" if is_labelled else collection.unfit(stage.collection, stage.split)
    if words:
        raise unfit(stage, "split", words)
    for trained, system in config.systems.items():
        if system.stage != name:
            continue
        start = systems.start_of(config, trained)
        stage.check_start(config.starts[start], f"starts.{start}")
        ranks_only = system.teacher and not config.systems[system.teacher].scores_draws
        if stage.random_negatives and ranks_only:
            words = f", but {system.teacher}, the teacher of systems.{trained}, scores only the "
            raise unfit(stage, "random_negatives", f"{words}passages that it ranks; expected 0")


def _check_targets(config: Config) -> None:
    """Refuse to measure unjudged splits and training splits; refuse systems without a measure."""
    evaluation = config.evaluation
    if config.systems and not any(evaluation.collections.values()):
        words = " names no split, but there are systems; expected at least one split"
        raise refusal(("evaluation", "collections"), words)
    learnt = {systems.trains_on(config, name): name for name in systems.trained(config)}
    for collection, split in systems.targets(config):
        keys = ("evaluation", "collections", collection)
        words = config.collections[collection].unfit(collection, split)
        if words:
            raise refusal(keys, f" is {show(split)}{words}")
        if (collection, split) in learnt:
            words = f" names {split}, on which systems.{learnt[collection, split]} is trained"
            raise refusal(keys, f"{words}; expected other splits")
    for collection, grades in evaluation.relevant.items():
        for split in grades:
            if split not in evaluation.collections.get(collection, ()):
                words = "which is not evaluated; expected splits of evaluation.collections"
                raise refusal(("evaluation", "relevant"), f" names {collection} {split}, {words}")
    for collection in evaluation.lengths:
        if collection not in evaluation.collections:
            words = suggestion(collection, evaluation.collections)
            words = f" is of a collection that is not evaluated; {words}"
            raise refusal(("evaluation", "lengths", collection), words)


def _check_measures(config: Config) -> None:
    """Refuse measures that ir_measures does not compute, or that exceed the depth of the runs."""
    evaluation = config.evaluation
    if evaluation.collections and not evaluation.measures:
        raise refusal(("evaluation", "measures"), " is []; expected at least one measure")
    if not collections.readable():
        return  # the job that computes the measures checks them
    for name in evaluation.measures:
        cutoff = read_measure(name).params.get("cutoff", 1)
        if cutoff > evaluation.depth:
            words = f" is {evaluation.depth}; expected from {cutoff}, the depth of {name}"
            raise refusal(("evaluation", "depth"), words)
