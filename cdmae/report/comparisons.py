"""Find the systems that may be compared: those whose recipes differ in one thing.

A recipe is everything that a system's numbers depend on, flattened: its encoder's settings, its stage's, and those of
the systems that its negatives and its teacher come from. A part that only follows the system's own encoder (stage-2
negatives mined by the stage 1 of the same encoder) says so instead of repeating it, so that two chains that differ in
the encoder differ in the encoder alone.
"""

from __future__ import annotations

import itertools
import math
from functools import cache
from typing import Any, NamedTuple

from cdmae.report.facts import Difference, Facts, Target

# The paper's section 4.3 scales group and queries and keeps their product; a training ends with its last step, and
# steps stand in the place of epochs; the shares of equation 1 have one sum.
_COUPLED = (
    ("stage.group", "stage.queries"),
    ("encoder.steps", "encoder.take_step"),
    ("encoder.steps", "encoder.epochs"),
    ("encoder.mask_share", "encoder.random_share"),
)
UNIFORM = ("whole_word", "uniform")
_OF_ALL_ENCODERS = ("encoder.objective", "encoder.start", "encoder.seed")  # also of those that are not pre-trained


class Change(NamedTuple):
    """`system` is `reference` with one setting changed from `before` to `after`."""

    reference: str
    system: str
    setting: str
    before: str
    after: str


@cache
def recipe(facts: Facts, system: str, own: str = "") -> dict[str, Any]:
    """Return the flattened recipe of a system; `own` is the encoder of the system it is asked for."""
    entry = facts.entries("systems").get(system, {})
    encoder = entry.get("encoder", "")
    parts: dict[str, dict[str, Any]] = {}  # by the prefix of their settings
    settings: dict[str, Any] = {"kind": entry.get("kind", "")}
    for key, value in entry.items():
        if key in ("negatives", "teacher", "reranks") and value:
            parts[key] = recipe(facts, value, own or encoder)
        elif key == "of":
            parts |= {f"of.{index}": recipe(facts, name, own) for index, name in enumerate(value)}
        elif key == "stage" and value:
            parts[key] = dict(facts.entries("stages").get(value, {}))
            if not entry.get("teacher"):
                parts[key].pop("alpha", None)
        elif key == "encoder" and value and value == own:
            settings[key] = "own"
        elif key == "encoder" and value:
            parts[key] = _encoder(facts, value)
        else:
            settings[key] = value
    return settings | {f"{part}.{key}": value for part, inner in parts.items() for key, value in inner.items()}


def _encoder(facts: Facts, name: str) -> dict[str, Any]:
    """Return the settings of an encoder: those of its importance instead of the name, and the step of its weights."""
    entry = facts.entries("encoders").get(name, {})
    settings = {key: value for key, value in entry.items() if key not in ("importance", "snapshot_of")}
    of_importance = facts.entries("importance").get(entry.get("importance", ""), {})
    settings |= {f"importance.{key}": value for key, value in of_importance.items()}
    if "steps" in entry or "take_step" in entry:
        settings["take_step"] = last_step(facts, name)
    return settings


def last_step(facts: Facts, encoder: str) -> int:
    """Return the step whose weights an encoder has; 0 where neither the config nor the training tells."""
    entry = facts.entries("encoders").get(encoder, {})
    trained = facts.encoders.get(encoder)
    return entry.get("take_step") or entry.get("steps") or (trained.steps if trained else 0)


