"""Write an overlay that trains every encoder with several numbers of training queries.

The smallest number can be 0: then the training queries are made from the passages. The curves show
where pre-training pays, and where more training queries replace it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import yaml

from cdmae.config import seeds, systems
from cdmae.config.kinds import Retriever
from cdmae.config.recipe import Stage
from cdmae.config.schema import Config
from cdmae.errors import InputError
from cdmae.fields import show, suggestion

MADE = "made-queries"  # the collection with made queries
MADE_ALONE = 4000  # queries that are made if no other number is given
MOST_EPOCHS = 20  # more would fit a few queries by heart, at the price of a whole training
LEAST_STEPS = 8  # per epoch


@dataclass(frozen=True)
class Curve:
    """The encoders of a curve, and the numbers of training queries, ascending.

    stages: of each encoder, the stage that trains it with all training queries.
    negatives: of each stage, the system with the negatives.
    reference: the encoder that the others are compared with.
    """

    stages: Mapping[str, str]
    negatives: Mapping[str, str]
    reference: str
    counts: Sequence[int]


def choose(
    config: Config, stages: Sequence[str], encoders: Sequence[str], counts: Sequence[int]
) -> Curve:
    """Check the choices, and complete them.

    No stages are the first that trains retrievers; no encoders are all that the stages fine-tune.
    An encoder that none of the stages fine-tunes is trained with the first one's settings.

    Raises `InputError` for a stage that trains no retriever, for stages with different collections
    or with the same encoder, and for unknown encoders.
    """
    trained = _trained(config)
    stages = list(dict.fromkeys(stages or [*trained][:1]))
    stage_of: dict[str, str] = {}
    for stage in stages:
        if stage not in trained:
            raise InputError(f"--stage has {show(stage)}; {suggestion(stage, trained)}")
        for system in trained[stage]:
            if any(system.teachers().values()):
                raise InputError(
                    f"--stage has {stage}, whose systems have a teacher; allowed: a stage without"
                )
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
    negatives = {stage: trained[stage][0].negatives for stage in stages}
    return Curve(chosen, negatives, reference, sorted(set(counts)))


def _trained(config: Config) -> dict[str, list[Retriever]]:
    """Map the stages that train retrievers to these."""
    trained: dict[str, list[Retriever]] = {}
    for name in seeds.first(config.systems):
        system = config.systems[name]
        if isinstance(system, Retriever):
            trained.setdefault(system.stage, []).append(system)
    if not trained:
        raise InputError("the config has no system of kind retriever, so there is nothing to train")
    return trained


def overlay(config: Config, values: Mapping[str, Any], curve: Curve) -> dict[str, Any]:
    """Return the overlay's values for the config with the merged `values`.

    A step has at most an eighth of the training queries. Small numbers have more epochs, up to 20,
    so that a curve shows the labels' effect and not that of fewer steps.
    """
    stages: dict[str, Any] = {}
    shown: list[str] = []
    for stage in dict.fromkeys(curve.stages.values()):
        for count in curve.counts:
            sized = _sized(config.stages[stage], count, max(curve.counts))
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
                trained[found[encoder]] = {
                    "kind": "retriever",
                    "encoder": encoder,
                    "stage": stage,
                    "negatives": curve.negatives[all_queries],
                }
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


def text(overlay: Mapping[str, Any], command: str) -> str:
    """Write the overlay as YAML, under the command that made it."""
    head = f"# Written by `{command}`: how many training queries replace pre-training?\n"
    return head + yaml.safe_dump(
        dict(overlay), sort_keys=False, default_flow_style=None, width=100, allow_unicode=True
    )


def _sized(base: Stage, count: int, largest: int) -> dict[str, Any]:
    """Return the settings of a stage for a number of training queries.

    A training has as many steps as one with the largest number. 0 stands for that many made queries.
    """
    if not count:
        return {"collection": MADE}
    queries = _queries_per_step(base, count)
    steps = base.epochs * largest / _queries_per_step(base, largest)
    epochs = max(base.epochs, min(MOST_EPOCHS, steps * queries / count))
    return {"train_queries": count, "queries": queries, "epochs": round(epochs, 1)}


def _queries_per_step(base: Stage, count: int) -> int:
    return max(1, min(base.queries, count // LEAST_STEPS))


def _existing(config: Config, encoder: str, stage: str) -> str:
    """Return the retriever of the config that an encoder and a stage make; empty without one."""
    for name in seeds.first(config.systems):
        system = config.systems[name]
        if system.kind == "retriever" and (system.encoder, system.stage) == (encoder, stage):
            return name
    return ""
