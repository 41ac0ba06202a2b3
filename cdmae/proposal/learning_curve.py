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

from cdmae.config import demands, seeds, systems
from cdmae.config.kinds import Retriever
from cdmae.config.recipe import Stage
from cdmae.config.schema import Config
from cdmae.errors import InputError
from cdmae.fields import show, suggestion

NUMBERS = (0, 100, 300, 1000, 3000)  # of training queries, by default
MADE = "made-queries"  # the collection with made queries
MADE_ALONE = 4000  # queries that are made if no other number is given
MOST_EPOCHS = 20  # more would fit a few queries by heart, at the price of a whole training
LEAST_STEPS = 8  # per epoch


@dataclass(frozen=True)
class Curve:
    """The encoders of a curve, and the numbers of training queries, ascending.

    stages: of each encoder, the stage that trains it with all training queries.
    models: of each stage, the system with the other settings, such as its negatives and its search.
    reference: the encoder that the others are compared with.
    """

    stages: Mapping[str, str]
    models: Mapping[str, str]
    reference: str
    counts: Sequence[int]


def choose(
    config: Config, stages: Sequence[str], encoders: Sequence[str], counts: Sequence[int]
) -> Curve:
    """Check the choices, and complete them.

    No stages are the first that trains retrievers; no encoders are all that the stages fine-tune;
    no counts are those of `NUMBERS` for which the collection has enough training queries. An
    encoder that none of the stages fine-tunes is trained with the first one's settings.

    Raises `InputError` for a stage that trains no retriever, for stages with different collections
    or with the same encoder, for a stage whose systems depend on further trained systems, for
    unknown encoders, and for too few training queries.
    """
    trained = _trained(config)
    stages = list(dict.fromkeys(stages or [*trained][:1]))
    stage_of: dict[str, str] = {}
    for stage in stages:
        if stage not in trained:
            raise InputError(f"--stage has {show(stage)}; {suggestion(stage, trained)}")
        for system in trained[stage].values():
            _check_alone(config, stage, system)
            other = stage_of.setdefault(system.encoder, stage)
            if other != stage:
                raise InputError(
                    f"--stage has {other} and {stage}, which both train the encoder "
                    f"{system.encoder}; allowed: stages that train different encoders"
                )
    collections = {stage: config.stages[stage].collection for stage in stages}
    if len(set(collections.values())) > 1:
        found = " and ".join(f"{stage} trains on {name}" for stage, name in collections.items())
        raise InputError(f"--stage: {found}; allowed: stages that train on one collection")
    known = systems.trained_encoders(config)
    for name in encoders:
        if name not in known:
            raise InputError(f"--encoders has {show(name)}; {suggestion(name, known)}")
    chosen = {name: stage_of.get(name, stages[0]) for name in encoders or stage_of}
    untrained = [name for name in chosen if config.encoders[name].objective == "none"]
    reference = [*untrained, *chosen][0]
    models = {stage: next(iter(trained[stage])) for stage in stages}
    return Curve(chosen, models, reference, sorted(set(counts or _fitting(config, stages[0]))))


def _check_alone(config: Config, stage: str, system: Retriever) -> None:
    """Refuse a system that other labels help to train: every point would have all of these."""
    reason = ""
    if any(system.teachers().values()):
        reason = "have a teacher"
    elif system.after:
        reason = f"continue from {system.after}"
    elif systems.learns(config, system.negatives):
        reason = f"have negatives of {system.negatives}, which is trained itself"
    if reason:
        raise InputError(
            f"--stage has {stage}, whose systems {reason}; allowed: a stage that begins with an "
            "encoder, has negatives of a system without training, and no teacher"
        )


def _fitting(config: Config, stage: str) -> list[int]:
    """List the usual numbers that are below the number of a stage's training queries."""
    base = config.stages[stage]
    name = base.collection
    judged = demands.check_collection(config, name).splits.get(base.split)
    counted = judged.queries if judged else None
    queries = base.train_queries or (math.inf if counted is None else counted)
    made = config.collections[name].source == "pseudo"
    fitting = [number for number in NUMBERS if number < queries and (number or not made)]
    if not fitting:
        raise InputError(
            f"collections.{name} has {queries} training queries; name numbers below with --labels"
        )
    return fitting


def _trained(config: Config) -> dict[str, dict[str, Retriever]]:
    """Map the stages that train retrievers to these, by name."""
    trained: dict[str, dict[str, Retriever]] = {}
    for name in seeds.first(config.systems):
        system = config.systems[name]
        if isinstance(system, Retriever):
            trained.setdefault(system.stage, {})[name] = system
    if not trained:
        raise InputError("the config has no system of kind retriever, so there is nothing to train")
    return trained


