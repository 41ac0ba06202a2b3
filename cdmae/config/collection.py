"""Fill in the config's `collection` where an entry names no collection."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cdmae.config.reading import mapping
from cdmae.config.schema import Config
from cdmae.config.stages import Stage
from cdmae.fields import refusal, rules_of, show, suggestion


def filled(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return a config's values with `collection` filled in for every entry but the evaluation.

    The defaults of pre-training and of the stages get the name. So do random initial weights,
    because their tokenizer learns from the collection's text, and each fusion with only a split
    in `tuned_on`. Raises `InputError` if `collections` lacks the name.
    """
    name = values.get("collection")
    if not isinstance(name, str) or not name:
        return dict(values)
    known = {} if values.get("collections") is None else values["collections"]
    # anything but a mapping is a mistake of its own, which is reported elsewhere
    if isinstance(known, Mapping) and name not in known:
        raise refusal(("collection",), f" is {show(name)}; {suggestion(name, known)}")
    whole = dict(values)
    for section in ("pretraining", "training"):
        defaults = {} if values.get(section) is None else values[section]
        if isinstance(defaults, Mapping):
            whole[section] = {"collection": name, **defaults}
    for section, fill in (("starts", _start), ("systems", _system)):
        entries = mapping(values.get(section))
        if entries:
            whole[section] = {key: fill(entry, name) for key, entry in entries.items()}
    return whole


def _start(entry: Any, name: str) -> Any:
    """Set the collection of random initial weights."""
    if isinstance(entry, Mapping) and not entry.get("checkpoint"):
        return {"collection": name, **entry}
    return entry


def _system(entry: Any, name: str) -> Any:
    """Set the collection of a fusion that is tuned on one split."""
    tuned_on = mapping(entry).get("tuned_on")
    if isinstance(tuned_on, list) and len(tuned_on) == 1:
        return {**entry, "tuned_on": [name, *tuned_on]}
    return entry


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
