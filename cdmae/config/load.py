"""From config files to a config: the default file, overlays over it, what entries inherit, and every check.

`cdmae.config.schema` is the schema; `cdmae.config.places` adds the file and the line to what is said here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import fields, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from cdmae import collections
from cdmae.config import checks, seeds
from cdmae.config.schema import Collection, Config, Encoder, Evaluation, Importance, Report, Stage, Start, System
from cdmae.errors import InputError, Mistakes
from cdmae.fields import check_partial, join, mapping, parse, show, suggestion, unknown

T = TypeVar("T")


# --- from files to values --------------------------------------------------------------------------------------------


def read_yaml(path: Path | str) -> dict[str, Any]:
    """The values of a config file; raises `InputError` for a missing or malformed file and for a repeated key."""
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
        found = yaml.load(Path(path).read_text(encoding="utf-8"), Loader)  # a SafeLoader
        if found is None:
            raise InputError(f"{path} holds no settings; allowed: a mapping of settings")
        return mapping(found, str(path))
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
    """The values of the default config file with `values` over them: what the engine merged from overlays and options.

    The overlay files are read once more for the checks that the engine leaves out (repeated keys, encoding).
    """
    for path in overlays:
        read_yaml(path)
    return merge({} if values.get("standalone") is True else read_yaml(default), values)


def stack(first: dict[str, Any], second: dict[str, Any]) -> dict[str, Any]:
    """Two overlays as one, as the engine stacks them; null stays, for it removes what the default has."""
    stacked = dict(first)
    for key, value in second.items():
        both = isinstance(value, dict) and isinstance(first.get(key), dict)
        stacked[key] = stack(first[key], value) if both else value
    return stacked


def merge(default: dict[str, Any], overlay: dict[str, Any]) -> dict[str, Any]:
    """The default's values with those of an overlay in their place; ``standalone: true`` there leaves the default out.

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
    """Parse and check the merged values of the config files; raises `InputError`, a line with key and value a mistake.

    What entries demand of each other is checked once each of them is right.
    """
    values, mistakes = mapping(values, ""), Mistakes()
    plain = encoder_defaults = stage_defaults = None
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
    if None in (plain, encoder_defaults, stage_defaults) or not {"pretraining", "training"} <= values.keys():
        mistakes.tell()  # without defaults, whose section may be what is mistyped, much would be missing in the entries

    def encoder(entry: dict[str, Any], path: str) -> Encoder:
        found = parse(Encoder, checks.encoder_values(entry, encoder_defaults, path), path)
        return _seeded(_without_unread(found, entry, path), plain.seed)

    def stage(entry: dict[str, Any], path: str) -> Stage:
        return _seeded(parse(Stage, checks.stage_values(entry, stage_defaults, path), path), plain.seed)

    readers = {
        "collections": _collection,
        "starts": partial(parse, Start),
        "importance": partial(parse, Importance),
        "encoders": encoder,
        "stages": stage,
        "systems": partial(parse, System),
    }
    entries = {name: _entries(values, name, mistakes) for name in readers}
    encoders, entries["encoders"] = entries["encoders"], []
    with mistakes.noted():
        entries["encoders"] = checks.inherited(encoders, encoder_defaults)
    sections = {name: _parsed(entries[name], read, mistakes) for name, read in readers.items()}
    for name, kind in (("evaluation", Evaluation), ("report", Report)):
        with mistakes.noted():
            sections[name] = parse(kind, values.get(name), name)
    mistakes.tell()
    config = replace(plain, pretraining=encoder_defaults, training=stage_defaults, **sections)
    checks.check(config, values)
    return seeds.replicate(config)


def _entries(values: dict[str, Any], section: str, mistakes: Mistakes) -> list[checks.Entry]:
    """The entries of a section: the name, values and path of each."""
    found, entries = [], {}
    with mistakes.noted():
        entries = mapping(values.get(section), section)
    for name, entry in entries.items():
        with mistakes.noted():
            checks.check_name(name, section)
            path = join(section, name)
            if entry is None:
                raise InputError(f"{path} is empty; allowed: a mapping of its settings ({{}} where all have defaults)")
            found.append((name, mapping(entry, path), path))
    return found


def _parsed(entries: list[checks.Entry], read: Callable[[dict[str, Any], str], T], mistakes: Mistakes) -> dict[str, T]:
    """Entries by name; `read` makes one of its values and its path."""
    found = {}
    for name, values, path in entries:
        with mistakes.noted():
            found[name] = read(values, path)
    return found


def _seeded(entry: Any, seed: int) -> Any:
    return replace(entry, seed=seed) if entry.seed == -1 else entry


def _without_unread(encoder: Encoder, entry: dict[str, Any], path: str) -> Encoder:
    """The encoder with what it does not read at the default, so that to change it for others restarts nothing here.

    Raises `InputError` where that was written out in the entry itself.
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
