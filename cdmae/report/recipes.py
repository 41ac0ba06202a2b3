"""Describe a system by its recipe, and two systems by the settings in which their recipes differ.

A recipe is everything that a system's numbers depend on: the settings of its encoder and its stage,
and the recipes of the systems that provide its negatives and teach it. If such a system has the
same encoder, a mark replaces the encoder's settings. Two chains of stages with different encoders
therefore differ only in the encoder.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any

from cdmae.config.kinds import LEARNT_FROM
from cdmae.report.facts import Facts

# the keys of systems from which a system is built
SOURCES = (*LEARNT_FROM, "reranks")
# names of entries, whose settings are in the recipe instead, and `once`, which decides how often
# the same recipe is trained
NAMES = ("encoder", "stage", "once", "importance")
# settings of all encoders, including those without pre-training
OF_ALL_ENCODERS = ("encoder.objective", "encoder.start", "encoder.seed")
# settings that another setting may leave without effect: the masks, or the number of steps
OPTIONAL = ("encoder.epochs", "encoder.importance", "encoder.sigma")


@cache
def recipe(facts: Facts, system: str, own: str = "") -> dict[str, Any]:
    """Return a system's settings, such as ``encoder.sigma``, and the recipes of its sources.

    own: the encoder of the system at which the recursion began.
    """
    entry = facts.entry(system)
    settings = {key: value for key, value in entry.values().items() if key not in NAMES}
    for key in SOURCES:
        if settings.get(key):
            settings[key] = recipe(facts, settings[key], own or entry.encoder)
    if entry.kind == "fusion":
        settings["of"] = [recipe(facts, name, own) for name in entry.parts()]
    if entry.stage:
        stage = facts.config.stages[entry.stage].values(is_taught=entry.is_taught)
        settings |= {f"stage.{key}": value for key, value in stage.items()}
    if not entry.encoder:
        return settings
    if entry.encoder == own:
        return settings | {"encoder": "own"}
    encoder = facts.config.encoders[entry.encoder]
    pretraining = encoder.values()
    if encoder.importance:
        importance = facts.config.importance[encoder.importance].values()
        pretraining |= {f"importance.{key}": value for key, value in importance.items()}
    named = pretraining.items()
    return settings | {f"encoder.{key}": value for key, value in named if key not in NAMES}


@cache
def differences(facts: Facts, a: str, b: str) -> dict[str, tuple[Any, Any]]:
    """Return the settings in which two systems differ, with the values of both systems.

    A setting without effect on one of the two systems does not count.
    """
    first = recipe(facts, a)
    second = recipe(facts, b)
    keys = sorted(first.keys() | second.keys())
    keys = [key for key in keys if first.get(key) != second.get(key)]
    objectives = (first.get("encoder.objective"), second.get("encoder.objective"))
    if "encoder.objective" in keys and "none" in objectives:
        keys = [key for key in keys if not key.startswith("encoder.") or key in OF_ALL_ENCODERS]
    shared = first.keys() & second.keys()
    keys = [key for key in keys if key in shared or not key.startswith(OPTIONAL)]
    different = {key: (first.get(key), second.get(key)) for key in keys}
    for key in different.keys() & set(SOURCES):
        names = [facts.entry(name).values().get(key) or "none" for name in (a, b)]
        if names[0] == names[1]:
            del different[key]
        else:
            different[key] = (names[0], names[1])
    return different


def shown(value: Any) -> str:
    """Format the value of a setting for a table."""
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, float):
        return "\N{INFINITY}" if math.isinf(value) else f"{value:g}"
    return "none" if value in (None, "") else str(value)
