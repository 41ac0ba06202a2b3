"""Read YAML config files into plain values, with file and line of each key, and overlay them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from functools import reduce
from pathlib import Path
from typing import Any

import yaml

from cdmae.errors import InputError, Keys, cause
from cdmae.fields import show

CODE = "__use_yte__"  # Snakemake would run expressions in such a file


class Values(dict):
    """Plain values; `places` has the file and line of each key."""

    places: dict[Keys, str]


def read_yaml(path: Path | str) -> Values:
    """Read a config file.

    Raises `InputError` for a missing or malformed file, and for a repeated key.
    """
    near = os.path.relpath(path) if Path(path).is_relative_to(Path.cwd()) else str(path)
    try:
        loader = yaml.SafeLoader(Path(path).read_text(encoding="utf-8"))
        node = loader.get_single_node()
        places = _places(node, near)  # before merge keys are resolved
        values = loader.construct_document(node) if node else None
    except InputError:  # also a ValueError
        raise
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1
        words = f"not YAML: {error.problem}"
        raise InputError(words, place=f"{near}, line {line}", kind="yaml") from None
    except (OSError, ValueError, yaml.YAMLError) as error:  # ValueError: a date that there is not
        reason = getattr(error, "strerror", None) or cause(error)
        words = f"the config file {path} cannot be read: {reason}; expected YAML in UTF-8"
        raise InputError(words, kind="file") from None
    if not isinstance(values, dict):
        words = f"contains {show(values)}; expected a mapping of settings"
        raise InputError(words, place=near)
    if CODE in values:
        words = f"the key {CODE} makes a config file run code; remove it"
        raise InputError(words, place=places[(CODE,)])
    values = Values(values)
    values.places = places
    return values


def _places(node: yaml.Node | None, file: str, keys: Keys = ()) -> dict[Keys, str]:
    """Map the keys in a node to their lines; refuse keys that are repeated or not text."""
    places: dict[Keys, str] = {}
    if not isinstance(node, yaml.MappingNode):
        return places
    for key, value in node.value:
        place = f"{file}, line {key.start_mark.line + 1}"
        path = (*keys, key.value)
        if not key.tag.endswith((":str", ":merge")):
            words = f"the key {key.value} is not text; put it in quotation marks"
            raise InputError(words, place=place)
        if path in places and key.tag.endswith(":str"):
            raise InputError(f"the key {key.value} is listed twice; remove one", place=place)
        places |= {path: place} | _places(value, file, path)
    return places


def gather(
    default: Path | str,
    overlays: Iterable[Path | str] = (),
    overrides: Mapping[str, Any] | None = None,
) -> Values:
    """Overlay the files and the command line's `overrides` on the default config, in order.

    ``standalone: true`` in a file omits the default config; if several files set it, the last one
    wins. The files are read here and not by Snakemake, which ignores repeated keys and does not
    treat null as a removal.
    """
    typed = Values(overrides or {})
    typed.places = dict.fromkeys(_paths(typed), "--config")
    layers = [*map(read_yaml, overlays), typed]
    standalone = [layer["standalone"] for layer in layers if "standalone" in layer]
    if standalone[-1:] != [True]:
        layers.insert(0, read_yaml(default))
    values = Values(reduce(lay, layers, {}))
    values.places = {path: place for layer in layers for path, place in layer.places.items()}
    systems = values.get("systems")
    if isinstance(systems, Mapping) and "report" in values:
        before = dict.fromkeys(name for layer in layers for name in layer.get("systems") or ())
        removed = [name for name in before if name not in systems]
        values["report"] = _without(removed, values["report"])
    return values


def _without(removed: list[str], values: Any) -> Any:
    """Drop the names of removed systems from the section `report`, and what is empty then."""
    if isinstance(values, list):
        return [value for value in values if value not in removed]
    if not isinstance(values, Mapping):
        return values
    kept = {key: _without(removed, value) for key, value in values.items() if key not in removed}
    return {key: value for key, value in kept.items() if value not in (*removed, [])}


def _paths(values: Any, keys: Keys = ()) -> Iterable[Keys]:
    """Yield the paths of all keys in nested mappings."""
    for key, value in values.items() if isinstance(values, Mapping) else ():
        yield (*keys, key)
        yield from _paths(value, (*keys, key))


def lay(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Overlay a mapping on another one, key by key; null removes a key.

    Null for a key that is not there is a mistake. It remains in the result, and the checks report
    it.
    """
    merged = dict(below)
    for key, value in above.items():
        if value is None and key in merged:
            del merged[key]
        elif isinstance(value, Mapping) and isinstance(merged.get(key), Mapping):
            merged[key] = lay(merged[key], value)
        else:
            merged[key] = value
    return merged
