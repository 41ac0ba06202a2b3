"""Build a config from its files' values: apply defaults and inheritance, and check everything."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

from cdmae.config import checks, collection, demands, schema, seeds
from cdmae.config.encoders import Encoder
from cdmae.config.inheritance import Entries, inherited, mapping
from cdmae.config.reading import Place, places_of
from cdmae.config.schema import Config
from cdmae.errors import InputError
from cdmae.fields import (
    Keys,
    Mapped,
    dotted,
    kind_of,
    moved,
    parse,
    pick,
    refusal,
    rules_of,
    setting,
    settings,
    some_of,
    unfit,
)

# the section with the defaults of another section's entries
DEFAULTS = {"encoders": "pretraining", "stages": "training"}
# the defaults of the settings that select an entry's kind
KINDS = {"encoders": {"objective": "mae"}, "stages": {"head": "dense"}}
MOST_MISTAKES = 10  # the most mistakes that are reported together

Pretraining = some_of(schema.AnyEncoder)
Training = some_of(schema.AnyStage)


@settings
class Written(Config):
    """The settings of config files: a config, and the defaults of its encoders and stages."""

    pretraining: Annotated[Pretraining, Mapped] = setting({}, meaning="defaults of every encoder")
    training: Annotated[Training, Mapped] = setting(
        {}, meaning="defaults of every stage; each kind uses only the settings that it has"
    )
    collection: str = setting(
        "",
        meaning="the collection of all entries that name none: of pre-training, stages and the "
        "tokenizers of random initial weights; of `tuned_on: [dev]` in a fusion; and of the "
        "evaluation, which then includes all judged splits that no stage trains on, except train",
    )
    standalone: bool = setting(False, meaning="true in an overlay: `config.yaml` is not read")


def load(values: dict[str, Any]) -> Config:
    """Check the merged values of the config files and build a config from them.

    Raises `InputError` with a line for each mistake, prefixed by file and line if `gather` read the
    values. The settings and references of each entry are checked first, then the entries against
    each other.
    """
    try:
        config = _made(values)
        demands.check(config)
    except InputError as error:
        raise _placed(error.several, values) from None
    return seeds.replicate(config)


def _made(values: dict[str, Any]) -> Config:
    """Build a config from plain values; raises `InputError` with all errors in its entries."""
    mistakes: list[InputError] = []

    def noted(make: Callable[..., Any], *arguments: Any) -> Any:
        try:
            return make(*arguments)
        except InputError as error:
            mistakes.extend(error.several)

    values = collection.filled(values)
    for section in schema.SECTIONS:
        for name in mapping(values.get(section)):
            noted(checks.check_name, name, section)
    entries = {section: mapping(values.get(section)) for section in DEFAULTS}
    defaults = mapping(values.get(DEFAULTS["encoders"]))
    entries["encoders"] = noted(inherited, entries["encoders"], defaults) or {}
    whole = dict(values)
    for section in DEFAULTS:
        if mapping(values.get(section)):
            whole[section] = _with_defaults(section, entries[section], values)
    written = noted(parse, Written, whole)
    if written:
        parts = {key: getattr(written, key) for key in rules_of(Config)}
        parts["stages"] = {
            name: _seeded(stage, written.seed) for name, stage in written.stages.items()
        }
        parts["encoders"] = {}
        for name, encoder in written.encoders.items():
            own = entries["encoders"][name]
            seeded = _seeded(encoder, written.seed)
            parts["encoders"][name] = noted(_finished, seeded, own, ("encoders", name))
    if mistakes:
        mistakes += demands.wrong_names(_valid_entries(whole), values)
        found = [_of_defaults(mistake, entries, values) for mistake in mistakes]
        raise InputError(*dict.fromkeys(found))
    config = Config(**parts)
    splits = collection.evaluated(config, written.collection)
    return replace(config, evaluation=replace(config.evaluation, collections=splits))


def _valid_entries(values: Mapping[str, Any]) -> dict[Keys, Any]:
    """Return the entries that are valid by themselves, by their keys.

    The references in them can be checked although other entries are wrong.
    """
    sections = {name: kind for name, kind in schema.SECTIONS.items() if name != "collections"}
    kinds = {
        (section, name): kind
        for section, kind in sections.items()
        for name in mapping(values.get(section))
    }
    valid: dict[Keys, Any] = {}
    for (section, name), kind in kinds.items():
        with contextlib.suppress(InputError):
            valid[section, name] = parse(kind, values[section][name])
    with contextlib.suppress(InputError):
        valid[("evaluation",)] = parse(schema.Evaluation, values.get("evaluation"))
    return valid


def _with_defaults(
    section: str, entries: Mapping[str, Any], values: Mapping[str, Any]
) -> dict[str, Any]:
    """Apply a section's defaults to its entries; each gets only the settings that its kind has."""
    defaults = {**KINDS[section], **mapping(values.get(DEFAULTS[section]))}
    whole = {}
    for name, entry in entries.items():
        kind = kind_of(schema.SECTIONS[section], {**defaults, **mapping(entry)})
        known = pick(defaults, rules_of(kind)) if kind else {}
        whole[name] = {**known, **entry} if isinstance(entry, Mapping) else entry
    return whole


