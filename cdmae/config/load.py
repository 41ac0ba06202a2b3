"""From config files to a config: the default file, overlays over it, what entries inherit, and every check.

`cdmae.config.schema` is the schema; `cdmae.config.places` adds the file and the line to what is said here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import reduce
from pathlib import Path
from typing import Any

from cdmae import collections
from cdmae.config import checks, demands, schema, seeds
from cdmae.config.encoders import NOT_PRETRAINED
from cdmae.config.schema import Collection, Config, Encoder, Stage
from cdmae.errors import InputError
from cdmae.fields import (
    Keys,
    Plain,
    build,
    known,
    mapping,
    others,
    parse,
    pick,
    read,
    refusal,
    setting,
    show,
    suggestion,
)

Entries = dict[str, dict[str, Any]]  # of a section: the values of each by its name

BEFORE = ("after", "snapshot_of")  # the keys by which an encoder needs another one
OF_SNAPSHOT = ("snapshot_of", "take_step")  # what a snapshot does not have from the encoder that it is one of
DEFAULTS = {"encoders": "pretraining", "stages": "training"}  # where the entries of a section have theirs
KIND = {"encoders": "objective", "stages": "kind", "systems": "kind"}  # the setting that decides which others count
MOST_MISTAKES = 10  # that are told at once
REMOVED = object()  # in the place of what a config file removes by null
WORDS = {"null": None, "true": True, "True": True, "false": False, "False": False}  # of the command line


@dataclass(frozen=True, kw_only=True)
class Written(Config):
    """What config files may say: a config whose encoders and stages have defaults."""

    collections: dict[str, dict[str, Any]] = field(default_factory=dict)
    pretraining: Encoder = setting({}, meaning="defaults of every encoder")
    training: Stage = setting({}, meaning="defaults of every stage, as far as they are of its kind")
    standalone: bool = setting(False, meaning="in an overlay: leaves `config.yaml` out")


# --- from files to values --------------------------------------------------------------------------------------------


class Section(dict):
    """A mapping of a config file, which knows the line of every key."""

    lines: dict[str, int]


def read_yaml(path: Path | str) -> dict[str, Any]:
    """Read a config file; raise `InputError` for a missing or malformed one, and for a repeated key."""
    import yaml

    class Loader(yaml.SafeLoader):
        """A loader that keeps the lines of keys and `Plain` text, and refuses a list as a key and a repeated key."""

        def construct_yaml_map(self, node: yaml.MappingNode) -> Section:
            seen = set()
            for key, _ in node.value:
                where = f"{path}, line {key.start_mark.line + 1}"
                if not isinstance(key, yaml.ScalarNode):
                    kind = "list" if isinstance(key, yaml.SequenceNode) else "mapping"
                    raise InputError(f"{where}: a key is a {kind}; allowed: text")
                if key.value in seen and key.tag != "tag:yaml.org,2002:merge":
                    raise InputError(f"{where}: the key {key.value} is there twice")
                seen.add(key.value)
            values = Section(self.construct_mapping(node, deep=True))
            values.lines = {key.value: key.start_mark.line + 1 for key, _ in node.value}  # with those of anchors
            return values

        def construct_yaml_str(self, node: yaml.ScalarNode) -> str:
            return node.value if node.style else Plain(node.value)

    Loader.add_constructor("tag:yaml.org,2002:map", Loader.construct_yaml_map)
    Loader.add_constructor("tag:yaml.org,2002:str", Loader.construct_yaml_str)
    try:
        values = yaml.load(Path(path).read_text(encoding="utf-8"), Loader)  # a SafeLoader
        if values is None:
            raise InputError(f"{path} holds no settings; allowed: a mapping of settings")
        return mapping(values, str(path))
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not UTF-8 text (byte {error.start}); save it as UTF-8") from None
    except OSError as error:
        raise InputError(f"the config file {path} cannot be read: {error.strerror}") from None
    except RecursionError:
        raise InputError(f"{path} is nested too deeply; allowed: entries with settings") from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f"{path}, line {mark.line + 1}" if mark else str(path)
        raise InputError(f"{where}: not YAML ({getattr(error, 'problem', None) or error})") from None


def gather(
    default: Path | str, overlays: Iterable[Path | str] = (), overrides: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Lay the overlays, and the `overrides` of the command line, over the default config file, one after the other.

    ``standalone: true`` in one of them leaves the default out. The files are read here and not by the engine, which
    overlooks repeated keys, and does not know that null removes.
    """
    layers = [*map(read_yaml, overlays), _plain(overrides or {})]
    return lay({} if stand_alone(layers) else read_yaml(default), *layers)


