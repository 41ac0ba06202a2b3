"""Read YAML config files into plain values, with file and line of each key, and overlay them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import yaml

from cdmae.errors import InputError
from cdmae.fields import Keys, show
from cdmae.files import check_file

# as in 3e-4, which is text in YAML 1.1
EXPONENT = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)[eE][-+]?\d+$")

TEMPLATE = "__use_yte__"  # the key with which Snakemake runs code in a config file

Place = tuple[str, int]  # a file and a line


class Values(dict):
    """Plain values; `lines` has the file and line of each key (None: the command line)."""

    lines: dict[Keys, Place | None]


class Loader(yaml.SafeLoader):
    """A loader that reads 3e-4 as a number, as YAML 1.2 does."""


Loader.add_implicit_resolver("tag:yaml.org,2002:float", EXPONENT, list("+-.0123456789"))


def read_yaml(path: Path | str) -> Values:
    """Read a config file.

    Raises `InputError` for a missing or malformed file, and for a repeated key.
    """
    check_file(path)
    try:
        loader = Loader(Path(path).read_text(encoding="utf-8"))
        node = loader.get_single_node()
        lines = _lines(node, str(path))
        values = loader.construct_document(node) if node else None
    except UnicodeDecodeError as error:
        words = f"{path} is not UTF-8 text (byte {error.start}); save it as UTF-8"
        raise InputError(words) from None
    except OSError as error:
        raise InputError(f"the config file {path} cannot be read: {error.strerror}") from None
    except (yaml.YAMLError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        where = f"{path}, line {mark.line + 1}" if mark else str(path)
        reason = getattr(error, "problem", None) or error
        raise InputError(f"{where}: not YAML ({reason})") from None
    if not isinstance(values, dict):
        found = show(values or "nothing")
        raise InputError(f"{path} contains {found}; expected a mapping of settings")
    values = Values(values)
    values.lines = lines
    return values


def _lines(node: yaml.Node | None, file: str, keys: Keys = ()) -> dict[Keys, Place | None]:
    """Map the keys in a node to their lines; refuse keys that are repeated or not text."""
    lines: dict[Keys, Place | None] = {}
    if not isinstance(node, yaml.MappingNode):
        return lines
    for key, value in node.value:
        where = f"{file}, line {key.start_mark.line + 1}"
        if not key.tag.endswith((":str", ":merge")):
            raise InputError(f"{where}: the key {key.value} is not text; put it in quotation marks")
        path = (*keys, key.value)
        if path == (TEMPLATE,):
            raise InputError(f"{where}: the key {TEMPLATE} makes a config file run code; remove it")
        if path in lines and not key.tag.endswith(":merge"):
            raise InputError(f"{where}: the key {key.value} is listed twice")
        lines |= {path: (file, key.start_mark.line + 1)} | _lines(value, file, path)
    return lines


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
    layers = [*map(read_yaml, overlays), _typed(overrides or {})]
    standalone = [layer["standalone"] for layer in layers if "standalone" in layer]
    first = {} if standalone[-1:] == [True] else read_yaml(default)
    values = Values(lay(first, *layers))
    values.lines = {}
    for layer in (first, *layers):
        values.lines |= getattr(layer, "lines", dict.fromkeys(_paths(layer)))
    _drop_systems(values, layers)
    return values


def _typed(values: Any) -> Any:
    """Parse the scalars in command-line lists and mappings, which Snakemake passes as text."""
    if isinstance(values, Mapping):
        return {key: _typed(value) for key, value in values.items()}
    if isinstance(values, list):
        return [_typed(value) for value in values]
    if not isinstance(values, str) or not values:
        return values
    tag = Loader("").resolve(yaml.ScalarNode, values, (True, False))
    is_text = tag.rpartition(":")[2] not in ("null", "bool", "int", "float")
    return values if is_text else yaml.load(values, Loader)  # noqa: S506 (a SafeLoader)


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


def mapping(values: Any) -> Mapping[str, Any]:
    """Return values that should be a mapping; empty if they are not, which is refused elsewhere."""
    return values if isinstance(values, Mapping) else {}


def _drop_systems(values: dict[str, Any], layers: Iterable[Mapping[str, Any]]) -> None:
    """Drop the systems that a layer removes by null from the section `report`, too."""
    removed: set[str] = set()
    for layer in layers:
        systems = mapping(layer.get("systems"))
        removed |= {name for name, entry in systems.items() if entry is None}
    removed -= set(mapping(values.get("systems")))
    report = mapping(values.get("report"))
    if removed and isinstance(report.get("methods"), dict):
        methods = report["methods"].items()
        report["methods"] = {key: name for key, name in methods if name not in removed}
    if removed and isinstance(report.get("compare"), dict):
        compare = {}
        for system, baselines in report["compare"].items():
            left = baselines
            if isinstance(baselines, list):
                left = [name for name in baselines if name not in removed]
            if system not in removed and (left or not baselines):
                compare[system] = left
        report["compare"] = compare
