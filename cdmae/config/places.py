"""File and line in the config for what the messages of `cdmae.config.load` complain of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cdmae.config import load as loading
from cdmae.errors import InputError

if TYPE_CHECKING:
    from cdmae.config.schema import Config
    from cdmae.fields import Keys


def load(default: Path | str, overlays: Sequence[Path | str], overrides: Mapping[str, Any] | None = None) -> Config:
    """Load the config of a default file, overlays and `overrides` of the command line; place its mistakes."""
    try:
        return loading.load(loading.gather(default, overlays, overrides))
    except InputError as error:
        alone = loading.stand_alone([*map(_values, overlays), overrides or {}])
        raise located(error, overlays if alone else [default, *overlays], overrides) from None


def located(error: InputError, files: Sequence[Path | str], overrides: Mapping[str, Any] | None = None) -> InputError:
    """Put file and line before each mistake whose keys stand in one of the config `files`, in their order.

    Of several files the last one with a key counts, as for the values. `overrides` stand in no file.
    """
    layers = [_values(path) for path in files]
    placed = [(_place(mistake.keys, layers, overrides or {}), str(mistake)) for mistake in error.several]
    sentences = []
    for place, sentence in sorted(placed, key=lambda pair: pair[0] or (len(files), 0)):
        path = Path(files[place[0]]) if place else Path()
        near = path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path
        sentences.append(f"{near}, line {place[1]}: {sentence}" if place else sentence)
    return InputError("\n".join(sentences))


def _values(path: Path | str) -> dict[str, Any]:
    """Return what a config file says; nothing for a file that is none, which its reader has refused."""
    try:
        return loading.read_yaml(path)
    except InputError:
        return {}


def _place(keys: Keys, layers: Sequence[dict[str, Any]], overrides: Mapping[str, Any]) -> tuple[int, int] | None:
    """Return the file and line of the key itself, of the entry's default for it, or of the nearest key above it."""
    keys = tuple(key for key in keys if isinstance(key, str))  # a list stands in a line of its own
    default = [(loading.DEFAULTS[keys[0]], *keys[2:])] if len(keys) > 2 and keys[0] in loading.DEFAULTS else []
    for place in [keys, *default, *(keys[:length] for length in range(len(keys) - 1, 0, -1))] if keys else []:
        for number in reversed(range(len(layers))):
            above = _mapping(layers[number], place[:-1])
            if place[-1] in above:
                typed = place[-1] in _mapping(overrides, place[:-1])
                return None if typed else (number, above.lines[place[-1]])
    return None


def _mapping(values: Any, keys: Keys) -> Any:
    """Return the mapping at some keys, an empty one where they lead nowhere."""
    for key in keys:
        values = values.get(key) if isinstance(values, Mapping) else None
    return values if isinstance(values, Mapping) else {}