@cache
def differences(facts: Facts, a: str, b: str) -> dict[str, tuple[Any, Any]]:
    """Return the settings in which two systems differ: name -> (of a, of b). Settings that go together are one."""
    first, second = recipe(facts, a), recipe(facts, b)
    keys = sorted(key for key in {**first, **second} if first.get(key) != second.get(key))
    if "encoder.objective" in keys and "none" in (first.get("encoder.objective"), second.get("encoder.objective")):
        keys = [key for key in keys if not key.startswith("encoder.") or key in _OF_ALL_ENCODERS]
    if "encoder.decoder_masking" in keys:  # what says nothing where the masking is not by importance
        keys = [key for key in keys if key != "encoder.sigma" and not key.startswith("encoder.importance.")]
    for key, other in _COUPLED:
        if key in keys and other in keys:
            keys.remove(other)
    different = {key: (first.get(key), second.get(key)) for key in keys}
    for part in ("negatives", "teacher", "reranks"):
        inner = [key for key in different if key.startswith(part + ".")]
        names = tuple(facts.entries("systems")[name].get(part) or "none" for name in (a, b))
        different = {key: value for key, value in different.items() if key not in inner}
        if inner and names[0] != names[1]:
            different[part] = names
    return different


@cache
def masking_pairs(facts: Facts) -> list[tuple[str, str]]:
    """Return (importance-aware, uniform) retrievers that differ in the decoder's masking alone, in config order."""
    key = "encoder.decoder_masking"
    maskings = [{key: ("importance", uniform)} for uniform in UNIFORM]
    return [pair for pair in itertools.product(_retrievers(facts), repeat=2) if differences(facts, *pair) in maskings]


@cache
def not_pretrained(facts: Facts, system: str) -> str:
    """Return the system that is like `system` but for its pre-training, which it lacks; nothing if there is none."""
    for other in _retrievers(facts):
        different = differences(facts, system, other)
        if list(different) == ["encoder.objective"] and different["encoder.objective"][1] == "none":
            return other
    return ""


@cache
def steps(facts: Facts) -> list[tuple[str, str]]:
    """Return (before, after): a retriever and the one that takes its negatives from it, with the same encoder."""
    systems = facts.entries("systems")
    retrievers = {name: systems[name] for name in _retrievers(facts)}
    pairs = [(entry.get("negatives"), name) for name, entry in retrievers.items()]
    return [
        (before, name)
        for before, name in pairs
        if before in retrievers and retrievers[before].get("encoder") == retrievers[name].get("encoder")
    ]


@cache
def chains(facts: Facts) -> list[list[str]]:
    """Return retrievers from stage to stage: each takes its negatives from the one before; chains of one left out."""

    def follow(name: str) -> list[list[str]]:
        after = [after for before, after in steps(facts) if before == name]
        return [[name, *rest] for following in after for rest in follow(following)] or [[name]]

    followers = {after for _, after in steps(facts)}
    first = dict.fromkeys(before for before, _ in steps(facts) if before not in followers)
    return [chain for name in first for chain in follow(name)]


@cache
def changes(facts: Facts) -> list[Change]:
    """Return retrievers that are another one with one setting changed, the next stage and seeds apart.

    The reference is the one with the most such neighbours, one that masks by importance first; then the next that has
    some which are not yet in the list.
    """
    names, following = _retrievers(facts), set(steps(facts))
    near: dict[str, list[Change]] = {name: [] for name in names}
    for reference, name in itertools.permutations(names, 2):
        different = differences(facts, reference, name)
        if len(different) != 1 or (reference, name) in following or (name, reference) in following:
            continue
        [(setting, (before, after))] = different.items()
        untrained = setting == "encoder.objective" and before == "none"  # near to all: it lacks what they differ in
        if not setting.endswith("seed") and not untrained:
            near[reference].append(Change(reference, name, setting, shown(before), shown(after)))

    def order(name: str) -> tuple[int, bool]:
        encoder = facts.entries("encoders").get(facts.entries("systems")[name].get("encoder", ""), {})
        return -len(near[name]), encoder.get("decoder_masking") != "importance"

    listed: dict[str, Change | None] = {}  # by the changed system; None for a reference
    for reference in sorted(near, key=order):
        new = {change.system: change for change in near[reference] if change.system not in listed}
        if new:
            listed.setdefault(reference, None)
            listed |= new
    return [change for change in listed.values() if change]


