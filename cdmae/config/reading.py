"""Read YAML config files into plain values, with file and line of each key, and overlay them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import yaml

from cdmae.errors import InputError, cause
from cdmae.fields import Keys, show
from cdmae.files import check_file

CODE = "__use_yte__"  # Snakemake would run expressions in such a file


class Values(dict):
    """Plain values; `places` has the file and line of each key."""

    places: dict[Keys, str]


def read_yaml(path: Path | str) -> Values:
    """Read a config file.

    Raises `InputError` for a missing or malformed file, and for a repeated key.
    """
    check_file(path)
    near = os.path.relpath(path) if Path(path).is_relative_to(Path.cwd()) else str(path)
    try:
        loader = yaml.SafeLoader(Path(path).read_text(encoding="utf-8"))
        node = loader.get_single_node()
        places = _places(node, near)  # before merge keys are resolved
        values = loader.construct_document(node) if node else None
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1
        raise InputError(f"{near}, line {line}: not YAML: {error.problem}") from None
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise InputError(f"the config file {path} cannot be read: {cause(error)}") from None
    if not isinstance(values, dict):
        raise InputError(f"{path} contains {show(values)}; expected a mapping of settings")
    if CODE in values:
        where = places[(CODE,)]
        raise InputError(f"{where}: the key {CODE} makes a config file run code; remove it")
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
            raise InputError(f"{place}: the key {key.value} is not text; put it in quotation marks")
        if path in places and key.tag.endswith(":str"):
            raise InputError(f"{place}: the key {key.value} is listed twice")
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
    values = Values(lay(*layers))
    values.places = {}
    removed = []
    for layer in layers:
        values.places |= layer.places
        systems = layer.get("systems")
        if isinstance(systems, Mapping):
            removed += [name for name, entry in systems.items() if entry is None]
    removed = [name for name in removed if name not in (values.get("systems") or {})]
    if removed and "report" in values:
        values["report"] = _without(removed, values["report"])
    return values


def _without(names: list[str], values: Any) -> Any:
    """Drop the names of removed systems from the section `report`, and what is empty then."""
    if isinstance(values, list):
        return [value for value in values if value not in names]
    if not isinstance(values, Mapping):
        return values
    kept = {}
    for key, value in values.items():
        left = _without(names, value)
        if key not in names and value not in names and (left or not value):
            kept[key] = left
    return kept


def _paths(values: Any, keys: Keys = ()) -> Iterable[Keys]:
    """Yield the paths of all keys in nested mappings."""
    for key, value in values.items() if isinstance(values, Mapping) else ():
        yield (*keys, key)
        yield from _paths(value, (*keys, key))


def lay(*layers: Mapping[str, Any]) -> dict[str, Any]:
    """Merge mappings key by key: a later value replaces an earlier value, and null removes a key.

    Null for a key that no earlier layer has is a mistake. It remains in the result, and the checks
    report it.
    """
    merged = {}
    for key in dict.fromkeys(key for layer in layers for key in layer):
        values = [layer[key] for layer in layers if key in layer]
        nulls = [index for index, value in enumerate(values) if value is None]
        left = values[nulls[-1] + 1 :] if nulls else values
        if left or len(nulls) == len(values):
            mappings = left and all(isinstance(value, Mapping) for value in left)
            merged[key] = lay(*left) if mappings else values[-1]
    return merged
