"""Settings: frozen dataclasses whose fields say type, default, range, unit, meaning and source; pydantic checks values.

A value that does not fit is refused with its key, what it is and what is allowed. Settings stay plain dataclasses, so
that code which only builds or copies them does not import pydantic. It checks some of the settings of a class (`read`):
what is missing, and what settings demand of each other, is known once all of them are there (`build`).
"""

from __future__ import annotations

import dataclasses
import difflib
import functools
import json
import math
import re
import typing
from collections.abc import Iterable
from dataclasses import MISSING
from typing import TYPE_CHECKING, Any, TypeVar

from cdmae.errors import InputError

if TYPE_CHECKING:
    from pydantic import TypeAdapter

T = TypeVar("T")
Keys = tuple[str | int, ...]  # where a value stands in a config, from the top

LARGEST = 2**31 - 1  # the cap of whole numbers without a bound of their own: larger ones overflow int32 further on
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


def setting(
    default: Any = MISSING,
    *,
    meaning: str,
    unit: str = "",
    source: str = "",
    low: float | None = None,
    high: float | None = None,
    above: float | None = None,
    only: Iterable[str] = (),
    needed: bool = False,
    later: bool = False,
    names: str = "",
) -> Any:
    """Describe a field of a settings dataclass; without a default it is required.

    `low` and `high` are inclusive bounds of a number and `above` an exclusive one; only ``high=math.inf`` allows
    infinity. `only` names the kinds of entries that know the setting, and `needed` says that these cannot do without
    it. Results exist that were made before a `later` setting came; at its default no result depends on it (`unused`).
    `names` is the section of the config whose entries the setting names (`named`).
    """
    endless = high == math.inf
    rules: dict[str, Any] = {"ge": low, "gt": above, "le": None if endless else high}  # of pydantic.Field
    if isinstance(default, int | float):
        rules["strict"] = True  # pydantic would take true for 1
    if type(default) is int and high is None:
        rules["le"] = LARGEST
    if type(default) is float and not endless:
        rules["allow_inf_nan"] = False
    rules = {key: value for key, value in rules.items() if value is not None}
    rules["description"] = f"{', '.join(only)}: {meaning}" if only else meaning
    rules["json_schema_extra"] = {"unit": unit, "source": source} | ({"endless": True} if endless else {})
    if default is not MISSING:
        rules["json_schema_extra"]["default"] = list(default) if isinstance(default, tuple) else default
    metadata = {"rules": rules, "only": tuple(only), "needed": needed, "later": later, "names": names}
    if isinstance(default, dict):
        return dataclasses.field(default_factory=dict, metadata=metadata)
    return dataclasses.field(default=default, metadata=metadata)


def parse(cls: type[T], values: dict[str, Any] | None, *keys: str) -> T:
    """Build the dataclass `cls` from plain values; `keys` are the place of the values in the config, for messages.

    Raises `InputError` with a line for each mistake: first for unknown keys, wrong types and values out of range, then
    for missing keys. An `InputError` of ``__post_init__`` gets the place in front.
    """
    return build(cls, read(cls, values, keys), keys)


def read(cls: type, values: dict[str, Any] | None, keys: Keys = ()) -> dict[str, Any]:
    """Return plain values for some of the settings of `cls`, and of the classes it is made of, in the settings' types.

    Raises `InputError` with a line for each value that does not fit.
    """
    from pydantic import ValidationError  # which jobs that build no settings from text do without

    try:
        return _adapter(cls).validate_python({} if values is None else values)
    except ValidationError as invalid:
        errors, schema = invalid.errors(include_url=False), json_schema(cls)
        raise InputError(*(_mistake(error, schema, keys) for error in errors)) from None


def build(cls: type[T], values: dict[str, Any], keys: Keys) -> T:
    """Make `cls` of checked values; raises `InputError` for missing ones and for those that do not go together."""
    mistakes = [
        refusal((*keys, field.name), f" is missing: {field.metadata['rules']['description']}")
        for field in dataclasses.fields(cls)
        if field.default is MISSING and field.default_factory is MISSING and field.name not in values
    ]
    if mistakes:
        raise InputError(*mistakes)
    try:
        return cls(**values)
    except InputError as error:  # it begins with the name of a setting
        where = f"{dotted(keys)}: " if keys else ""
        raise InputError(f"{where}{error}", keys=(*keys, str(error).partition(" ")[0])) from None


def refusal(keys: Keys, words: str) -> InputError:
    """Make the error for a mistake at a place of the config; `words` follow its keys."""
    return InputError(dotted(keys) + words, keys=keys)


@functools.cache
def _adapter(cls: type) -> TypeAdapter:
    from pydantic import TypeAdapter

    return TypeAdapter(_some(cls))


def _some(hint: Any) -> Any:
    """Return the type of some settings of a class, and of what else is made of settings."""
    if typing.get_origin(hint) is dict:
        key, value = typing.get_args(hint)
        return dict[key, _some(value)]
    if not dataclasses.is_dataclass(hint):
        return hint
    from pydantic import BeforeValidator, Field
    from typing_extensions import TypedDict

    settings, types = {}, typing.get_type_hints(hint, include_extras=True)
    nothing_is_empty = BeforeValidator(lambda value: {} if value is None else value)
    for field in dataclasses.fields(hint):
        exact, rules = _some(types[field.name]), Field(**field.metadata.get("rules", {}))
        mapped = typing.get_origin(exact) is dict or exact != types[field.name]
        settings[field.name] = typing.Annotated[(exact, rules, nothing_is_empty) if mapped else (exact, rules)]
    typed = TypedDict(hint.__name__, settings, total=False)
    typed.__pydantic_config__ = {"extra": "forbid"}
    return typed


