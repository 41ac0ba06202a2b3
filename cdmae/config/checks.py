"""Check a config: its values, the references between its entries, and their kinds.

Checks that concern only one kind of entry are in its class. The job that makes a collection checks
its content.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from graphlib import CycleError, TopologicalSorter
from typing import TYPE_CHECKING, Any

from cdmae import collections
from cdmae.config import pretrained, systems
from cdmae.errors import InputError, Keys, missing
from cdmae.fields import named, show, suggestion, unfit

if TYPE_CHECKING:
    from ir_measures import Measure

    from cdmae.config.schema import Config

SPLIT = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")  # MS MARCO has a split dev.small
# Providers of ir_measures with pinned packages, so that the same package computes a measure
# everywhere. The provider of Accuracy is omitted: it divides by zero if every passage that a query
# found is relevant.
PROVIDERS = ("pytrec_eval", "msmarco", "judged", "compat")


def check_results(results: str) -> None:
    """Refuse a file as the results folder, and a path that the workflow cannot use."""
    if not re.fullmatch(r"[^\s*?\[\]{}<>:~-][^\s*?\[\]{}<>:]*", os.path.normpath(results)):
        words = "; expected a path without spaces, wildcards and colons, not from - or ~"
        raise InputError(f" is {show(results)}{words}", keys=("results",))
    if os.path.exists(results) and not os.path.isdir(results):
        words = ", which is a file; expected a folder, or a new path"
        raise InputError(f" is {show(results)}{words}", keys=("results",))


def is_read(results: str, folder: str) -> bool:
    """Return whether a folder of documents has the results folder in it, not as a hidden one."""
    found = os.path.relpath(os.path.realpath(results), os.path.realpath(os.path.expanduser(folder)))
    return not any(part.startswith(".") for part in found.split("/")) or found == "."


def check_lengths(lengths: Mapping[str, int], positions: int | None, owner: str) -> None:
    """Refuse lengths that exceed a model's maximum input.

    lengths: the lengths in tokens, by key of the config. positions: the maximum in tokens; None if
    only the job that loads the model knows it, which then checks again. owner: a description of the
    maximum for messages.
    """
    for key, length in lengths.items():
        if positions is not None and length > positions:
            raise InputError(f" is {length}; expected up to {positions}, {owner}", keys=(key,))


def check_order(section: str, entries: Mapping[str, Any]) -> None:
    """Refuse entries of a section that depend on each other in a circle; they must exist."""
    needs = {}
    for name, entry in entries.items():
        needs[name] = [other for _, other, mark in named(entry) if mark.section == section]
    try:
        TopologicalSorter(needs).prepare()
    except CycleError as error:
        circle = " -> ".join(error.args[1][::-1])
        words = f" depend on each other in a circle: {circle}; remove a reference"
        raise InputError(words, keys=(section,), kind="cycle") from None


def read_measure(name: str) -> Measure:
    """Parse a measure; refuse one that ir_measures cannot compute as a mean over queries."""
    try:
        import ir_measures  # 45 ms that few jobs need to pay
    except ModuleNotFoundError as error:
        raise missing(error) from None
    keys = ("evaluation", "measures")
    providers = [ir_measures.providers.registry[provider] for provider in PROVIDERS]
    try:
        measure = ir_measures.parse_measure(name)
        is_mean = isinstance(measure.aggregator(), ir_measures.MeanAgg)  # counts are summed
        fits = is_mean and any(provider.supports(measure) for provider in providers)
    except Exception:  # ir_measures raises any of Python's errors
        fits = False
    if not fits:
        words = f"expected means that {', '.join(PROVIDERS)} of ir_measures compute"
        words = f" has {show(name)}; {words}, such as nDCG@10 or R(rel=2)@1000"
        raise InputError(words, keys=keys)
    # (rel=1) has an effect where evaluation.relevant sets another grade
    if str(measure) != name.replace("(rel=1)", ""):
        words = f" has {show(name)}; expected {measure}, the notation of ir_measures"
        raise InputError(words, keys=keys)
    return measure


# --- entries against each other -------------------------------------------------------------------


def check(config: Config) -> None:
    """Check a config's entries against each other; each entry is valid by itself."""
    check_results(config.results)
    for name, collection in config.collections.items():
        collection.ask(name, "judged")  # refuses missing files
        if collection.source == "text" and is_read(config.results, collection.settings.path):
            words = f", in the folder of collections.{name}, whose files are read; expected another"
            raise InputError(f" is {show(config.results)}{words}", keys=("results",))
    _check_names(config)
    config.report.check(config.systems)
    sources = {name: collection.settings for name, collection in config.collections.items()}
    check_order("collections", sources)
    for section in ("encoders", "systems"):
        check_order(section, getattr(config, section))
    for name, start in config.starts.items():
        if start.checkpoint:
            pretrained.check(start.checkpoint, ("starts", name, "checkpoint"))
    for name, encoder in config.encoders.items():
        _within(("encoders", name), encoder.check, config)
    for name in config.stages:
        _within(("stages", name), _check_stage, config, name)
    for name, system in config.systems.items():
        _within(("systems", name), system.check, config, name)
    _check_targets(config)
    _check_measures(config)