def _plain(values: Any) -> Any:
    """Read the words of the command line, which are text for the engine in lists and mappings, and mark other text."""
    if isinstance(values, Mapping):
        return {key: _plain(value) for key, value in values.items()}
    if isinstance(values, list):
        return [_plain(value) for value in values]
    return WORDS.get(values, Plain(values)) if isinstance(values, str) else values


def stand_alone(layers: Iterable[Mapping[str, Any]]) -> bool:
    """Tell whether the layers leave the default out; the last one that speaks of it counts."""
    return [layer["standalone"] for layer in layers if "standalone" in layer][-1:] == [True]


def lay(values: Mapping[str, Any], *overlays: Mapping[str, Any]) -> dict[str, Any]:
    """Lay overlays over values: mappings key by key, everything else is replaced, and null removes what is there.

    Null for what no layer before has is a mistake, and stays for the checks.
    """
    return _left(reduce(_over, overlays, values))


def _over(values: Mapping[str, Any], overlay: Mapping[str, Any]) -> dict[str, Any]:
    merged = {**values, **overlay}
    for key, value in overlay.items():
        if isinstance(value, Mapping) and isinstance(values.get(key), Mapping):
            merged[key] = _over(values[key], value)
        elif value is None and values.get(key) is not None:
            merged[key] = REMOVED  # and not nothing: a later null of the same key is no mistake
    return merged


def _left(values: Mapping[str, Any]) -> dict[str, Any]:
    kept = {key: value for key, value in values.items() if value is not REMOVED}
    return {key: _left(value) if isinstance(value, Mapping) else value for key, value in kept.items()}


# --- from values to a config -----------------------------------------------------------------------------------------


def load(values: dict[str, Any]) -> Config:
    """Check the merged values of the config files and make a config of them.

    Raises `InputError` with a line for each mistake. What entries demand of each other is checked once all of them are
    right.
    """
    written, mistakes = read(Written, values)
    wrong = {error.keys[:2] for error in mistakes}  # entries that cannot be made
    defaults = {section: written.get(name, {}) for section, name in DEFAULTS.items()}
    mistyped = {keys[0] for keys in wrong} - set(schema.SECTIONS)
    if mistyped and (mistyped & set(DEFAULTS.values()) or not set(DEFAULTS.values()) <= values.keys()):
        # without defaults, whose section may be what is mistyped, much would lack in the entries
        raise one_error(mistakes)

    def noted(make: Callable[..., Any], *arguments: Any) -> Any:
        try:
            return make(*arguments)
        except InputError as error:
            mistakes.extend(part for part in error.several if part.keys[:2] not in wrong)

    top = Config()
    if not mistyped & {"results", "seed", "seeds"}:
        top = noted(build, Config, pick(written, ("results", "seed", "seeds")), ()) or top
    parts: dict[str, Any] = {
        name: noted(build, cls, written.get(name, {}), (name,))
        for name, cls in (("evaluation", schema.Evaluation), ("report", schema.Report))
    }
    for section in schema.SECTIONS:
        entries = written.get(section, {})
        if section == "encoders":
            entries = noted(inherited, entries, defaults[section]) or {}
        parts[section] = {
            name: noted(_entry, entry, defaults.get(section, {}), (section, name), top.seed)
            for name, entry in entries.items()
            if not noted(checks.check_name, name, section) and (section, name) not in wrong
        }
    if mistakes:
        raise one_error(mistakes)
    config = replace(top, **parts)
    demands.check(config)
    return seeds.replicate(config)


def one_error(mistakes: list[InputError]) -> InputError:
    """Make one error of several, a few at most; ``encoders.a: take_step is 9`` of every encoder is one mistake."""
    several = {}
    for mistake in mistakes:
        place, colon, rest = str(mistake).partition(": ")
        several.setdefault(rest if colon and " " not in place else str(mistake), mistake)
    more = [f"and {len(several) - MOST_MISTAKES} more"] if len(several) > MOST_MISTAKES else []
    return InputError(*list(several.values())[:MOST_MISTAKES], *more)


