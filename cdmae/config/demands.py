"""Check entries of a config against each other: their names, kinds and cycles.

Checks that concern only one kind of entry are in its class. The job that makes a collection checks
its content, and the numbers of queries and passages that the stages need.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cdmae import collections
from cdmae.config import pretrained, systems
from cdmae.config.checks import check_lengths, check_results, in_order, read_measure
from cdmae.config.schema import SECTIONS, Config
from cdmae.errors import InputError
from cdmae.fields import Keys, moved, named, refusal, show, suggestion, unfit


def check(config: Config) -> None:
    """Check a config's entries against each other; each entry is valid by itself."""
    check_results(config.results)
    for name, collection in config.collections.items():
        collection.ask(name, "judged")  # refuses missing files
    _check_names(config)
    config.report.check(config.systems)
    for name, start in config.starts.items():
        if start.checkpoint:
            pretrained.check(start.checkpoint, ("starts", name, "checkpoint"))
    for name, encoder in config.encoders.items():
        _within(("encoders", name), encoder.check, config)
    for name in config.stages:
        _within(("stages", name), _check_stage, config, name)
    edges = {}
    for name, system in config.systems.items():
        edges[name] = [other for _, other, part in named(system) if part == "systems"]
    in_order("systems", edges)
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
            entries[section, name] = entry.settings if section == "collections" else entry
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


def _check_stage(config: Config, name: str) -> None:
    """Refuse a split without judgments or labels, and a stage that does not fit its systems."""
    stage = config.stages[name]
    collection = config.collections[stage.collection]
    if not stage.labels:
        words = collection.unfit(stage.collection, stage.split)
    elif collection.ask(stage.collection, "judged").get(stage.split) is False:
        words = ""
    else:
        words = "; expected with labels: a split without judgments"
    if words:
        raise unfit(stage, "split", words)
    for trained, system in config.systems.items():
        if system.stage != name:
            continue
        start = systems.start_of(config, trained)
        lengths = {key: getattr(stage, key) for key in stage.lengths}
        positions = config.starts[start].known_positions()
        check_lengths(lengths, positions, f"starts.{start}.positions")
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
                words = ", which is not evaluated; expected splits of evaluation.collections"
                raise refusal(("evaluation", "relevant", collection), f" names {split}{words}")


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
