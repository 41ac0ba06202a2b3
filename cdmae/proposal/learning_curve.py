"""Write an overlay that trains every encoder with several numbers of training queries.

The smallest number can be 0: then the training queries are made from the passages. The curves show
where pre-training pays, and where more training queries replace it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import yaml

from cdmae.config import seeds, systems
from cdmae.config.recipe import Stage
from cdmae.config.schema import Config
from cdmae.errors import InputError
from cdmae.fields import suggestion

MADE = "made-queries"  # the collection with made queries, and its stage
LEAST_SEEN = 4000  # queries that every training sees, if MOST_EPOCHS suffice
MOST_EPOCHS = 20
LEAST_STEPS = 8  # per epoch


@dataclass(frozen=True)
class Curve:
    """The stage and the encoders of a curve, and the numbers of training queries, ascending.

    reference: the encoder that the others are compared with.
    """

    stage: str
    negatives: str
    encoders: Sequence[str]
    reference: str
    counts: Sequence[int]


def choose(config: Config, stage: str, encoders: Sequence[str], counts: Sequence[int]) -> Curve:
    """Check the choices, and complete them.

    An empty stage is the first that trains retrievers; no encoders are all that it fine-tunes.

    Raises `InputError` for a stage that trains no retriever, and for unknown encoders.
    """
    retrievers = {
        name: config.systems[name]
        for name in seeds.first(config.systems)
        if config.systems[name].trained and config.systems[name].kind == "retriever"
    }
    stages = list(dict.fromkeys(system.stage for system in retrievers.values()))
    if not stages:
        raise InputError("the config has no system of kind retriever, so there is nothing to train")
    stage = stage or stages[0]
    if stage not in stages:
        raise InputError(f"--stage is {stage}; {suggestion(stage, stages)}")
    alike = [system for system in retrievers.values() if system.stage == stage]
    if any(any(system.teachers().values()) for system in alike):
        raise InputError(
            f"--stage is {stage}, whose systems have a teacher; allowed: a stage without"
        )
    known = systems.trained_encoders(config)
    for name in encoders:
        if name not in known:
            raise InputError(f"--encoders has {name}; {suggestion(name, known)}")
    chosen = list(dict.fromkeys(encoders or [system.encoder for system in alike]))
    untrained = [name for name in chosen if config.encoders[name].objective == "none"]
    reference = [*untrained, *chosen][0]
    return Curve(stage, alike[0].negatives, chosen, reference, sorted(set(counts)))


def overlay(config: Config, values: Mapping[str, Any], curve: Curve) -> dict[str, Any]:
    """Return the overlay's values for the config with the merged `values`.

    A step has at most an eighth of the training queries. Small numbers have more epochs, so that
    every training sees 4,000 queries in at most 20 epochs.
    """
    base = config.stages[curve.stage]
    stage = dict(values["stages"][curve.stage])
    made: dict[str, Any] = {}
    stages: dict[str, Any] = {}
    for count in curve.counts:
        if count:
            name = f"{curve.stage}-{count}"
            stages[name] = stage | _sized(base, count)
        else:
            source = dict(values["collections"][base.collection])
            if source["source"] == "pseudo":
                raise InputError(
                    f"--labels has 0, but the queries of collections.{base.collection} are made "
                    "from its passages already; allowed: numbers above 0"
                )
            made[MADE] = {"source": "pseudo", "of": source, "method": "first_sentence"}
            made[MADE]["queries"] = max(curve.counts) or LEAST_SEEN
            stages[MADE] = stage | {"collection": MADE}
    trained: dict[str, Any] = {}
    compare: dict[str, list[str]] = {}
    for name in [*stages, curve.stage]:
        found = {}
        for encoder in curve.encoders:
            found[encoder] = _existing(config, encoder, name) or f"{encoder}-{name}"
            if found[encoder] not in config.systems:
                trained[found[encoder]] = {
                    "kind": "retriever",
                    "encoder": encoder,
                    "stage": name,
                    "negatives": curve.negatives,
                }
        reference = found.pop(curve.reference)
        for system in found.values():
            if not _compared(config, system, reference):
                compare[system] = [*config.report.compare.get(system, []), reference]
    report = {"curve": [*stages, curve.stage], "compare": compare}
    sections = {"collections": made, "stages": stages, "systems": trained, "report": report}
    return {name: entries for name, entries in sections.items() if entries}


def _compared(config: Config, system: str, reference: str) -> bool:
    """Return whether the config compares two systems already, in either direction."""
    compare = config.report.compare
    return reference in compare.get(system, ()) or system in compare.get(reference, ())


def text(overlay: Mapping[str, Any], command: str) -> str:
    """Write the overlay as YAML, under the command that made it."""
    head = f"# Written by `{command}`: how many training queries replace pre-training?\n"
    return head + yaml.safe_dump(
        dict(overlay), sort_keys=False, default_flow_style=None, width=100, allow_unicode=True
    )


def _sized(base: Stage, count: int) -> dict[str, Any]:
    """Return the settings of a stage for a number of training queries."""
    epochs = max(base.epochs, min(MOST_EPOCHS, math.ceil(LEAST_SEEN / count)))
    return {
        "train_queries": count,
        "queries": max(1, min(base.queries, count // LEAST_STEPS)),
        "epochs": epochs,
    }


def _existing(config: Config, encoder: str, stage: str) -> str:
    """Return the retriever of the config that an encoder and a stage make; empty without one."""
    for name in seeds.first(config.systems):
        system = config.systems[name]
        if system.kind == "retriever" and (system.encoder, system.stage) == (encoder, stage):
            return name
    return ""