@cache
def arms(facts: Facts, setting: str) -> dict[Any, str]:
    """Return the largest set of retrievers that differ in one setting alone: its value -> the first that has it."""
    best: dict[Any, str] = {}
    for name in _retrievers(facts):
        same = {recipe(facts, name)[setting]: name}
        for other in _retrievers(facts):
            different = differences(facts, name, other)
            if list(different) == [setting]:
                same.setdefault(different[setting][1], other)
        best = max(best, same, key=len)
    return best if len(best) > 1 else {}


@cache
def growth(facts: Facts) -> dict[str, list[tuple[int, str]]]:
    """Return retrievers that start from steps of one pre-training, by its encoder: (step, system), ascending.

    They are otherwise alike; step 0 is the one that is not pre-trained, where there is one.
    """
    encoders, systems = facts.entries("encoders"), facts.entries("systems")
    encoder_of = {name: systems[name]["encoder"] for name in _retrievers(facts)}
    source_of = {name: encoders[encoder].get("snapshot_of") or encoder for name, encoder in encoder_of.items()}
    points: dict[str, list[tuple[int, str]]] = {}
    for name, source in source_of.items():
        same = [
            (last_step(facts, encoder_of[other]), other)
            for other, other_source in source_of.items()
            if other_source == source and list(differences(facts, name, other)) in ([], ["encoder.take_step"])
        ]
        if len(same) > max(1, len(points.get(source, []))):
            points[source] = sorted(same)
    without = {source: not_pretrained(facts, own[-1][1]) for source, own in points.items()}
    return {source: [*([(0, without[source])] if without[source] else []), *own] for source, own in points.items()}


@cache
def repeated(facts: Facts) -> list[list[str]]:
    """Return the groups of retrievers trained with several seeds: by `seeds`, or as entries that differ in theirs."""
    groups: list[list[str]] = []
    for name in _retrievers(facts):
        for group in groups:
            different = differences(facts, group[0], name)
            if different and all(key.endswith("seed") for key in different):
                group.append(name)
                break
        else:
            groups.append([name])
    several = {system for system, _, _ in facts.repeated}
    return [group for group in groups if len(group) > 1 or group[0] in several]


def seed_deviation(facts: Facts, target: Target, measure: str) -> float:
    """Return the standard deviation over seeds, pooled over what was repeated; nan where nothing was."""
    squares, freedom = 0.0, 0
    for group in repeated(facts):
        values = [value for name in group for value in facts.by_seed(name, target, measure)]
        mean = sum(values) / len(values) if values else 0.0
        squares += sum((value - mean) ** 2 for value in values)
        freedom += max(len(values) - 1, 0)
    return math.sqrt(squares / freedom) if freedom else math.nan


def noise(facts: Facts, target: Target, measure: str) -> float:
    """Return the band in which a difference of two systems, each trained once, may be due to their seeds."""
    deviation = seed_deviation(facts, target, measure)
    return facts.noise if math.isnan(deviation) else max(facts.noise, 1.96 * math.sqrt(2) * deviation)


def pooled(several: list[Difference]) -> Difference:
    """Average differences over collections, each counting once; the queries of different ones are independent."""
    if len(several) == 1:
        return several[0]
    a, b, mean = (math.fsum(getattr(one, name) for one in several) / len(several) for name in ("a", "b", "difference"))
    half = math.sqrt(math.fsum(((one.high - one.low) / 2) ** 2 for one in several)) / len(several)
    p = math.erfc(abs(mean) / half * 1.96 / math.sqrt(2)) if half else 1.0  # of a normal with that 95 % interval
    return Difference(a, b, mean, p, mean - half, mean + half, sum(one.queries for one in several))


def shown(value: Any) -> str:
    """Write the value of a setting as a table shows it."""
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, float):
        return "\N{INFINITY}" if math.isinf(value) else f"{value:g}"
    return "none" if value in (None, "") else str(value)


def _retrievers(facts: Facts) -> list[str]:
    systems = facts.entries("systems")
    return [name for name in facts.systems if systems.get(name, {}).get("kind") == "retriever"]
