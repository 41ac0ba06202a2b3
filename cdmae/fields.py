"""Settings: frozen dataclasses whose fields say type, default, range, unit, meaning and source; pydantic checks values.

A value that does not fit is refused with its key, what it is and what is allowed. Settings stay plain dataclasses, so
that code which only builds or copies them does not import pydantic.
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
    only: Iterable[str] = (),
    needed: bool = False,
    later: bool = False,
) -> Any:
    """Describe a field of a settings dataclass; without a default it is required.

    `low` and `high` are inclusive bounds of a number and `above` an exclusive one; only ``high=math.inf`` allows
    infinity. `only` names the kinds of entries that know the setting, and `needed` says that these cannot do without
    it. Results exist that were made before a `later` setting came; at its default no result depends on it (`unused`).
    """
    endless = high == math.inf
    rules: dict[str, Any] = {"ge": low, "gt": above, "le": None if endless else high}  # of pydantic.Field
    if isinstance(default, int | float):
        rules["strict"] = True  # pydantic would take true for 1
    if type(default) is int and high is None:
        rules["le"] = LARGEST
    if type(default) is float and not endless:
        rules["allow_inf_nan"] = False
    metadata = {key: value for key, value in rules.items() if value is not None}
    metadata["description"] = f"{', '.join(only)}: {meaning}" if only else meaning
    metadata["json_schema_extra"] = {"unit": unit, "source": source} | ({"endless": True} if endless else {})
    metadata |= {"only": tuple(only), "needed": needed, "later": later}
    if isinstance(default, dict):
        return dataclasses.field(default_factory=dict, metadata=metadata)
    return dataclasses.field(default=default, metadata=metadata)


def parse(cls: type[T], values: dict[str, Any] | None, path: str = "") -> T:
    """Build the dataclass `cls` from plain values; `path` is the place of the values in the config, for messages.

    Raises `InputError` with a line for each mistake: unknown and missing keys, wrong types and values out of range. An
    `InputError` of ``__post_init__`` gets the path in front.
    """
    return _checked(cls, values, path, partial=False)


def check_partial(cls: type, values: dict[str, Any] | None, path: str) -> dict[str, Any]:
    """Check values that are some of the fields of `cls`, such as defaults for several; return them as a mapping."""
    _checked(cls, values, path, partial=True)
    return mapping(values, path)


def _checked(cls: type, values: Any, path: str, *, partial: bool) -> Any:
    from pydantic import ValidationError  # which jobs that build no settings from text do without

    hints = typing.get_type_hints(cls)
    plain = {key: _numbers(hints.get(key), value) for key, value in mapping(values, path).items()}
    for key, value in plain.items():
        if isinstance(value, str) and "\0" in value:
            raise InputError(
                f"{join(path, key)} is {show(value)}; allowed: text without a NUL, which no command line can hold"
            )
    try:
        return _adapter(cls).validate_python(plain)
    except ValidationError as invalid:
        errors = invalid.errors(include_url=False)
    whole = ("missing", "value_error")  # told of whole entries whose values are right
    mistakes = [error for error in errors if error["type"] not in whole] or ([] if partial else errors)
    if mistakes:
        raise InputError("\n".join(_sentence(error, json_schema(cls), path) for error in mistakes))
    return None


@functools.cache
def _adapter(cls: type) -> TypeAdapter:
    from pydantic import ConfigDict, TypeAdapter, with_config

    return TypeAdapter(with_config(ConfigDict(extra="forbid"))(cls))


def json_schema(cls: type) -> dict[str, Any]:
    """Return the JSON schema of a settings dataclass."""
    return _adapter(cls).json_schema()


def _numbers(hint: Any, value: Any) -> Any:
    """Read numbers that are text, as is all that the engine passes on in lists; nothing is an empty mapping."""
    if typing.get_origin(hint) is dict and value is None:
        return {}
    if isinstance(value, list) and typing.get_origin(hint) is tuple:
        return [_numbers(typing.get_args(hint)[0], item) for item in value]
    if isinstance(value, dict) and typing.get_origin(hint) is dict:
        return {key: _numbers(typing.get_args(hint)[1], item) for key, item in value.items()}
    if hint in (int, float) and isinstance(value, str) and _NUMBER.fullmatch(value.strip()):
        number = float(value)
        return int(number) if hint is int and number.is_integer() else number
    return value


def _sentence(error: Any, rule: dict[str, Any], path: str) -> str:
    """Say what pydantic found: the key, its value and what is allowed; `rule` is the JSON schema of the whole."""
    kind, value, location = error["type"], error["input"], error["loc"]
    if kind == "value_error":
        return f"{path}: {error['ctx']['error']}" if path else str(error["ctx"]["error"])
    misnamed = location[-1] == "[key]"
    for key in location[:-2] if misnamed else location:
        if key not in rule.get("properties", {key: None}):
            return str(unknown(str(key), rule["properties"], path))
        path = f"{path}[{key}]" if "items" in rule else join(path, str(key))
        rule = rule.get("properties", {}).get(key) or rule.get("items") or rule.get("additionalProperties")
    if misnamed:
        return f"{join(path, show(value))} is not a text key; put it in quotation marks"
    if kind == "missing":
        return f"{path} is missing: {rule['description']}"
    if "enum" in rule and isinstance(value, str):
        return f"{path} is {show(value)}; {suggestion(value, rule['enum'])}"
    return f"{path} is {show(value)}; allowed: {allowed(rule)}"


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


def reference(cls: type) -> list[dict[str, str]]:
    """List the settings of `cls`: the name, default, allowed values, unit, meaning and source of each."""
    schema = json_schema(cls)
    return [
        {
            "name": name,
            "default": "required" if name in schema.get("required", ()) else show(rule.get("default", {})),
            "allowed": allowed(rule),
            "meaning": rule["description"],
            **{key: rule[key] for key in ("unit", "source")},
        }
        for name, rule in schema["properties"].items()
        if "description" in rule  # the others are sections of their own
    ]


def mapping(values: Any, path: str) -> dict[str, Any]:
    """Return the values as a dict with text keys (nothing is an empty one); raise `InputError` for anything else."""
    if values is None:
        return {}
    if not isinstance(values, dict):
        raise InputError(f"{path or 'the config'} is {show(values)}; allowed: a mapping of keys to values")
    for key in values:
        if not isinstance(key, str):
            raise InputError(f"{join(path, show(key))} is not a text key; put it in quotation marks")
    return values


def asdict(settings: Any) -> dict[str, Any]:
    """Return settings as plain JSON values: tuples are lists."""
    return json.loads(json.dumps(dataclasses.asdict(settings)))


def known(cls: type, kind: str, *, needed: bool = False) -> list[str]:
    """List the settings of `cls` that only some kinds of entries know, this one among them; or those that it needs."""
    fields = [field for field in dataclasses.fields(cls) if kind in field.metadata.get("only", ())]
    return [field.name for field in fields if field.metadata["needed"] or not needed]


def others(cls: type, kind: str) -> set[str]:
    """Return the settings of `cls` that a kind of entries does not know; a kind that no setting names knows all."""
    only = {field.name: field.metadata.get("only") for field in dataclasses.fields(cls)}
    return {name for name, kinds in only.items() if kinds and kind not in kinds} if known(cls, kind) else set()


def later(cls: type) -> set[str]:
    """Return the settings of `cls` that came when there were results without them."""
    return {field.name for field in dataclasses.fields(cls) if field.metadata.get("later")}


def unused(settings: Any) -> set[str]:
    """Return those of them that are at their defaults: telling a job of them would make its results again."""
    defaults = {field.name: field.default for field in dataclasses.fields(settings)}
    return {name for name in later(type(settings)) if getattr(settings, name) == defaults[name]}


def unknown(key: str, names: Iterable[str], path: str, what: str = "a setting") -> InputError:
    """Make the error for a name that is none of `names`, with the nearest one, or all of them."""
    return InputError(f"{join(path, key)} is not {what}; {suggestion(key, names)}")


def suggestion(name: str, names: Iterable[str]) -> str:
    """``did you mean X?`` where a name is near, otherwise ``allowed: ...``."""
    names = list(names)
    near = difflib.get_close_matches(name, names, n=1)
    return f"did you mean {near[0]}?" if near else f"allowed: {', '.join(names) or 'none'}"


def join(path: str, key: str) -> str:
    """Return the dotted path of a key."""
    return f"{path}.{key}" if path else key


def show(value: Any) -> str:
    """Show a value as it stands in YAML or JSON, shortened unless it is a path, which the user may have to look up."""
    plain = isinstance(value, str) and value.isprintable() and value.strip() and not _NUMBER.fullmatch(value)
    text = value if plain else json.dumps(value, ensure_ascii=False, default=str)
    path = isinstance(value, str) and "/" in value
    return text if path or len(text) <= 60 else text[:57] + "..."
