"""List the report's comparisons: the pairs of systems that the config names.

`evaluation.baseline` and `report.compare` of the config name them. All sections and the paper's
exhibits select their pairs from this list, by the settings in which the two systems differ (see
`cdmae.report.recipes`).
"""

from __future__ import annotations

import itertools
from functools import cache
from typing import Any, NamedTuple

from cdmae.config.schema import EVERY
from cdmae.report.facts import Facts
from cdmae.report.recipes import differences, last_step, shown

UNIFORM = ("whole_word", "uniform")


class Pair(NamedTuple):
    """A comparison of `system` with `reference`."""

    system: str
    reference: str


class Change(NamedTuple):
    """A comparison of systems that differ in one setting.

    The setting is `before` in `reference`, and `after` in `system`.
    """

    reference: str
    system: str
    setting: str
    before: Any
    after: Any


@cache
def compared(facts: Facts) -> list[Pair]:
    """List all comparisons, each in one direction.

    The pairs of `report.compare` come first, in its order. Then every system is compared with
    `evaluation.baseline`, and with the systems of the entry ``"*"`` of `report.compare`. p-values
    are corrected over the comparisons with the same reference. Two systems that are listed in both
    directions are compared in the first direction.
    """
    named = [
        Pair(system, reference)
        for system, references in facts.report.compare.items()
        for reference in references
        if system != EVERY
    ]
    of_all = [
        Pair(system, reference)
        for reference in (facts.baseline, *facts.report.compare.get(EVERY, ()))
        for system in facts.systems
    ]
    listed: dict[frozenset[str], Pair] = {}
    for pair in [*named, *of_all]:
        if pair.system != pair.reference and set(pair) <= set(facts.systems):
            listed.setdefault(frozenset(pair), pair)
    return list(listed.values())


@cache
def family(facts: Facts, reference: str) -> list[str]:
    """List the systems that are compared with `reference`, in the order of the config."""
    names = {pair.system for pair in compared(facts) if pair.reference == reference}
    return [name for name in facts.systems if name in names]


def is_compared(facts: Facts, a: str, b: str) -> bool:
    """Return whether two systems are compared, in either direction."""
    listed = compared(facts)
    return Pair(a, b) in listed or Pair(b, a) in listed


@cache
def retrievers(facts: Facts) -> dict[str, dict[str, Any]]:
    """Return the entries of the retrievers that were measured, in config order."""
    entries = {name: facts.system(name) for name in facts.systems}
    kinds = {name: facts.kind(name) for name in entries}
    return {
        name: entry
        for name, entry in entries.items()
        if kinds[name].trained and kinds[name].searches
    }


@cache
def single_changes(facts: Facts) -> list[Change]:
    """List the compared retrievers that differ in one setting."""
    found = []
    for system, reference in compared(facts):
        if not {system, reference} <= set(retrievers(facts)):
            continue
        different = differences(facts, reference, system)
        if len(different) == 1:
            [(setting, (before, after))] = different.items()
            found.append(Change(reference, system, setting, before, after))
    return found


def pairs(facts: Facts, setting: str, before: Any, *after: Any) -> list[tuple[str, str]]:
    """List the compared retrievers that differ only in one setting, in either direction.

    The first of a pair has the value `before`, the second has one of the values `after`.
    """
    found = []
    for change in single_changes(facts):
        if change.setting != setting:
            continue
        if change.before == before and change.after in after:
            found.append((change.reference, change.system))
        elif change.after == before and change.before in after:
            found.append((change.system, change.reference))
    return found


def masking_pairs(facts: Facts) -> list[tuple[str, str]]:
    """List pairs of retrievers (importance-aware, uniform) that differ only in their masking."""
    return pairs(facts, "encoder.decoder_masking", "importance", *UNIFORM)


def not_pretrained(facts: Facts, system: str) -> str:
    """Return the compared system that differs only in lacking pre-training; "" if none exists."""
    for change in single_changes(facts):
        if change.setting != "encoder.objective":
            continue
        if change.system == system and change.before == "none":
            return change.reference
        if change.reference == system and change.after == "none":
            return change.system
    return ""