def overlay(config: Config, values: Mapping[str, Any], curve: Curve) -> dict[str, Any]:
    """Return the overlay's values for the config with the merged `values`.

    A step has at most an eighth of the training queries. Small numbers have more epochs, up to 20,
    so that a curve shows the effect of the labels and not that of fewer steps.
    """
    stages: dict[str, Any] = {}
    shown: list[str] = []
    for stage in dict.fromkeys(curve.stages.values()):
        for count in curve.counts:
            sized = _sized(config.stages[stage], count, max(curve.counts) or MADE_ALONE)
            stages[f"{stage}-{count}"] = values["stages"][stage] | sized
            shown.append(f"{stage}-{count}")
        shown.append(stage)
    trained: dict[str, Any] = {}
    compare: dict[str, list[str]] = {}
    for count in [*curve.counts, None]:
        found = {}
        for encoder, all_queries in curve.stages.items():
            stage = all_queries if count is None else f"{all_queries}-{count}"
            found[encoder] = _existing(config, encoder, stage) or f"{encoder}-{stage}"
            if found[encoder] not in config.systems:
                like = values["systems"][curve.models[all_queries]]
                trained[found[encoder]] = like | {"encoder": encoder, "stage": stage}
        reference = found.pop(curve.reference)
        for system in found.values():
            if not _compared(config, system, reference):
                compare[system] = [*config.report.compare.get(system, []), reference]
    sections = {
        "collections": {MADE: _made(config, values, curve)} if 0 in curve.counts else {},
        "stages": stages,
        "systems": trained,
        "report": {"curve": shown, "compare": compare},
    }
    return {name: entries for name, entries in sections.items() if entries}


def _made(config: Config, values: Mapping[str, Any], curve: Curve) -> dict[str, Any]:
    """Return the collection whose queries are made from the passages of the stages' collection."""
    name = config.stages[curve.stages[curve.reference]].collection
    source = dict(values["collections"][name])
    if source["source"] == "pseudo":
        raise InputError(
            f"--labels has 0, but the queries of collections.{name} are made from its passages "
            "already; allowed: numbers above 0"
        )
    queries = max(curve.counts) or MADE_ALONE
    return {"source": "pseudo", "of": source, "method": "first_sentence", "queries": queries}


def _compared(config: Config, system: str, reference: str) -> bool:
    """Return whether the config compares two systems already, in either direction."""
    compare = config.report.compare
    return reference in compare.get(system, ()) or system in compare.get(reference, ())


class _Dumper(yaml.SafeDumper):
    """Writes mappings of other config files like any mapping."""


_Dumper.add_multi_representer(dict, yaml.SafeDumper.represent_dict)


def text(overlay: Mapping[str, Any], command: str) -> str:
    """Write the overlay as YAML, under the command that made it."""
    head = f"# Written by `{command}`: how many training queries replace pre-training?\n"
    return head + yaml.dump(
        dict(overlay),
        Dumper=_Dumper,
        sort_keys=False,
        default_flow_style=None,
        width=100,
        allow_unicode=True,
    )


def _sized(base: Stage, count: int, largest: int) -> dict[str, Any]:
    """Return the settings of a stage for a number of training queries.

    A training has as many steps as with the largest number, if 20 epochs suffice. 0 stands for
    queries that are made from the passages, of the largest number.
    """
    made = not count
    queries, steps_per_epoch = _steps(base, count or largest)
    _, most_per_epoch = _steps(base, largest)
    epochs = base.epochs * most_per_epoch / steps_per_epoch
    return {
        **({"collection": MADE} if made else {}),
        "train_queries": 0 if made else count,
        "queries": queries,
        "epochs": max(base.epochs, min(MOST_EPOCHS, round(epochs, 3))),
    }


def _steps(base: Stage, count: int) -> tuple[int, int]:
    """Return the queries of a step, and the steps of an epoch, for a number of queries."""
    queries = max(1, min(base.queries, count // LEAST_STEPS))
    return queries, count // queries


def _existing(config: Config, encoder: str, stage: str) -> str:
    """Return the retriever of the config that an encoder and a stage make; empty without one."""
    for name in seeds.first(config.systems):
        system = config.systems[name]
        if system.kind == "retriever" and (system.encoder, system.stage) == (encoder, stage):
            return name
    return ""
