"""Settings: frozen dataclasses whose fields carry type, default, unit, meaning, source and range, and their parser.

A value that does not fit is refused with its key, what was found and what is allowed. Standard library only: every
command reads its settings through this module, also those that last a second.
"""

from __future__ import annotations

import dataclasses
import difflib
import functools
import json
import math
import re
import types
import typing
from collections.abc import Callable, Iterable, Sequence
from dataclasses import MISSING
from pathlib import Path
from typing import Any, TypeVar

from cdmae.errors import InputError, Mistakes

T = TypeVar("T")

LARGEST = 2**31 - 1  # the cap of whole numbers without a bound of their own: larger ones overflow int32 further on
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")  # YAML 1.1 reads 3e-4, without a dot, as text


def setting(
    default: Any = MISSING,
    *,
    meaning: str,
    unit: str = "",
    source: str = "",
    low: float | None = None,
    high: float | None = None,
    above: float | None = None,
    choices: Sequence[Any] | Callable[[], Sequence[Any]] | None = None,
    later: bool = False,
) -> Any:
    """A field of a settings dataclass; without a default it is required.

    `low` and `high` are inclusive bounds and `above` an exclusive one, of a number or of each element of a list; only
    ``high=math.inf`` allows infinity. `choices` are the allowed values, or a function that lists them. `later`: it came
    when there were results without it; at its default no result depends on it (`unused`).
    """
    metadata = {
        "meaning": meaning,
        "unit": unit,
        "source": source,
        "low": low,
        "high": high,
        "above": above,
        "choices": choices,
        "later": later,
    }
    if isinstance(default, list | dict):
        return dataclasses.field(default_factory=lambda: type(default)(default), metadata=metadata)
    return dataclasses.field(default=default, metadata=metadata)


def parse(cls: type[T], values: dict[str, Any] | None, path: str = "") -> T:
    """Build the dataclass `cls` from plain values; `path` is the place of the values in the config, for messages.

    Raises `InputError` for unknown and missing keys, wrong types and values out of range; an `InputError` raised by
    ``__post_init__`` gets the path in front.
    """
    values, mistakes = mapping(values, path), Mistakes()
    found = _checked(cls, values, path, mistakes)
    mistakes.tell()
    for field in _fields(cls).values():
        if field.name not in values and field.default is MISSING and field.default_factory is MISSING:
            raise InputError(f"{join(path, field.name)} is missing: {field.metadata.get('meaning', 'it is required')}")
    try:
        return cls(**found)
    except InputError as error:
        raise InputError(f"{path}: {error}" if path else str(error)) from None


def check_partial(cls: type, values: dict[str, Any] | None, path: str) -> dict[str, Any]:
    """Check values that are some of the fields of `cls`, such as defaults for several; return them unchanged."""
    values, mistakes = mapping(values, path), Mistakes()
    _checked(cls, values, path, mistakes)
    mistakes.tell()
    return values


def _checked(cls: type, values: dict[str, Any], path: str, mistakes: Mistakes) -> dict[str, Any]:
    """The values as their fields' types; what is wrong with them goes to the `mistakes`."""
    fields, hints, found = _fields(cls), _types(cls), {}
    for key, value in values.items():
        with mistakes.noted():
            if key not in fields:
                raise unknown(key, fields, path)
            found[key] = _value(hints[key], fields[key].metadata, value, join(path, key))
    return found


def _fields(cls: type) -> dict[str, dataclasses.Field]:
    return {field.name: field for field in dataclasses.fields(cls) if field.init}


@functools.cache
def _types(cls: type) -> dict[str, Any]:
    """The types of a dataclass's fields, which the annotations are compiled into: half of the time of a config."""
    return typing.get_type_hints(cls)


def mapping(values: Any, path: str) -> dict[str, Any]:
    """The values as a dict with text keys (nothing is an empty one), or an `InputError`."""
    if values is None:
        return {}
    if not isinstance(values, dict):
        raise InputError(f"{path or 'the config'} is {show(values)}; allowed: a mapping of keys to values")
    for key in values:
        if not isinstance(key, str):
            raise InputError(f"{join(path, show(key))} is not a text key; put it in quotation marks")
    return values


def asdict(settings: Any) -> Any:
    """Plain JSON values: dataclasses to dicts, tuples to lists, paths to text."""
    if dataclasses.is_dataclass(settings) and not isinstance(settings, type):
        return {field.name: asdict(getattr(settings, field.name)) for field in dataclasses.fields(settings)}
    if isinstance(settings, dict):
        return {key: asdict(value) for key, value in settings.items()}
    if isinstance(settings, list | tuple):
        return [asdict(value) for value in settings]
    return str(settings) if isinstance(settings, Path) else settings


def later(cls: type) -> set[str]:
    """The settings of `cls` that came when there were results without them."""
    return {field.name for field in dataclasses.fields(cls) if field.metadata.get("later")}


def unused(settings: Any) -> set[str]:
    """Those of them that are at their defaults: a job that were told of them would make again what is there."""
    fields = {field.name: field for field in dataclasses.fields(settings)}
    return {name for name in later(type(settings)) if getattr(settings, name) == fields[name].default}


def unknown(key: str, allowed: Iterable[str], path: str, what: str = "a setting") -> InputError:
    """The error for a name that is none of those allowed, with the nearest one, or all of them."""
    return InputError(f"{join(path, key)} is not {what}; {suggestion(key, allowed)}")