@cache
def changes(facts: Facts) -> list[Change]:
    """List the single changes, except to the next stage, to later steps, or to another seed."""
    following = {frozenset(pair) for pair in steps(facts).items()}
    for points in growth(facts).values():
        names = [name for _, name in points]
        following |= {frozenset(pair) for pair in itertools.pairwise(names)}
    return [
        change._replace(before=shown(change.before), after=shown(change.after))
        for change in single_changes(facts)
        if not change.setting.endswith("seed")
        and frozenset([change.reference, change.system]) not in following
    ]


def arms(facts: Facts, setting: str) -> dict[Any, str]:
    """Return the largest set of retrievers that differ in one setting: one retriever per value.

    All of them are compared with the same reference, which also belongs to the set.
    """
    sets: dict[str, dict[Any, str]] = {}
    for change in single_changes(facts):
        if change.setting == setting:
            of_reference = sets.setdefault(change.reference, {change.before: change.reference})
            of_reference.setdefault(change.after, change.system)
    return max(sets.values(), key=len, default={})


@cache
def repeated(facts: Facts) -> list[list[str]]:
    """List the groups of retrievers that were trained with several seeds.

    The seeds come from the config's `seeds`, or from compared entries that differ only in their
    seeds.
    """
    first_of: dict[str, str] = {}
    for system, reference in compared(facts):
        different = differences(facts, reference, system)
        if different and all(key.endswith("seed") for key in different):
            first_of[system] = first_of.get(reference, reference)
    groups: dict[str, list[str]] = {}
    for name in retrievers(facts):
        groups.setdefault(first_of.get(name, name), []).append(name)
    return [group for first, group in groups.items() if len(group) > 1 or first in facts.repeated]


# --- stages, and steps of pre-training ------------------------------------------------------------


@cache
def steps(facts: Facts) -> dict[str, str]:
    """Map each retriever to the retriever that provides its negatives, if both share an encoder."""
    encoders = {name: entry["encoder"] for name, entry in retrievers(facts).items()}
    before = {name: entry.get("negatives") for name, entry in retrievers(facts).items()}
    return {name: of for name, of in before.items() if encoders.get(of) == encoders[name]}


@cache
def chains(facts: Facts) -> list[list[str]]:
    """List chains of at least two retrievers, in the order of their stages.

    Each retriever takes its negatives from the retriever before it.
    """
    before = steps(facts)

    def until(name: str) -> list[str]:
        return [*until(before[name]), name] if name in before else [name]

    return [until(name) for name in before if name not in before.values()]


@cache
def growth(facts: Facts) -> dict[str, list[tuple[int, str]]]:
    """Map encoders to the retrievers trained from their snapshots: (step, system), ascending.

    The retrievers of an encoder differ only in the step of the snapshot. Step 0 is the compared
    retriever without pre-training, if there is one.
    """
    families: dict[str, list[str]] = {}
    encoders = facts.entries("encoders")
    for name, entry in retrievers(facts).items():
        source = encoders[entry["encoder"]].get("snapshot_of") or entry["encoder"]
        families.setdefault(source, []).append(name)
    points: dict[str, list[tuple[int, str]]] = {}
    for source, names in families.items():
        alike = max((_other_steps(facts, name, names) for name in names), key=len)
        if len(alike) > 1:
            points[source] = sorted(
                (last_step(facts, facts.encoder_of(name)), name) for name in alike
            )
            without = not_pretrained(facts, points[source][-1][1])
            if without:
                points[source].insert(0, (0, without))
    return points


def _other_steps(facts: Facts, name: str, names: list[str]) -> list[str]:
    """List `name` and the retrievers that differ from it only in the step of their weights."""
    others = [
        other for other in names if list(differences(facts, name, other)) == ["encoder.take_step"]
    ]
    return [name, *others]
