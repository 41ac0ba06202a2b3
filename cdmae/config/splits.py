"""Choose the split that decides which system is best, and the split whose numbers are reported.

A number of a system that was chosen by it is too high. Therefore another split is reported than the
one that decides, wherever there are two.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from cdmae.config import systems

if TYPE_CHECKING:
    from cdmae.config.schema import Config

FEW = 30  # queries; a run with fewer may be too small to show a difference
# names of splits for choosing, such as dev, dev2, dev/small and validation
_DEV = re.compile(r"(dev|development|validation|valid|val|eval)(?![a-z])", re.IGNORECASE)
_TEST = re.compile(r"test(?![a-z])", re.IGNORECASE)
Split = tuple[str, str]  # a collection and its split


def is_dev(split: str) -> bool:
    """Return whether a split is one for choosing, by its name."""
    return _DEV.match(split) is not None


def roles(config: Config) -> tuple[Split, Split] | None:
    """Return the split that decides which system is best, and the one whose numbers are reported.

    They are equal only if no other evaluated split could decide; None if nothing is evaluated.
    A split for choosing decides, or else one that the weights of a fusion are tuned on, or else
    the first. A test split is reported, or else one that is neither tuned on nor for choosing. For
    a collection with a single split, a split of another one decides, on which weights are tuned.
    """
    collection = main_collection(config)
    if not collection:
        return None
    splits = config.evaluation.collections[collection]
    fusions = [system for system in config.systems.values() if system.kind == "fusion"]
    tuned_on = [system.tuned_on for system in fusions if system.tuned_on]
    tuned = {split for name, split in tuned_on if name == collection}
    elsewhere = [(name, split) for name, split in tuned_on if name != collection]
    if len(splits) == 1 and elsewhere:
        return elsewhere[0], (collection, splits[0])
    deciding = min(splits, key=lambda split: _last_to_decide(split, tuned))
    rest = [split for split in splits if split != deciding and split not in tuned]
    reported = max(rest, key=_first_to_report, default=deciding)
    return (collection, deciding), (collection, reported)


def deciding(config: Config, queries: Mapping[tuple[str, str], int]) -> Split:
    """Return which of the two splits of `roles` decides which system to use.

    Queries that people asked choose instead of queries that were made from passages, unless there
    are fewer than `FEW`. queries: their number on each evaluated split.
    """
    deciding, reported = roles(config)
    made = [on for on in (deciding, reported) if config.collections[on[0]].source == "pseudo"]
    if made == [deciding] and queries.get(reported, 0) >= FEW:
        return reported
    return deciding


def _last_to_decide(split: str, tuned: Collection[str]) -> tuple[bool, ...]:
    return not is_dev(split), split not in tuned, _TEST.match(split) is not None


def _first_to_report(split: str) -> tuple[bool, ...]:
    return _TEST.match(split) is not None, not is_dev(split)


def main_collection(config: Config) -> str:
    """Return the first evaluated collection that is trained on, or else the first; "" without one.

    Queries that were made from passages only stand in for judged ones: another evaluated collection
    with questions about the same passages is the main one.
    """
    evaluated = [name for name, splits in config.evaluation.collections.items() if splits]
    trained = {systems.trains_on(config, name)[0] for name in systems.trained(config)}
    candidates = [name for name in evaluated if name in trained] or evaluated
    if not candidates:
        return ""
    first = config.collections[candidates[0]]
    if first.source == "pseudo":
        for name in evaluated:
            asked = config.collections[name]
            passages = config.collections[config.owner(name)].settings
            if asked.source != "pseudo" and passages == first.settings.base:
                return name
    return candidates[0]