def _entry(entry: dict[str, Any], defaults: dict[str, Any], keys: Keys, seed: int) -> Any:
    """Make an entry of a section; raises `InputError` where it says what has no effect on it."""
    section, _ = keys
    if section == "collections":
        return _collection(entry, keys)
    cls, values, word = schema.SECTIONS[section], {**defaults, **entry}, KIND.get(section, "")
    kind = values.get(word, Encoder.objective)
    what, takes = f"{word} {kind}", [key.name for key in fields(cls) if key.name not in others(cls, kind)]
    if kind == "none":
        takes = list(NOT_PRETRAINED)
    if entry.get("checkpoint"):
        what, takes = "checkpoint", ["checkpoint"]
    few, needed = known(cls, kind), known(cls, kind, needed=True)
    for key in entry:
        if key not in takes:
            allowed = f"allowed: {', '.join(takes)}"
            some = f"of the settings that only some {word}s know it takes {', '.join(few)}"
            raise refusal((*keys, key), f" does not go with {what}; {some if few else allowed}")
    values = pick(values, takes)
    if section in ("encoders", "stages") and values.get("seed", -1) == -1:
        values["seed"] = seed
    settings = build(cls, values, keys)
    for key in needed:
        if not getattr(settings, key):
            raise refusal((*keys, key), f" is missing; kind {kind} needs {', '.join(needed)}")
    return _without_unread(settings, entry, keys) if section == "encoders" else settings


def _without_unread(encoder: Encoder, entry: dict[str, Any], keys: Keys) -> Encoder:
    """Set what the encoder does not read to its default: changing that for others then restarts nothing here.

    Raises `InputError` where the entry itself says it.
    """
    defaults = {key.name: key.default for key in fields(encoder) if key.name in encoder.unread}
    for key, why in encoder.unread.items():
        if key in entry and getattr(encoder, key) != defaults[key]:
            raise refusal((*keys, key), f" is {show(entry[key])}, but {why}; leave it out")
    return replace(encoder, **defaults)


def _collection(entry: dict[str, Any], keys: Keys) -> Collection:
    source, allowed = entry.get("source"), collections.names()
    if source is None:
        raise refusal((*keys, "source"), f" is missing; allowed: {', '.join(allowed)}")
    if source not in allowed:
        raise refusal((*keys, "source"), f" is {show(source)}; {suggestion(str(source), allowed)}")
    own = {key: value for key, value in entry.items() if key != "source"}
    return Collection(str(source), parse(collections.source(source).Settings, own, *keys))


# --- what entries inherit --------------------------------------------------------------------------------------------


def inherited(encoders: Entries, defaults: dict[str, Any]) -> Entries:
    """Give each encoder what it has from the one before it: after another its start, as a snapshot of one everything.

    Raises `InputError` where that one is not there or needs the encoder itself, and where a snapshot has more of its
    own than its step.
    """
    for key in BEFORE:
        if key in defaults:
            raise refusal(("pretraining", key), " cannot be a default: the first encoder has none before it")
    before = {name: {key: values[key] for key in BEFORE if values.get(key)} for name, values in encoders.items()}
    needs = {name: [other for other in needed.values() if other in encoders] for name, needed in before.items()}
    checks.check_cycles("encoders", needs)
    for name, needed in before.items():
        for key, other in needed.items():
            if other not in encoders:
                raise refusal(("encoders", name, key), f" is {show(other)}; {suggestion(other, encoders)}")

    def whole(name: str) -> dict[str, Any]:
        values, keys = encoders[name], ("encoders", name)
        if source := before[name].get("snapshot_of"):
            if first := before[source].get("snapshot_of"):
                raise refusal((*keys, "snapshot_of"), f" is {source}, a snapshot itself; allowed: {first}")
            return _snapshot(values, whole(source), defaults, keys)
        start = whole(before[name]["after"]).get("start") if "after" in before[name] else None
        return {"start": start, **values} if start else values

    return {name: whole(name) for name in encoders}


def _snapshot(values: dict[str, Any], source: dict[str, Any], defaults: dict[str, Any], keys: Keys) -> dict[str, Any]:
    """Give a snapshot the values of the encoder that it is one of, `source`, and its own step."""
    name, whole = values["snapshot_of"], {**defaults, **source}
    if whole.get("objective") == "none":
        raise refusal((*keys, "snapshot_of"), f" is {name}, which is not pre-trained; allowed: an encoder that is")
    for key in values:
        if key not in OF_SNAPSHOT and values[key] != whole.get(key):
            raise refusal(
                (*keys, key),
                f" is {show(values[key])}, but a snapshot has all but its take_step from encoders.{name}; leave it out",
            )
    if not values.get("take_step"):
        raise refusal((*keys, "take_step"), f" is missing: the step of encoders.{name} that is kept")
    return {**source, **values}
