"""Build a config from its files' values: apply defaults and inheritance, and check everything."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator

from cdmae.config import checks, collection, demands, schema, seeds
from cdmae.config.inheritance import BEFORE, inherited
from cdmae.config.reading import Place, mapping
from cdmae.config.schema import Config
from cdmae.errors import InputError
from cdmae.fields import (
    EMPTY,
    Mapped,
    dotted,
    kind_of,
    kinds_of,
    parse,
    pick,
    refusal,
    rules_of,
    setting,
    settings,
    tags_of,
)

# the section with the defaults of another section's entries
DEFAULTS = {"encoders": "pretraining", "stages": "training"}
# the defaults of the settings that select an entry's kind
KINDS = {"encoders": {"objective": "mae"}, "stages": {"head": "dense"}}


def _defaults_of(section: str) -> Any:
    """Return the type of a section's defaults, whose values are checked in the entries.

    The first encoder has no earlier encoder, so the names of earlier encoders are no defaults.
    """
    known = [key for kind in kinds_of(schema.SECTIONS[section]) for key in rules_of(kind)]
    known = [key for key in dict.fromkeys(known) if key not in BEFORE]

    def check(values: dict[str, Any]) -> dict[str, Any]:
        unknown = [key for key in values if key not in known]
        if unknown:
            words = {key: f" is not a setting; {setting(key, known)}" for key in unknown}
            raise InputError(*(refusal((key,), why) for key, why in words.items()))
        return values

    return Annotated[dict[str, Any], Mapped, AfterValidator(check)]


@settings
class Written(Config):
    """The settings of config files: a config, and the defaults of its encoders and stages."""

    pretraining: _defaults_of("encoders") = EMPTY
    """Defaults of every encoder."""
    training: _defaults_of("stages") = EMPTY
    """Defaults of every stage; each kind uses only the settings that it has."""
    collection: str = ""
    """The collection of all entries that name none: of pre-training, stages and the tokenizers of
    random initial weights; of `tuned_on: [dev]` in a fusion; and of the evaluation, which then
    includes all judged splits that no stage trains on, except train.
    """
    standalone: bool = False
    """True in an overlay: `config.yaml` is not read."""


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
    for section in schema.SECTIONS:
        for name in mapping(values.get(section)):
            checks.check_name(name, section)
    whole = collection.filled(values)
    entries = inherited(mapping(whole.get("encoders")), mapping(whole.get("pretraining")))
    if entries:
        whole["encoders"] = entries
    for section in DEFAULTS:
        if mapping(whole.get(section)):
            whole[section] = _with_defaults(section, whole)
    written = parse(Written, whole)
    parts = {key: getattr(written, key) for key in rules_of(Config)}
    for section in ("starts", *DEFAULTS):
        entries = parts[section].items()
        parts[section] = {name: _settled(entry, written.seed[0]) for name, entry in entries}
    config = Config(**parts)
    splits = collection.evaluated(config, written.collection)
    return replace(config, evaluation=replace(config.evaluation, collections=splits))


def _with_defaults(section: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """Apply a section's defaults to its entries; each gets only the settings that its kind has."""
    defaults = {**KINDS[section], **mapping(values.get(DEFAULTS[section]))}
    whole = {}
    for name, entry in values[section].items():
        own = mapping({} if entry is None else entry)
        kind = kind_of(schema.SECTIONS[section], {**defaults, **own})
        known = pick(defaults, rules_of(kind) if kind else tags_of(schema.SECTIONS[section]))
        whole[name] = {**known, **own} if isinstance(entry, Mapping) else entry
    return whole


def _settled(entry: Any, seed: int) -> Any:
    """Set the seed of an entry that has none, and reset its settings without effect.

    Changing a setting without effect then restarts no job.
    """
    changes = {key: rules_of(entry)[key].default for key in entry.unread}
    if getattr(entry, "seed", 0) == -1:
        changes["seed"] = seed
    return replace(entry, **changes)


# --- file and line of a mistake -------------------------------------------------------------------


def _placed(mistake: InputError, values: Mapping[str, Any]) -> str:
    """Prefix file and line, of a key or of the nearest key above it, to a mistake.

    If an entry inherited the wrong value, the mistake is in the defaults of its section.
    """
    words = str(mistake)
    # the items of a list have the list's line
    keys = tuple(key for key in mistake.keys if isinstance(key, str))
    section, name, key = (*keys, "", "", "")[:3]
    defaults = DEFAULTS.get(section, "")
    own = mapping(mapping(values.get(section)).get(name))
    inherited_value = key in mapping(values.get(defaults)) and key not in own
    if inherited_value and words.startswith(dotted(mistake.keys)):
        words = words.replace(f"{section}.{name}", defaults, 1)
        keys = (defaults, *keys[2:])
    lines: Mapping[Any, Place | None] = getattr(values, "lines", {})
    paths = [keys[:length] for length in range(len(keys), 0, -1)]
    place = next((lines[path] for path in paths if path in lines), None)
    if place is None:
        return words
    file, line = place
    near = os.path.relpath(file) if Path(file).is_relative_to(Path.cwd()) else file
    return f"{near}, line {line}: {words}"
