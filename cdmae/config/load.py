"""Build a config from its files' values: apply defaults and inheritance, and check everything."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any

from pydantic import AfterValidator
from pydantic_core import PydanticCustomError

from cdmae.config import checks, schema, seeds
from cdmae.config.schema import Config
from cdmae.config.stages import Stage
from cdmae.errors import InputError
from cdmae.fields import (
    EMPTY,
    kind_of,
    kinds_of,
    parse,
    pick,
    rules_of,
    settings,
    show,
    suggestion,
    unknown,
)

# a file name may join three names, and file systems allow 255 bytes
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
Section = dict[str, Any]  # the plain values of a section's entries, by name
# the section with the defaults of another section's entries
DEFAULTS = {"encoders": "pretraining", "stages": "training"}
# the defaults of the settings that select an entry's kind
KINDS = {"encoders": {"objective": "mae"}, "stages": {"head": "dense"}}


def _named(name: str) -> str:
    """Refuse a name that cannot be part of a path."""
    if not NAME.fullmatch(name):
        raise PydanticCustomError("name", "Input should be up to 64 letters, digits, - and _")
    return name


EntryName = Annotated[str, AfterValidator(_named)]


@settings
class Written(Config):
    """The settings of config files: a config, and the defaults of its encoders and stages."""

    pretraining: dict[str, Any] = EMPTY
    """Defaults of every encoder."""
    training: dict[str, Any] = EMPTY
    """Defaults of every stage."""
    collection: str = ""
    """Collection of every entry that names none. Its judged splits are evaluated, except train and
    splits on which a stage trains.
    """
    standalone: bool = False
    """Leaves out `config.yaml`."""


def load(values: Mapping[str, Any]) -> Config:
    """Check the merged values of the config files and build a config from them.

    Raises `InputError` with a line for each mistake, prefixed by file and line if `gather` read the
    values. The settings of each entry are checked first, then the entries against each other.
    """
    try:
        config = _made(values)
        checks.check(config)
    except InputError as error:
        mistakes = [_placed(mistake, values) for mistake in error.several]
        raise InputError(*{str(mistake): mistake for mistake in mistakes}.values()) from None
    return seeds.replicate(config)


def _made(values: Mapping[str, Any]) -> Config:
    """Build a config from plain values."""
    whole = dict(values)
    for section in schema.SECTIONS:
        whole[section] = parse(dict[EntryName, dict[str, Any]], values.get(section), section)
    for section in (*DEFAULTS.values(), "evaluation", "report"):
        whole[section] = parse(dict[str, Any], values.get(section), section)
    _fill(whole)
    for section in DEFAULTS:
        whole[section] = _with_defaults(section, whole)
    written = parse(Written, whole)
    parts = {key: getattr(written, key) for key in rules_of(Config)}
    for section in ("starts", *DEFAULTS):
        entries = parts[section].items()
        parts[section] = {name: _settled(entry, written.seed[0]) for name, entry in entries}
    config = Config(**parts)
    splits = _evaluated(config, written.collection)
    return replace(config, evaluation=replace(config.evaluation, collections=splits))


def _fill(values: dict[str, Any]) -> None:
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
        raise InputError(f" is {show(name)}; {words}", keys=("collection",))
    for section in ("pretraining", "training"):
        values[section] = {"collection": name, **values[section]}
    for key, entry in values["starts"].items():
        if not entry.get("checkpoint"):
            values["starts"][key] = {"collection": name, **entry}
    for key, entry in values["systems"].items():
        tuned_on = entry.get("tuned_on")
        if isinstance(tuned_on, list) and len(tuned_on) == 1:
            values["systems"][key] = {**entry, "tuned_on": [name, *tuned_on]}


def _evaluated(config: Config, name: str) -> dict[str, tuple[str, ...]]:
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


def _with_defaults(section: str, values: Mapping[str, Section]) -> Section:
    """Apply a section's defaults to its entries; each gets only the settings that its kind has.

    The first encoder has no earlier encoder, so `after` is no default.
    """
    union = schema.SECTIONS[section]
    kinds = kinds_of(union)
    known = {key for kind in kinds for key in rules_of(kind)} - {"after"}
    own = DEFAULTS[section]
    wrong = [key for key in values[own] if key not in known]
    if wrong:
        raise InputError(*(InputError(unknown(key, kinds), keys=(own, key)) for key in wrong))
    defaults = {**KINDS[section], **values[own]}
    entries = {}
    for name, entry in values[section].items():
        kind = kind_of(union, {**defaults, **entry})
        entries[name] = {**pick(defaults, rules_of(kind) if kind else KINDS[section]), **entry}
    return entries


def _settled(entry: Any, seed: int) -> Any:
    """Set the seed of an entry that has none, and reset its settings without effect.

    Changing a setting without effect then restarts no job.
    """
    changes = {key: rules_of(entry)[key].default for key in entry.unread}
    if getattr(entry, "seed", 0) == -1:
        changes["seed"] = seed
    return replace(entry, **changes)


def _placed(mistake: InputError, values: Mapping[str, Any]) -> InputError:
    """Add file and line, of a key or of the nearest key above it, to a mistake.

    If an entry inherited the wrong value, the mistake is in the defaults of its section.
    """
    section, name, key = (*mistake.keys, "", "", "")[:3]
    defaults = DEFAULTS.get(section, "")
    if key in (values.get(defaults) or {}) and key not in values[section][name]:
        mistake.keys = (defaults, *mistake.keys[2:])
    places = getattr(values, "places", {})
    named = mistake.words.removeprefix(": ").partition(" ")[0]  # by a source: "path is ..."
    path = (*mistake.keys, named)
    for length in range(len(path), 0, -1):
        mistake.place = mistake.place or places.get(path[:length], "")
    return mistake
