"""From config files to a config: the default file, overlays over it, what entries inherit, and every check.

`cdmae.config.schema` is the schema; `cdmae.config.places` adds the file and the line to what is said here.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields, replace
from functools import partial
from pathlib import Path
from typing import Any

from cdmae import collections
from cdmae.config import checks, seeds
from cdmae.config.schema import Collection, Config, Encoder, Evaluation, Importance, Report, Stage, Start, System
from cdmae.errors import InputError, Mistakes
from cdmae.fields import check_partial, join, known, mapping, others, parse, show, suggestion, unknown

Entries = dict[str, dict[str, Any]]  # of a section: the values of each by its name

BEFORE = ("after", "snapshot_of")  # the keys by which an encoder needs another one
OF_SNAPSHOT = ("snapshot_of", "take_step")  # what a snapshot does not have from the encoder that it is one of


# --- from files to values --------------------------------------------------------------------------------------------


def read_yaml(path: Path | str) -> dict[str, Any]:
    """Read a config file; raise `InputError` for a missing or malformed one, and for a repeated key."""
    import yaml

    class Loader(yaml.SafeLoader):
        """A loader that refuses a list as a key, and a repeated key, of which YAML would take the last."""

        def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
            seen = set()
            for key, _ in node.value:
                if not isinstance(key, yaml.ScalarNode):
                    kind = "list" if isinstance(key, yaml.SequenceNode) else "mapping"
                    raise InputError(f"{path}, line {key.start_mark.line + 1}: a key is a {kind}; allowed: text")
                if key.value in seen and key.tag != "tag:yaml.org,2002:merge":
                    raise InputError(f"{path}, line {key.start_mark.line + 1}: the key {key.value} is there twice")
                seen.add(key.value)
            return super().construct_mapping(node, deep)

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


def gather(default: Path | str, overlays: Iterable[Path | str], values: dict[str, Any]) -> dict[str, Any]:
    """Lay `values`, which the engine merged from overlays and options, over those of the default config file.

    Read the overlay files once more for the checks that the engine leaves out (repeated keys, encoding).
    """
    for path in overlays:
        read_yaml(path)
    return merge({} if values.get("standalone") is True else read_yaml(default), values)


def stack(first: dict[str, Any], second: dict[str, Any]) -> dict[str, Any]:
    """Stack two overlays as the engine does; null stays, because it removes what the default has."""
    stacked = dict(first)
    for key, value in second.items():
        both = isinstance(value, dict) and isinstance(first.get(key), dict)
        stacked[key] = stack(first[key], value) if both else value
    return stacked


def merge(default: dict[str, Any], overlay: dict[str, Any]) -> dict[str, Any]:
    """Lay the values of an overlay over the default's; ``standalone: true`` there leaves the default out.

    Mappings are merged key by key, everything else is replaced; null in the overlay removes what the default has.
    """
    if overlay.get("standalone") is True:
        return dict(overlay)
    merged = dict(default)
    for key, value in overlay.items():
        if value is None and key in default:
            del merged[key]
        elif isinstance(value, dict) and isinstance(default.get(key), dict):
            merged[key] = merge(default[key], value)
        else:
            merged[key] = value
    return merged


# --- from values to a config -----------------------------------------------------------------------------------------


def load(values: dict[str, Any]) -> Config:
    """Parse and check the merged values of the config files; raise `InputError` with a line for each mistake.

    What entries demand of each other is checked once all of them are right.
    """
    values, mistakes = mapping(values, ""), Mistakes()
    plain, encoder_defaults, stage_defaults = Config(), None, None
    allowed = [*Config.__dataclass_fields__, "standalone"]
    for key in values:
        with mistakes.noted():
            if key not in allowed:
                raise unknown(key, allowed, "")
    with mistakes.noted():
        if not isinstance(values.get("standalone", False), bool):
            raise InputError(f"standalone is {show(values['standalone'])}; allowed: true or false")
    with mistakes.noted():
        plain = parse(Config, {key: values[key] for key in ("results", "seed", "seeds") if key in values})
    with mistakes.noted():
        encoder_defaults = check_partial(Encoder, values.get("pretraining"), "pretraining")
    with mistakes.noted():
        stage_defaults = check_partial(Stage, values.get("training"), "training")
    if None in (encoder_defaults, stage_defaults) or not {"pretraining", "training"} <= values.keys():
        mistakes.tell()  # without defaults, whose section may be what is mistyped, much would be missing in the entries

    def encoder(entry: dict[str, Any], path: str) -> Encoder:
        settings = parse(Encoder, encoder_values(entry, encoder_defaults, path), path)
        return _seeded(_without_unread(settings, entry, path), plain.seed)

    def stage(entry: dict[str, Any], path: str) -> Stage:
        return _seeded(parse(Stage, stage_values(entry, stage_defaults, path), path), plain.seed)

    readers = {
        "collections": _collection,
        "starts": partial(parse, Start),
        "importance": partial(parse, Importance),
        "encoders": encoder,
        "stages": stage,
        "systems": partial(parse, System),
    }
    sections: dict[str, Any] = {}
    for section, read in readers.items():
        entries, sections[section] = _entries(values, section, mistakes), {}
        if section == "encoders":
            own, entries = entries, {}
            with mistakes.noted():
                entries = inherited(own, encoder_defaults)
        for name, entry in entries.items():
            with mistakes.noted():
                sections[section][name] = read(entry, join(section, name))
    for name, cls in (("evaluation", Evaluation), ("report", Report)):
        with mistakes.noted():
            sections[name] = parse(cls, values.get(name), name)
    mistakes.tell()
    config = replace(plain, pretraining=encoder_defaults, training=stage_defaults, **sections)
    checks.check(config, values)
    return seeds.replicate(config)


def _entries(values: dict[str, Any], section: str, mistakes: Mistakes) -> Entries:
    """Return the entries of a section that are mappings with fitting names."""
    entries, fitting = {}, {}
    with mistakes.noted():
        entries = mapping(values.get(section), section)
    for name, entry in entries.items():
        with mistakes.noted():
            checks.check_name(name, section)
            path = join(section, name)
            if entry is None:
                raise InputError(f"{path} is empty; allowed: a mapping of its settings ({{}} where all have defaults)")
            fitting[name] = mapping(entry, path)
    return fitting


def _seeded(entry: Any, seed: int) -> Any:
    return replace(entry, seed=seed) if entry.seed == -1 else entry


def _without_unread(encoder: Encoder, entry: dict[str, Any], path: str) -> Encoder:
    """Set what the encoder does not read to its default: changing that for others then restarts nothing here.

    Raises `InputError` where the entry itself says it.
    """
    defaults = {field.name: field.default for field in fields(encoder) if field.name in encoder.unread}
    for key, why in encoder.unread.items():
        if key in entry and getattr(encoder, key) != defaults[key]:
            raise InputError(f"{path}.{key} is {show(entry[key])}, but {why}; leave it out")
    return replace(encoder, **defaults)


def _collection(values: dict[str, Any], path: str) -> Collection:
    source, allowed = values.get("source"), collections.names()
    if source is None:
        raise InputError(f"{path}.source is missing; allowed: {', '.join(allowed)}")
    if source not in allowed:
        raise InputError(f"{path}.source is {show(source)}; {suggestion(str(source), allowed)}")
    own = {key: value for key, value in values.items() if key != "source"}
    return Collection(source, parse(collections.source(source).Settings, own, path))


# --- what entries inherit --------------------------------------------------------------------------------------------


def inherited(encoders: Entries, defaults: dict[str, Any]) -> Entries:
    """Give each encoder what it has from the one before it: after another its start, as a snapshot of one everything.

    Raises `InputError` where that one is not there or needs the encoder itself, and where a snapshot has more of its
    own than its step.
    """
    for key in BEFORE:
        if key in defaults:
            raise InputError(f"pretraining.{key} cannot be a default: the first encoder has none before it")
    before = {
        name: {key: values[key] for key in BEFORE if isinstance(values.get(key), str) and values[key]}
        for name, values in encoders.items()
    }
    needs = {name: [other for other in needed.values() if other in encoders] for name, needed in before.items()}
    checks.check_cycles("encoders", needs)
    for name, needed in before.items():
        for key, other in needed.items():
            if other not in encoders:
                raise InputError(f"encoders.{name}.{key} is {show(other)}; {suggestion(other, encoders)}")
        source = needed.get("snapshot_of", "")
        first = before.get(source, {}).get("snapshot_of")
        if first:
            raise InputError(f"encoders.{name}.snapshot_of is {source}, a snapshot itself; allowed: {first}")

    def whole(name: str) -> dict[str, Any]:
        values, needed = encoders[name], before[name]
        if "snapshot_of" in needed:
            return _snapshot(values, whole(needed["snapshot_of"]), defaults, f"encoders.{name}")
        start = whole(needed["after"]).get("start") if "after" in needed else None
        return {"start": start, **values} if start else values

    return {name: whole(name) for name in encoders}


def _snapshot(values: dict[str, Any], source: dict[str, Any], defaults: dict[str, Any], path: str) -> dict[str, Any]:
    """Give a snapshot the values of the encoder that it is one of, `source`, and its own step."""
    name, whole = values["snapshot_of"], {**defaults, **source}
    if whole.get("objective") == "none":
        raise InputError(f"{path}.snapshot_of is {name}, which is not pre-trained; allowed: an encoder that is")
    for key in values:
        if key not in OF_SNAPSHOT and values[key] != whole.get(key):
            raise InputError(
                f"{path}.{key} is {show(values[key])}, but a snapshot has all but its take_step from encoders.{name}; "
                "leave it out"
            )
    if not values.get("take_step"):
        raise InputError(f"{path}.take_step is missing: the step of encoders.{name} that is kept")
    return {**source, **values}


def encoder_values(values: dict[str, Any], defaults: dict[str, Any], path: str) -> dict[str, Any]:
    """Lay the values of an encoder over the defaults of `pretraining`, without those that do not apply."""
    both = {**defaults, **values}
    objective = str(both.get("objective", "mae"))
    if objective == "none":
        checks.refuse_others(values, checks.NOT_PRETRAINED, path, "objective none")
        return checks.pick(both, checks.NOT_PRETRAINED)
    foreign = others(Encoder, objective)
    for key in values:
        if key in foreign:
            raise InputError(
                f"{path}.{key} does not go with objective {objective}; of the settings that only some objectives know "
                f"it takes {', '.join(known(Encoder, objective))}"
            )
    both = {key: value for key, value in both.items() if key not in foreign}
    masks = [both.get("encoder_masking")]
    if "decoder_masking" not in foreign:
        masks.append(both.get("decoder_masking", "importance"))
    if not any(mask in checks.READ_IMPORTANCE for mask in masks):
        if values.get("importance"):
            reading = " or ".join(checks.READ_IMPORTANCE)
            raise InputError(f"{path}.importance is {show(values['importance'])}, but no masking is {reading}")
        both.pop("importance", None)
    return both


def stage_values(values: dict[str, Any], defaults: dict[str, Any], path: str) -> dict[str, Any]:
    """Lay the values of a stage over the defaults of `training`, without those of the other kind."""
    kind = str(values.get("kind", defaults.get("kind")))
    foreign = others(Stage, kind)
    for key in values:
        if key in foreign:
            names = ", ".join(field.name for field in fields(Stage) if field.name in foreign)
            raise InputError(f"{path}.{key} is not a setting of a {kind}; it takes no {names}")
    return {**{key: value for key, value in defaults.items() if key not in foreign}, **values}
