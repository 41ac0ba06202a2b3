"""Which systems may be compared: those whose recipes differ in one thing.

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
_UNIFORM = ("whole_word", "uniform")


class Change(NamedTuple):
    """`system` is `reference` with one setting changed from `before` to `after`."""

    reference: str
    system: str
    setting: str
    before: str
    after: str


@cache
def recipe(facts: Facts, system: str, own: str = "") -> dict[str, Any]:
    """The flattened recipe of a system; `own` is the encoder of the system it is asked for."""
    entry = facts.entries("systems").get(system, {})
    encoder = entry.get("encoder", "")
    found: dict[str, Any] = {"kind": entry.get("kind", "")}
    for key, value in entry.items():
        if key in ("negatives", "teacher", "reranks") and value:
            found |= {f"{key}.{name}": each for name, each in recipe(facts, value, own or encoder).items()}
        elif key == "of":
            for index, name in enumerate(value):
                found |= {f"of.{index}.{each}": given for each, given in recipe(facts, name, own).items()}
        elif key == "stage" and value:
            stage = facts.entries("stages").get(value, {})
            unused = () if entry.get("teacher") else ("alpha",)
            found |= {f"stage.{name}": each for name, each in stage.items() if name not in unused}
        elif key == "encoder" and value:
            if value == own:
                found["encoder"] = "own"
            else:
                found |= {f"encoder.{name}": each for name, each in _encoder(facts, value).items()}
        elif key != "kind":
            found[key] = value
    return found


def _encoder(facts: Facts, name: str) -> dict[str, Any]:
    """The settings of an encoder: those of its importance instead of the name, and the step whose weights it has."""
    entry = facts.entries("encoders").get(name, {})
    found = {key: value for key, value in entry.items() if key not in ("importance", "snapshot_of")}
    of_importance = facts.entries("importance").get(entry.get("importance", ""), {})
    found |= {f"importance.{key}": value for key, value in of_importance.items()}
    if "steps" in entry or "take_step" in entry:
        found["take_step"] = last_step(facts, name)
    return found


def last_step(facts: Facts, encoder: str) -> int:
    """The step whose weights an encoder has; 0 where neither the config nor the training tells."""
    entry = facts.entries("encoders").get(encoder, {})
    trained = facts.encoders.get(encoder)
    return entry.get("take_step") or entry.get("steps") or (trained.steps if trained else 0)


@cache
def differences(facts: Facts, a: str, b: str) -> dict[str, tuple[Any, Any]]:
    """The settings in which two systems differ: name -> (of a, of b). Settings that go together are one."""
    first, second = recipe(facts, a), recipe(facts, b)
    keys = {key for key in {**first, **second} if first.get(key) != second.get(key)}
    found = {key: (first.get(key), second.get(key)) for key in sorted(keys)}
    if "none" in found.get("encoder.objective", ()):  # of an encoder that is not pre-trained only the start counts
        found = {key: value for key, value in found.items() if _kept_without_pretraining(key)}
    if "encoder.decoder_masking" in found:
        found = {key: value for key, value in found.items() if not _of_importance(key)}
    for key, other in _COUPLED:
        if key in found and other in found:
            del found[other]
    for part in ("negatives", "teacher", "reranks"):
        inner = [key for key in found if key.startswith(part + ".")]
        names = tuple(facts.entries("systems")[name].get(part) or "none" for name in (a, b))
        found = {key: value for key, value in found.items() if key not in inner}
        if inner and names[0] != names[1]:
            found[part] = names
    return found


@cache
def masking_pairs(facts: Facts) -> list[tuple[str, str]]:
    """(Importance-aware, uniform): retrievers that differ in the decoder's masking alone, in the config's order."""
    pairs = []
    for a in _retrievers(facts):
        for b in _retrievers(facts):
            found = differences(facts, a, b)
            before_after = found.get("encoder.decoder_masking", ("", ""))
            if len(found) == 1 and before_after[0] == "importance" and before_after[1] in _UNIFORM:
                pairs.append((a, b))
    return pairs


@cache
def not_pretrained(facts: Facts, system: str) -> str:
    """The system that is like `system` but for its pre-training, which it lacks; nothing if there is none."""
    for other in _retrievers(facts):
        found = differences(facts, system, other)
        if list(found) == ["encoder.objective"] and found["encoder.objective"][1] == "none":
            return other
    return ""


@cache
def steps(facts: Facts) -> list[tuple[str, str]]:
    """(Before, after): a retriever and the one that takes its negatives from it, with the same encoder."""
    systems = facts.entries("systems")
    return [
        (systems[name]["negatives"], name)
        for name in _retrievers(facts)
        if systems[name].get("negatives") in _retrievers(facts)
        and systems[systems[name]["negatives"]].get("encoder") == systems[name].get("encoder")
    ]


@cache
def chains(facts: Facts) -> list[list[str]]:
    """Retrievers from stage to stage: each takes its negatives from the one before; chains of one left out."""
    after: dict[str, list[str]] = {}
    for before, name in steps(facts):
        after.setdefault(before, []).append(name)
    first = [name for name in after if name not in {each for following in after.values() for each in following}]

    def follow(name: str) -> list[list[str]]:
        return [[name, *rest] for following in after.get(name, []) for rest in follow(following)] or [[name]]

    return [chain for name in first for chain in follow(name)]


@cache
def changes(facts: Facts) -> list[Change]:
    """Retrievers that are another one with one setting changed, the next stage and seeds apart.

    The reference is the one with the most such neighbours, one that masks by importance first; then the next that has
    some which are not yet in the list.
    """
    near = _neighbours(facts)
    found: list[Change] = []
    listed: set[str] = set()
    for reference in sorted(near, key=lambda name: (-len(near[name]), not _importance(facts, name))):
        new = [change for change in near[reference] if change.system not in listed]
        found += new
        listed |= {reference, *(change.system for change in new)} if new else set()
    return found


def _neighbours(facts: Facts) -> dict[str, list[Change]]:
    names, following = _retrievers(facts), set(steps(facts))
    near: dict[str, list[Change]] = {name: [] for name in names}
    for reference, name in itertools.permutations(names, 2):
        found = differences(facts, reference, name)
        if len(found) != 1 or (reference, name) in following or (name, reference) in following:
            continue
        setting, (before, after) = next(iter(found.items()))
        untrained = setting == "encoder.objective" and before == "none"  # near to all: it lacks what they differ in
        if not setting.endswith("seed") and not untrained:
            near[reference].append(Change(reference, name, setting, shown(before), shown(after)))
    return near


@cache
def arms(facts: Facts, setting: str) -> dict[Any, str]:
    """The largest set of retrievers that differ in one setting alone: its value -> the first system that has it."""
    best: dict[Any, str] = {}
    for name in _retrievers(facts):
        same = {recipe(facts, name)[setting]: name}
        for other in _retrievers(facts):
            found = differences(facts, name, other)
            if list(found) == [setting]:
                same.setdefault(found[setting][1], other)
        best = max(best, same, key=len)
    return best if len(best) > 1 else {}


@cache
def growth(facts: Facts) -> dict[str, list[tuple[int, str]]]:
    """Retrievers that start from steps of one pre-training, by its encoder: (step, system), ascending.

    They are otherwise alike; step 0 is the one that is not pre-trained, where there is one.
    """
    encoders, systems = facts.entries("encoders"), facts.entries("systems")
    found: dict[str, list[tuple[int, str]]] = {}
    for name in _retrievers(facts):
        encoder = systems[name]["encoder"]
        source = encoders[encoder].get("snapshot_of") or encoder
        same = [
            other
            for other in _retrievers(facts)
            if source in (systems[other]["encoder"], encoders[systems[other]["encoder"]].get("snapshot_of"))
            and list(differences(facts, name, other)) in ([], ["encoder.take_step"])
        ]
        if len(same) > max(1, len(found.get(source, []))):
            found[source] = sorted((last_step(facts, systems[other]["encoder"]), other) for other in same)
    for source, points in found.items():
        without = not_pretrained(facts, points[-1][1])
        found[source] = [*([(0, without)] if without else []), *points]
    return found


@cache
def alike(facts: Facts) -> list[list[str]]:
    """All retrievers, in groups that differ in seeds alone."""
    groups: list[list[str]] = []
    for name in _retrievers(facts):
        for group in groups:
            found = differences(facts, group[0], name)
            if found and all(key.endswith("seed") for key in found):
                group.append(name)
                break
        else:
            groups.append([name])
    return groups


def repeated(facts: Facts) -> list[list[str]]:
    """The groups of retrievers that were trained with several seeds, by `seeds` or as entries that differ in theirs."""
    several = {system for system, _, _ in facts.repeated}
    return [group for group in alike(facts) if len(group) > 1 or group[0] in several]


def seed_deviation(facts: Facts, target: Target, measure: str) -> float:
    """The standard deviation over seeds, pooled over what was repeated; nan where nothing was."""
    squares, freedom = 0.0, 0
    for group in repeated(facts):
        values = [value for name in group for value in facts.by_seed(name, target, measure)]
        mean = sum(values) / len(values) if values else 0.0
        squares += sum((value - mean) ** 2 for value in values)
        freedom += max(len(values) - 1, 0)
    return math.sqrt(squares / freedom) if freedom else math.nan


def noise(facts: Facts, target: Target, measure: str) -> float:
    """The band in which a difference of two systems, each trained once, may be due to their seeds."""
    deviation = seed_deviation(facts, target, measure)
    return facts.noise if math.isnan(deviation) else max(facts.noise, 1.96 * math.sqrt(2) * deviation)


def pooled(found: list[Difference]) -> Difference:
    """The mean of differences over collections, each counting once; the queries of different ones are independent."""
    if len(found) == 1:
        return found[0]
    mean = math.fsum(each.difference for each in found) / len(found)
    half = math.sqrt(math.fsum(((each.high - each.low) / 2) ** 2 for each in found)) / len(found)
    p = math.erfc(abs(mean) / half * 1.96 / math.sqrt(2)) if half else 1.0  # of a normal with that 95 % interval
    a, b = (math.fsum(getattr(each, side) for each in found) / len(found) for side in ("a", "b"))
    return Difference(a, b, mean, p, mean - half, mean + half, sum(each.queries for each in found))


def is_uniform(encoder: dict[str, Any]) -> bool:
    """Whether an encoder's decoder is masked at random, by words or by word-pieces."""
    return encoder.get("decoder_masking") in _UNIFORM


def _retrievers(facts: Facts) -> list[str]:
    systems = facts.entries("systems")
    return [name for name in facts.systems if systems.get(name, {}).get("kind") == "retriever"]


def _importance(facts: Facts, system: str) -> bool:
    encoder = facts.entries("encoders").get(facts.entries("systems")[system].get("encoder", ""), {})
    return encoder.get("decoder_masking") == "importance"


def _of_importance(key: str) -> bool:
    """Whether a setting says nothing where the masking is not by importance."""
    return key == "encoder.sigma" or key.startswith("encoder.importance.")


def _kept_without_pretraining(key: str) -> bool:
    return not key.startswith("encoder.") or key in ("encoder.objective", "encoder.start", "encoder.seed")


def shown(value: Any) -> str:
    """The value of a setting as a table shows it."""
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, float):
        return "\N{INFINITY}" if math.isinf(value) else f"{value:g}"
    return "none" if value in (None, "") else str(value)