def suggestion(name: str, allowed: Iterable[str]) -> str:
    """``did you mean X?`` where an allowed name is near, otherwise ``allowed: ...``."""
    allowed = list(allowed)
    near = difflib.get_close_matches(name, allowed, n=1)
    return f"did you mean {near[0]}?" if near else f"allowed: {', '.join(allowed) or 'none'}"


def join(path: str, key: str) -> str:
    """The dotted path of a key."""
    return f"{path}.{key}" if path else key


def show(value: Any) -> str:
    """A value as it stands in YAML or JSON, shortened, for a message; a path is told whole, for whoever looks there."""
    plain = isinstance(value, str) and value.isprintable() and value.strip() and not _NUMBER.fullmatch(value)
    text = value if plain else json.dumps(value, ensure_ascii=False, default=str)
    path = isinstance(value, str) and "/" in value
    return text if path or len(text) <= 60 else text[:57] + "..."


def reference(cls: type) -> list[dict[str, str]]:
    """One row per setting of `cls` (name, default, allowed, unit, meaning, source), for the printed reference."""
    hints = _types(cls)
    rows = []
    for field in dataclasses.fields(cls):
        default = field.default if field.default_factory is MISSING else field.default_factory()
        rows.append(
            {
                "name": field.name,
                "default": "required" if default is MISSING else show(asdict(default)),
                "allowed": _allowed(hints[field.name], field.metadata),
                **{key: field.metadata.get(key, "") for key in ("unit", "meaning", "source")},
            }
        )
    return rows


# --- one value -------------------------------------------------------------------------------------------------------


def _value(hint: Any, metadata: Any, value: Any, path: str) -> Any:
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if dataclasses.is_dataclass(hint):
        return parse(hint, value, path)
    if hint is Any:
        return value
    if origin in (typing.Union, types.UnionType):
        inner = [each for each in arguments if each is not types.NoneType]
        return None if value is None else _value(inner[0], metadata, value, path)
    if origin is dict:
        return {
            key: _value(arguments[1], metadata, each, join(path, key)) for key, each in mapping(value, path).items()
        }
    if hint is dict:
        return mapping(value, path)
    if origin in (list, tuple):
        if not isinstance(value, list | tuple):
            raise _refuse(hint, metadata, value, path)
        return origin(_value(arguments[0], metadata, each, f"{path}[{index}]") for index, each in enumerate(value))
    if origin is typing.Literal:
        metadata = {**metadata, "choices": arguments}
        hint = type(arguments[0])
    return _scalar(hint, metadata, value, path)


def _scalar(hint: Any, metadata: Any, value: Any, path: str) -> Any:
    refused = _refuse(hint, metadata, value, path)
    if hint is float and isinstance(value, str) and _NUMBER.fullmatch(value.strip()):
        value = float(value)
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        value = float(value) if abs(value) < 2**53 else math.inf
    if hint is Path and isinstance(value, str):
        value = Path(value)
    if not isinstance(value, hint) or (isinstance(value, bool) and hint is not bool):
        raise refused
    if isinstance(value, str) and "\0" in value:
        raise InputError(f"{path} is {show(value)}; allowed: text without a NUL, which no command line can hold")
    choices = _choices(metadata)
    if choices is not None and value not in choices:
        if isinstance(value, str):
            raise InputError(f"{path} is {show(value)}; {suggestion(value, [str(each) for each in choices])}")
        raise refused
    if hint in (int, float) and not _within(hint, metadata, value):
        raise refused
    return value


def _within(hint: Any, metadata: Any, value: float) -> bool:
    low, high, above = (metadata.get(key) for key in ("low", "high", "above"))
    if math.isnan(value) or (math.isinf(value) and high != math.inf):
        return False
    if hint is int and high is None and abs(value) > LARGEST:
        return False
    return (low is None or value >= low) and (high is None or value <= high) and (above is None or value > above)


def _choices(metadata: Any) -> list[Any] | None:
    choices = metadata.get("choices")
    return None if choices is None else list(choices() if callable(choices) else choices)


def _refuse(hint: Any, metadata: Any, value: Any, path: str) -> InputError:
    return InputError(f"{path} is {show(value)}; allowed: {_allowed(hint, metadata)}")


def _allowed(hint: Any, metadata: Any) -> str:
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if dataclasses.is_dataclass(hint) or origin is dict or hint is dict:
        return "a mapping"
    if origin in (typing.Union, types.UnionType):
        return _allowed(arguments[0], metadata) + " or nothing"
    if origin in (list, tuple):
        return f"a list, each element {_allowed(arguments[0], metadata)}"
    if origin is typing.Literal:
        return ", ".join(map(str, arguments))
    choices = _choices(metadata)
    if choices is not None:
        return ", ".join(show(each) for each in choices)
    if hint is bool:
        return "true or false"
    if hint not in (int, float):
        return "text (in quotation marks if it looks like a number)"
    return ("a whole number" if hint is int else "a number") + _bounds(metadata)


def _bounds(metadata: Any) -> str:
    low, high, above = (metadata.get(key) for key in ("low", "high", "above"))
    lower = f"from {_number(low)}" if low is not None else f"above {_number(above)}" if above is not None else ""
    upper = "" if high is None else "to infinity" if high == math.inf else f"to {_number(high)}"
    return "".join(f" {each}" for each in (lower, upper) if each)


def _number(value: float) -> str:
    """Whole numbers with all their digits, others as short as they are exact enough."""
    return str(value) if isinstance(value, int) else f"{value:g}"
