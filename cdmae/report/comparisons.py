"""Find the systems that may be compared: those whose recipes differ in one thing.

A recipe is everything that a system's numbers depend on: its encoder's settings, its stage's, and
the recipes of the systems that its negatives and its teacher come from. A part that only follows
the system's own encoder (stage-2 negatives mined by the stage 1 of the same encoder) says so
instead of repeating it, so that two chains that differ in the encoder differ in the encoder alone.
"""

from __future__ import annotations

import itertools
import math
from functools import cache
from typing import Any, NamedTuple

from cdmae.report.facts import Facts

# The paper's section 4.3 scales group and queries and keeps their product; a training ends with its
# last step, and steps stand in the place of epochs; the shares of equation 1 have one sum.
_COUPLED = (
    ("stage.group", "stage.queries"),
    ("encoder.steps", "encoder.take_step"),
    ("encoder.steps", "encoder.epochs"),
    ("encoder.mask_share", "encoder.random_share"),
)
UNIFORM = ("whole_word", "uniform")
_SOURCES = ("negatives", "teacher", "reranks")  # systems that a system is made from
_OF_ALL_ENCODERS = (
    "encoder.objective",
    "encoder.start",
    "encoder.seed",
)  # also of those that are not pre-trained


class Pair(NamedTuple):
    """`system` is compared with `reference`."""

    system: str
    reference: str


class Change(NamedTuple):
    """`system` is `reference` with one setting changed from `before` to `after`."""

    reference: str
    system: str
    setting: str
    before: Any
    after: Any


@cache
def recipe(facts: Facts, system: str, own: str = "") -> dict[str, Any]:
    """Return the recipe of a system: settings such as ``encoder.sigma``, and its sources' recipes.

    own: the encoder of the system that is asked for.
    """
    entry = facts.system(system)
    encoder, stage = (
        entry.get("encoder", ""),
        facts.entries("stages").get(entry.get("stage", ""), {}),
    )
    settings = {key: value for key, value in entry.items() if key not in ("encoder", "stage")}
    settings |= {
        key: recipe(facts, entry[key], own or encoder) for key in _SOURCES if entry.get(key)
    }
    settings |= {
        f"of.{index}": recipe(facts, name, own) for index, name in enumerate(settings.pop("of", ()))
    }
    settings |= {
        f"stage.{key}": value
        for key, value in stage.items()
        if key != "alpha" or entry.get("teacher")
    }
    if encoder and encoder == own:
        return settings | {"encoder": "own"}
    trained = facts.entries("encoders").get(encoder, {})
    of_importance = facts.entries("importance").get(trained.get("importance", ""), {})
    if "steps" in trained or "take_step" in trained:
        trained = {**trained, "take_step": last_step(facts, encoder)}
    names = ("importance", "snapshot_of")  # what they stand for is told by other settings
    settings |= {f"encoder.{key}": value for key, value in trained.items() if key not in names}
    return settings | {f"encoder.importance.{key}": value for key, value in of_importance.items()}


def last_step(facts: Facts, encoder: str) -> int:
    """Return the step of an encoder's weights; 0 if neither config nor training records it."""
    entry = facts.entries("encoders").get(encoder, {})
    trained = facts.encoders.get(encoder)
    return entry.get("take_step") or entry.get("steps") or (trained.steps if trained else 0)


@cache
def differences(facts: Facts, a: str, b: str) -> dict[str, tuple[Any, Any]]:
    """Return the settings in which two systems differ: name -> (value of a, value of b).

    Settings that belong together count as one.
    """
    first, second = recipe(facts, a), recipe(facts, b)
    keys = sorted(key for key in {**first, **second} if first.get(key) != second.get(key))
    if "encoder.objective" in keys and "none" in (
        first.get("encoder.objective"),
        second.get("encoder.objective"),
    ):
        keys = [key for key in keys if not key.startswith("encoder.") or key in _OF_ALL_ENCODERS]
    if (
        "encoder.decoder_masking" in keys
    ):  # what says nothing where the masking is not by importance
        keys = [
            key
            for key in keys
            if key != "encoder.sigma" and not key.startswith("encoder.importance.")
        ]
    for key, other in _COUPLED:
        if key in keys and other in keys:
            keys.remove(other)
    different = {key: (first.get(key), second.get(key)) for key in keys}
    sources = {
        key: tuple(facts.system(name).get(key) or "none" for name in (a, b)) for key in _SOURCES
    }
    different |= {key: names for key, names in sources.items() if key in different}
    return {
        key: both for key, both in different.items() if key not in sources or both[0] != both[1]
    }


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
def neighbours(facts: Facts) -> list[Change]:
    """Return all (reference, system) of retrievers that differ in one setting, in config order."""
    both = {
        pair: differences(facts, *pair) for pair in itertools.permutations(retrievers(facts), 2)
    }
    alone = {pair: settings for pair, settings in both.items() if len(settings) == 1}
    return [
        Change(*pair, setting, *values)
        for pair, settings in alone.items()
        for setting, values in settings.items()
    ]


def pairs(facts: Facts, setting: str, before: Any, *after: Any) -> list[tuple[str, str]]:
    """Return pairs of retrievers that differ in one setting alone.

    The first of a pair has the value `before`, the second one of `after`.
    """
    near = [
        change
        for change in neighbours(facts)
        if (change.setting, change.before) == (setting, before)
    ]
    return [(change.reference, change.system) for change in near if change.after in after]


def masking_pairs(facts: Facts) -> list[tuple[str, str]]:
    """Return (importance-aware, uniform) retrievers that differ in the decoder's masking alone.

    The pairs are in config order.
    """
    return pairs(facts, "encoder.decoder_masking", "importance", *UNIFORM)


