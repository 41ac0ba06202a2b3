"""Build a config from its files' values: apply defaults and inheritance, and check everything."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any

from pydantic import AfterValidator
from pydantic_core import PydanticCustomError

from cdmae.config import checks, collection, demands, schema, seeds
from cdmae.config.schema import Config
from cdmae.errors import InputError
from cdmae.fields import (
    EMPTY,
    kind_of,
    kinds_of,
    parse,
    pick,
    refusal,
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
    """Defaults of every stage; each kind reads only the settings that it has."""
    collection: str = ""
    """The collection of every entry that names none; the evaluation includes all its judged splits
    on which no stage trains, except train.
    """
    standalone: bool = False
    """Whether a file is the whole config, and not an overlay on `config.yaml`."""


def load(values: Mapping[str, Any]) -> Config:
    """Check the merged values of the config files and build a config from them.

    Raises `InputError` with a line for each mistake, prefixed by file and line if `gather` read the
    values. The settings of each entry are checked first, then the entries against each other.
    """
    try:
        config = _made(values)
        demands.check(config)
    except InputError as error:
        said = [_placed(mistake, values) for mistake in error.several]
        raise InputError(*dict.fromkeys(said)) from None
    return seeds.replicate(config)


def _made(values: Mapping[str, Any]) -> Config:
    """Build a config from plain values."""
    whole = dict(values)
    for section in schema.SECTIONS:
        whole[section] = parse(dict[EntryName, dict[str, Any]], values.get(section), section)
    for section in (*DEFAULTS.values(), "evaluation", "report"):
        whole[section] = parse(dict[str, Any], values.get(section), section)
    collection.fill(whole)
    whole["encoders"] = _inherited(whole["encoders"])
    for section in DEFAULTS:
        whole[section] = _with_defaults(section, whole)
    written = parse(Written, whole)
    parts = {key: getattr(written, key) for key in rules_of(Config)}
    for section in ("starts", *DEFAULTS):
        entries = parts[section].items()
        parts[section] = {name: _settled(entry, written.seed[0]) for name, entry in entries}
    config = Config(**parts)
    splits = collection.evaluated(config, written.collection)
    return replace(config, evaluation=replace(config.evaluation, collections=splits))


def _inherited(encoders: Section) -> Section:
    """Add the inherited start of `after` to each encoder.

    Raises `InputError` if the earlier encoder does not exist or needs the encoder itself.
    """
    before = {name: [entry["after"]] for name, entry in encoders.items() if entry.get("after")}
    for name, (other,) in before.items():
        if other not in encoders:
            words = f" is {show(other)}; {suggestion(str(other), encoders)}"
            raise refusal(("encoders", name, "after"), words)
    whole = dict(encoders)
    for name in checks.in_order("encoders", before):
        start = whole[encoders[name].get("after") or name].get("start")
        whole[name] = {"start": start, **encoders[name]} if start else encoders[name]
    return whole


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
        raise InputError(*(refusal((own, key), unknown(key, kinds)) for key in wrong))
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


def _placed(mistake: InputError, values: Mapping[str, Any]) -> str:
    """Prefix file and line, of a key or of the nearest key above it, to a mistake.

    If an entry inherited the wrong value, the mistake is in the defaults of its section.
    """
    words = str(mistake)
    places = getattr(values, "places", {})
    # the items of a list have the list's line
    keys = tuple(key for key in mistake.keys if isinstance(key, str))
    section, name, key = (*keys, "", "", "")[:3]
    defaults = DEFAULTS.get(section, "")
    if key in (values.get(defaults) or {}) and key not in values[section][name]:
        words = words.replace(f"{section}.{name}", defaults, 1)
        keys = (defaults, *keys[2:])
    paths = [keys[:length] for length in range(len(keys), 0, -1)]
    place = next((places[path] for path in paths if path in places), None)
    if place is None:
        return words
    return f"{place}: {words}"