def _within(place: Keys, check: Callable[..., None], *arguments: Any) -> None:
    """Check an entry, and prefix its keys to its errors."""
    try:
        check(*arguments)
    except InputError as error:
        raise error.within(*place) from None


def _check_names(config: Config) -> None:
    """Refuse references to entries that do not exist or have another kind."""
    entries: dict[Keys, Any] = {("evaluation",): config.evaluation}
    for section in ("collections", "starts", "importance", "encoders", "stages", "systems"):
        for name, entry in getattr(config, section).items():
            entries[section, name] = entry.settings if section == "collections" else entry
    mistakes = []
    for keys, entry in entries.items():
        for path, name, mark in named(entry):
            known = getattr(config, mark.section)
            kinds = (entry.kind,) if mark.same_kind else mark.kinds
            fitting = [other for other in known if not kinds or known[other].kind in kinds]
            if name not in fitting:
                reason = f"which is not in {mark.section}"
                if name in known:
                    reason = f"of kind {known[name].kind}"
                # no entry depends on itself
                others = [other for other in fitting if (mark.section, other) != keys]
                words = f" is {show(name)}, {reason}; {suggestion(name, others)}"
                mistakes.append(InputError(words, keys=(*keys, *path), kind="reference"))
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
        ranks_only = system.teacher and config.systems[system.teacher].kind != "reranker"
        scores = "passages that it ranks" if ranks_only else "mined passages, for labels"
        if stage.random_negatives and (ranks_only or stage.labels):
            words = f", but {system.teacher}, the teacher of systems.{trained}, scores only "
            raise unfit(stage, "random_negatives", f"{words}{scores}; expected 0")


def _check_targets(config: Config) -> None:
    """Refuse to measure unjudged splits and training splits; refuse systems without a measure."""
    evaluation = config.evaluation
    if config.systems and not any(evaluation.collections.values()):
        words = " names no split, but there are systems; expected at least one split"
        raise InputError(words, keys=("evaluation", "collections"))
    learnt = {systems.trains_on(config, name): name for name in systems.trained(config)}
    for collection, split in systems.targets(config):
        keys = ("evaluation", "collections", collection)
        words = config.collections[collection].unfit(collection, split)
        if words:
            raise InputError(f" is {show(split)}{words}", keys=keys)
        if (collection, split) in learnt:
            words = f" names {split}, on which systems.{learnt[collection, split]} is trained"
            raise InputError(f"{words}; expected other splits", keys=keys)
    for collection, grades in evaluation.relevant.items():
        for split in grades:
            if split not in evaluation.collections.get(collection, ()):
                keys = ("evaluation", "relevant", collection)
                words = f" names {split}, which is not evaluated; expected splits of "
                raise InputError(f"{words}evaluation.collections", keys=keys)


def _check_measures(config: Config) -> None:
    """Refuse measures that ir_measures does not compute, or that exceed the depth of the runs."""
    evaluation = config.evaluation
    if not collections.readable():
        return  # the job that computes the measures checks them
    for name in evaluation.measures:
        cutoff = read_measure(name).params.get("cutoff", 1)
        if cutoff > evaluation.depth:
            words = f" is {evaluation.depth}; expected at least {cutoff}, the depth of {name}"
            raise InputError(words, keys=("evaluation", "depth"))