def not_pretrained(facts: Facts, system: str) -> str:
    """Return the system that differs only in having no pre-training; "" if there is none."""
    objective = recipe(facts, system).get("encoder.objective")
    return next(
        (
            other
            for name, other in pairs(facts, "encoder.objective", objective, "none")
            if name == system
        ),
        "",
    )


@cache
def steps(facts: Facts) -> dict[str, str]:
    """Map each retriever to its source of negatives, where both have the same encoder."""
    encoders = {name: entry["encoder"] for name, entry in retrievers(facts).items()}
    before = {name: entry.get("negatives") for name, entry in retrievers(facts).items()}
    return {name: of for name, of in before.items() if encoders.get(of) == encoders[name]}


@cache
def chains(facts: Facts) -> list[list[str]]:
    """Return chains of retrievers from stage to stage.

    Each retriever takes its negatives from the retriever before it. Chains of length one are left
    out.
    """
    before = steps(facts)

    def until(name: str) -> list[str]:
        return [*until(before[name]), name] if name in before else [name]

    return [until(name) for name in before if name not in before.values()]


@cache
def changes(facts: Facts) -> list[Change]:
    """Return retrievers that differ from another in one setting, except the next stage and seeds.

    The reference is the one with the most such neighbours, one that masks by importance first; then
    the next that has some which are not yet in the list.
    """
    following = {frozenset(pair) for pair in steps(facts).items()}
    near: dict[str, list[Change]] = {name: [] for name in retrievers(facts)}
    for change in neighbours(facts):
        reference, name, setting, before, after = change
        untrained = (
            setting == "encoder.objective" and before == "none"
        )  # near to all: it lacks what they differ in
        if not (setting.endswith("seed") or untrained or {reference, name} in following):
            near[reference].append(Change(reference, name, setting, shown(before), shown(after)))

    by_importance = {
        name: recipe(facts, name).get("encoder.decoder_masking") == "importance" for name in near
    }
    listed: dict[str, Change | None] = {}  # by the changed system; None for a reference
    for reference in sorted(
        near, key=lambda name: (len(near[name]), by_importance[name]), reverse=True
    ):
        new = {change.system: change for change in near[reference] if change.system not in listed}
        if new:
            listed.setdefault(reference, None)
            listed |= new
    return [change for change in listed.values() if change]


@cache
def compared(facts: Facts) -> list[Pair]:
    """Return all comparisons of the report, each in one direction.

    p-values are corrected for the comparisons with one reference. A comparison that is shown in
    both directions belongs to the first of its references.
    """
    references = (facts.baseline, facts.bm25)
    others = [Pair(name, reference) for reference in references for name in facts.systems]
    masked = [Pair(*pair) for pair in masking_pairs(facts)]
    untrained = [Pair(name, not_pretrained(facts, name)) for name in retrievers(facts)]
    following = [Pair(*pair) for pair in steps(facts).items()]
    reordered = [Pair(name, facts.system(name).get("reranks", "")) for name in facts.systems]
    changed = [Pair(change.system, change.reference) for change in changes(facts)]
    listed: dict[frozenset[str], Pair] = {}
    for pair in [*others, *masked, *untrained, *following, *reordered, *changed]:
        if pair.reference and pair.system != pair.reference:
            listed.setdefault(frozenset(pair), pair)
    return list(listed.values())


@cache
def family(facts: Facts, reference: str) -> list[str]:
    """Return the systems that the report compares with `reference`."""
    return [pair.system for pair in compared(facts) if pair.reference == reference]


def arms(facts: Facts, setting: str) -> dict[Any, str]:
    """Return the largest set of retrievers that differ in one setting: value -> first retriever."""
    sets: dict[str, dict[Any, str]] = {}
    for change in neighbours(facts):
        if change.setting == setting:
            of_reference = sets.setdefault(change.reference, {change.before: change.reference})
            of_reference.setdefault(change.after, change.system)
    return max(sets.values(), key=len, default={})


@cache
def growth(facts: Facts) -> dict[str, list[tuple[int, str]]]:
    """Return the retrievers on each pre-training's steps, by encoder: (step, system), ascending.

    They are otherwise alike; step 0 is the one that is not pre-trained, where there is one.
    """
    encoders = {name: entry["encoder"] for name, entry in retrievers(facts).items()}
    source = {
        name: facts.entries("encoders")[of].get("snapshot_of") or of
        for name, of in encoders.items()
    }
    near = [change for change in neighbours(facts) if change.setting == "encoder.take_step"]
    points: dict[str, list[tuple[int, str]]] = {}
    for name, own in source.items():
        same = [
            name,
            *(one.system for one in near if one.reference == name and source[one.system] == own),
        ]
        if len(same) > max(1, len(points.get(own, []))):
            points[own] = sorted((last_step(facts, encoders[other]), other) for other in same)
    without = {own: not_pretrained(facts, several[-1][1]) for own, several in points.items()}
    return {
        own: [(0, without[own])] * bool(without[own]) + several for own, several in points.items()
    }


@cache
def repeated(facts: Facts) -> list[list[str]]:
    """Return the groups of retrievers that were trained with several seeds.

    The seeds come from `seeds`, or from entries that differ in their seed.
    """
    groups: dict[str, list[str]] = {}
    for name in retrievers(facts):
        between = {first: differences(facts, first, name) for first in groups}
        same = [
            first
            for first, keys in between.items()
            if keys and all(key.endswith("seed") for key in keys)
        ]
        groups.setdefault(next(iter(same), name), []).append(name)
    return [group for first, group in groups.items() if len(group) > 1 or first in facts.repeated]


def shown(value: Any) -> str:
    """Write the value of a setting as a table shows it."""
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, float):
        return "\N{INFINITY}" if math.isinf(value) else f"{value:g}"
    return "none" if value in (None, "") else str(value)
