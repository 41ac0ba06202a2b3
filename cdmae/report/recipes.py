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
from cdmae.config.recipe import OF_A_TEACHER
from cdmae.report.facts import Facts

# Settings that change together count as one. The paper's section 4.3 varies group and queries at a
# constant product; a training ends with its last step, and steps replace epochs; the shares of
# equation 1 have a constant sum.
COUPLED = (
    ("stage.group", "stage.queries"),
    ("encoder.steps", "encoder.take_step"),
    ("encoder.steps", "encoder.epochs"),
    ("encoder.mask_share", "encoder.random_share"),
)
# the keys of systems from which a system is built
SOURCES = (*LEARNT_FROM, "reranks")
# names of entries, whose settings are in the recipe instead, and `once`, which decides how often
# the same recipe is trained
NAMES = ("encoder", "stage", "once", "importance")
# settings of all encoders, including those without pre-training
OF_ALL_ENCODERS = ("encoder.objective", "encoder.start", "encoder.seed")


@cache
def recipe(facts: Facts, system: str, own: str = "") -> dict[str, Any]:
    """Return a system's settings, such as ``encoder.sigma``, and the recipes of its sources.

    own: the encoder of the system at which the recursion began.
    """
    entry = facts.system(system)
    encoder = entry.get("encoder", "")
    stage = facts.entries("stages").get(entry.get("stage", ""), {})
    settings = {key: value for key, value in entry.items() if key not in NAMES}
    for key in SOURCES:
        if entry.get(key):
            settings[key] = recipe(facts, entry[key], own or encoder)
    parts = settings.pop("of", ())
    for index, name in enumerate([parts] if isinstance(parts, str) else parts):
        settings[f"of.{index}"] = recipe(facts, name, own)
    for key, value in stage.items():
        if key not in OF_A_TEACHER or entry.get("teacher") or entry.get("joint_teacher"):
            settings[f"stage.{key}"] = value
    if encoder and encoder == own:
        return settings | {"encoder": "own"}
    return settings | _pretraining(facts, encoder)


def _pretraining(facts: Facts, encoder: str) -> dict[str, Any]:
    """Return the settings of an encoder and of its importance, with their prefixes."""
    settings = dict(facts.entries("encoders").get(encoder, {}))
    importance = facts.entries("importance").get(settings.get("importance", ""), {})
    if "steps" in settings or "take_step" in settings:
        recorded = facts.encoders[encoder].about if encoder in facts.encoders else {}
        last = settings.get("take_step") or settings.get("steps")
        settings["take_step"] = last or recorded.get("steps", 0)
    prefixed = {f"encoder.{key}": value for key, value in settings.items() if key not in NAMES}
    return prefixed | {f"encoder.importance.{key}": value for key, value in importance.items()}


@cache
def differences(facts: Facts, a: str, b: str) -> dict[str, tuple[Any, Any]]:
    """Return the settings in which two systems differ, with the values of both systems.

    Settings that always change together count as one. A setting without effect on one of the two
    systems does not count.
    """
    first = recipe(facts, a)
    second = recipe(facts, b)
    keys = sorted(first.keys() | second.keys())
    keys = [key for key in keys if first.get(key) != second.get(key)]
    objectives = (first.get("encoder.objective"), second.get("encoder.objective"))
    if "encoder.objective" in keys and "none" in objectives:
        keys = [key for key in keys if not key.startswith("encoder.") or key in OF_ALL_ENCODERS]
    if "encoder.decoder_masking" in keys:
        # settings that have an effect only on importance-aware masks
        keys = [key for key in keys if not key.startswith(("encoder.sigma", "encoder.importance"))]
    for key, other in COUPLED:
        if key in keys and other in keys:
            keys.remove(other)
    different = {key: (first.get(key), second.get(key)) for key in keys}
    for key in different.keys() & set(SOURCES):
        named = tuple(facts.system(name).get(key) or "none" for name in (a, b))
        if named[0] == named[1]:
            del different[key]
        else:
            different[key] = named
    return different


def shown(value: Any) -> str:
    """Format the value of a setting for a table."""
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, float):
        return "\N{INFINITY}" if math.isinf(value) else f"{value:g}"
    return "none" if value in (None, "") else str(value)