def _of_defaults(mistake: InputError, entries: Entries, values: Mapping[str, Any]) -> InputError:
    """Attribute an error to the section's defaults if the entry inherited the wrong value."""
    section, name, key = (*mistake.keys, "", "", "")[:3]
    if section not in DEFAULTS or key in mapping(entries[section].get(name)):
        return mistake
    words = str(mistake)
    keys = dotted(mistake.keys)
    if key not in mapping(values.get(DEFAULTS[section])) or not words.startswith(keys):
        return mistake
    return refusal((DEFAULTS[section], *mistake.keys[2:]), words.removeprefix(keys))


def _seeded(entry: Any, seed: int) -> Any:
    """Set the config's seed for an entry without a seed of its own."""
    return replace(entry, seed=seed) if entry.seed == -1 else entry


def _finished(encoder: Encoder, own: Mapping[str, Any], keys: Keys) -> Encoder:
    """Reset settings without effect on an encoder; changing them then restarts no job.

    Raises `InputError` if the encoder itself sets such a setting, or needs an entry of `importance`
    and names none.
    """
    default = {key: rules_of(encoder)[key].default for key in encoder.unread}
    for key, why in encoder.unread.items():
        if key in own and getattr(encoder, key) != default[key]:
            raise moved(unfit(encoder, key, f", but {why}; remove it"), keys)
    if encoder.reads_importance and not encoder.importance:
        needed = "start, collection, importance"
        words = f" is missing; objective {encoder.objective} needs {needed}"
        raise refusal((*keys, "importance"), words)
    return replace(encoder, **default)


# --- file and line of a mistake -------------------------------------------------------------------


def _placed(mistakes: Sequence[InputError], values: Any) -> InputError:
    """Combine errors into one, in the order of the files, with a maximum number of lines.

    The same mistake of several encoders (``encoders.a: ...``) is reported once.
    """
    several: dict[str, tuple[tuple[bool, Any], str]] = {}
    for mistake in mistakes:
        entry, colon, rest = str(mistake).partition(": ")
        place = _place(mistake.keys, values)
        sentence = f"{_near(place[0])}, line {place[1]}: {mistake}" if place else str(mistake)
        same = rest if colon and " " not in entry else str(mistake)
        several.setdefault(same, ((place is None, place), sentence))
    sentences = [sentence for _, sentence in sorted(several.values(), key=lambda pair: pair[0])]
    if len(sentences) > MOST_MISTAKES:
        left = len(sentences) - MOST_MISTAKES
        sentences = [*sentences[:MOST_MISTAKES], f"and {left} more"]
    return InputError("\n".join(sentences))


def _near(file: str) -> str:
    """Shorten the path of a file below the working directory."""
    return os.path.relpath(file) if Path(file).is_relative_to(Path.cwd()) else file


def _place(keys: Keys, values: Any) -> Place | None:
    """Return the file and line of a key, of its default, or of the nearest key above it."""
    # items of a list have the list's line
    keys = tuple(key for key in keys if isinstance(key, str))
    paths = [keys] if keys else []
    if len(keys) > 2 and keys[0] in DEFAULTS:
        paths.append((DEFAULTS[keys[0]], *keys[2:]))
    paths += [keys[:length] for length in range(len(keys) - 1, 0, -1)]
    for path in paths:
        above = values
        for key in path[:-1]:
            above = mapping(above).get(key)
        if path[-1] in mapping(above):
            return places_of(above).get(path[-1])
    return None