def json_schema(cls: type) -> dict[str, Any]:
    """Return the JSON schema of some settings of a dataclass."""
    return _adapter(cls).json_schema()


def _mistake(error: Any, schema: dict[str, Any], keys: Keys) -> InputError:
    """Say what pydantic found: the key, its value and what is allowed; `schema` is the JSON schema of the whole."""
    value, rule = error["input"], schema
    for key in error["loc"]:
        keys = (*keys, key)
        if key not in rule.get("properties", {key: None}):
            return refusal(keys, f" is not a setting; {suggestion(str(key), rule['properties'])}")
        inner = rule.get("properties", {}).get(key) or rule.get("items") or rule["additionalProperties"]
        rule = whole(inner, schema)
    if value is None and rule.get("type") == "object":
        return refusal(keys, " is empty; allowed: a mapping of its settings ({} where all have defaults)")
    if "enum" in rule and isinstance(value, str):
        return refusal(keys, f" is {show(value)}; {suggestion(value, rule['enum'])}")
    number = isinstance(value, str) and _NUMBER.fullmatch(value)
    quoted = ", without quotation marks" if number and rule.get("type") in ("number", "integer") else ""
    return refusal(keys, f" is {show(value)}; allowed: {allowed(rule)}{quoted}")


def whole(rule: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    """Return a rule of a JSON schema with what it refers to."""
    return schema["$defs"][rule["$ref"].rpartition("/")[2]] | rule if "$ref" in rule else rule


def allowed(rule: dict[str, Any]) -> str:
    """Say which values a JSON schema allows."""
    kind = rule.get("type")
    if "enum" in rule:
        return ", ".join(map(show, rule["enum"]))
    if kind == "array":
        return f"a list, each element {allowed(rule['items'])}"
    if kind in ("integer", "number"):
        low, above, high = (rule.get(key) for key in ("minimum", "exclusiveMinimum", "maximum"))
        lower = f" from {_digits(low)}" if low is not None else f" above {_digits(above)}" if above is not None else ""
        upper = f" to {_digits(high)}" if high not in (None, LARGEST) else " to infinity" if "endless" in rule else ""
        return ("a whole number" if kind == "integer" else "a number") + lower + upper
    return {
        "object": "a mapping of keys to values",
        "boolean": "true or false",
        "string": "text (in quotation marks if it looks like a number)",
    }[kind]


def _digits(number: float) -> str:
    """Whole numbers with all their digits, others as short as they are exact enough."""
    return str(number) if isinstance(number, int) else f"{number:g}"


def asdict(settings: Any, without: Iterable[str] = ()) -> dict[str, Any]:
    """Return settings as plain JSON values, without some: tuples are lists."""
    plain = json.loads(json.dumps(dataclasses.asdict(settings)))
    return {key: value for key, value in plain.items() if key not in without}


def pick(values: dict[str, Any], keys: Iterable[str]) -> dict[str, Any]:
    """Return the values of some keys, in their own order."""
    return {key: value for key, value in values.items() if key in keys}


def known(cls: type, kind: str) -> list[str]:
    """List the settings of `cls` that only some kinds of entries know, this one among them."""
    return [field.name for field in dataclasses.fields(cls) if kind in field.metadata.get("only", ())]


def others(cls: type, kind: str) -> set[str]:
    """Return the settings of `cls` that a kind of entries does not know; a kind that no setting names knows all."""
    only = {field.name: field.metadata.get("only") for field in dataclasses.fields(cls)}
    return {name for name, kinds in only.items() if kinds and kind not in kinds} if known(cls, kind) else set()


def unused(settings: Any) -> set[str]:
    """Return the settings that came when there were results without them, and that are at their defaults.

    Telling a job of them would make its results again.
    """
    later = [field for field in dataclasses.fields(settings) if field.metadata.get("later")]
    return {field.name for field in later if getattr(settings, field.name) == field.default}


def named(settings: Any) -> list[tuple[Keys, str, str]]:
    """List the names of other entries in an entry: where one stands, such as ``("of", 1)``, the name, its section."""
    edges: list[tuple[Keys, str, str]] = []
    for field in dataclasses.fields(settings):
        value, section = getattr(settings, field.name), field.metadata.get("names")
        if section and isinstance(value, str):
            edges += [((field.name,), value, section)] if value else []
        elif section:
            places = value if isinstance(value, dict) else range(len(value))
            edges += [((field.name, place), name, section) for place, name in zip(places, value, strict=True)]
    return edges


def suggestion(name: str, names: Iterable[str]) -> str:
    """``did you mean X?`` where a name is near, otherwise ``allowed: ...``."""
    names = list(names)
    near = difflib.get_close_matches(name, names, n=1)
    return f"did you mean {near[0]}?" if near else f"allowed: {', '.join(names) or 'none'}"


def dotted(keys: Keys) -> str:
    """Write keys as messages do: ``systems.fused.of[1]``."""
    return "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in keys).removeprefix(".")


def show(value: Any) -> str:
    """Show a value as it stands in YAML or JSON, shortened unless it is a path, which the user may have to look up."""
    other = isinstance(value, str) and (value in ("true", "false", "null") or _NUMBER.fullmatch(value))
    plain = isinstance(value, str) and value.isprintable() and value.strip() and not other
    text = value if plain else json.dumps(value, ensure_ascii=False, default=str)
    path = isinstance(value, str) and "/" in value
    return text if path or len(text) <= 60 else text[:57] + "..."
