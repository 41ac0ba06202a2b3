"""Fill in the config's `collection` where an entry names no collection."""

from __future__ import annotations

from typing import Any

from cdmae.config.schema import Config
from cdmae.config.stages import Stage
from cdmae.fields import refusal, rules_of, show, suggestion


def fill(values: dict[str, Any]) -> None:
    """Fill in `collection` for every entry but the evaluation.

    values: a config's values, with all sections as dictionaries. The defaults of pre-training and
    of the stages get the name. So do random initial weights, because their tokenizer learns from
    the collection's text, and each fusion with only a split in `tuned_on`. Raises `InputError` if
    `collections` lacks the name.
    """
    name = values.get("collection")
    if not isinstance(name, str) or not name:
        return
    if name not in values["collections"]:
        words = suggestion(name, values["collections"])
        raise refusal(("collection",), f" is {show(name)}; {words}")
    for section in ("pretraining", "training"):
        values[section] = {"collection": name, **values[section]}
    for key, entry in values["starts"].items():
        if not entry.get("checkpoint"):
            values["starts"][key] = {"collection": name, **entry}
    for key, entry in values["systems"].items():
        tuned_on = entry.get("tuned_on")
        if isinstance(tuned_on, list) and len(tuned_on) == 1:
            values["systems"][key] = {**entry, "tuned_on": [name, *tuned_on]}


def evaluated(config: Config, name: str) -> dict[str, tuple[str, ...]]:
    """Return the evaluated splits by collection, which include the collection `name`.

    Unless the evaluation names this collection, it comes first, with all judged splits that no
    stage trains on, except the training split.
    """
    named = config.evaluation.collections
    if not config.systems or name not in config.collections or name in named:
        return named
    trained = {stage.split for stage in config.stages.values() if stage.collection == name}
    trained.add(rules_of(Stage)["split"].default)
    judged = config.collections[name].ask(name, "judged")
    splits = tuple(split for split, has in judged.items() if has and split not in trained)
    return {name: splits, **named}
