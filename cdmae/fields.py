"""Settings: frozen dataclasses whose fields say type, default, range, unit, meaning and source; pydantic checks values.

A value that does not fit is refused with its key, what it is and what is allowed. Settings stay plain dataclasses, so
that code which only builds or copies them does not import pydantic. It checks some of the settings of a class (`read`):
what is missing, and what settings demand of each other, is known once all of them are there (`build`).
"""

from __future__ import annotations

import copy
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


class Plain(str):
    """Text without quotation marks, which is a number where a setting is.

    YAML 1.1 reads 3e-4, without a dot, as text. The engine reads whatever a list or mapping of the command line holds
    as text.
    """


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
    rules = {key: value for key, value in rules.items() if value is not None}
    rules["description"] = f"{', '.join(only)}: {meaning}" if only else meaning
    rules["json_schema_extra"] = {"unit": unit, "source": source} | ({"endless": True} if endless else {})
    metadata = {"rules": rules, "only": tuple(only), "needed": needed, "later": later}
    if isinstance(default, dict):
        return dataclasses.field(default_factory=dict, metadata=metadata)
    return dataclasses.field(default=default, metadata=metadata)


def parse(cls: type[T], values: dict[str, Any] | None, *keys: str) -> T:
    """Build the dataclass `cls` from plain values; `keys` are the place of the values in the config, for messages.

    Raises `InputError` with a line for each mistake: unknown and missing keys, wrong types and values out of range. An
    `InputError` of ``__post_init__`` gets the place in front.
    """
    typed, mistakes = read(cls, values, keys)
    if mistakes:
        raise InputError(*mistakes)
    return build(cls, typed, keys)


def read(cls: type, values: dict[str, Any] | None, keys: Keys = ()) -> tuple[dict[str, Any], list[InputError]]:
    """Check plain values for some of the settings of `cls`, and for those of the classes that these are made of.

    Returns what fits, with the types of the settings, and the mistakes of the rest.
    """
    from pydantic import ValidationError  # which jobs that build no settings from text do without

    values = mapping(values, *keys)
    _check_texts(values, keys)
    try:
        return _adapter(cls).validate_python(values), []
    except ValidationError as invalid:
        errors = invalid.errors(include_url=False)
    fitting = copy.deepcopy(values)
    for error in errors:
        _remove(fitting, error["loc"])
    schema = json_schema(cls)
    return _adapter(cls).validate_python(fitting), [_mistake(error, schema, keys) for error in errors]


def build(cls: type[T], values: dict[str, Any], keys: Keys) -> T:
    """Make `cls` of checked values; raises `InputError` for missing ones and for those that do not go together."""
    mistakes = [
        refusal((*keys, field.name), f" is missing: {field.metadata['rules']['description']}")
        for field in dataclasses.fields(cls)
        if required(field) and field.name not in values
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


def required(field: dataclasses.Field) -> bool:
    """Say whether a setting has no default."""
    return field.default is MISSING and field.default_factory is MISSING


def _check_texts(value: Any, keys: Keys) -> None:
    """Refuse keys that are no text, and text that no command line can hold."""
    if isinstance(value, str) and "\0" in value:
        raise refusal(keys, f" is {show(value)}; allowed: text without a NUL, which no command line can hold")
    if isinstance(value, dict):
        for key, item in mapping(value, *keys).items():
            _check_texts(item, (*keys, key))


def _remove(values: dict[str, Any], location: Keys) -> None:
    """Remove a value, or the whole list that it is in."""
    first, *rest = location
    if rest and isinstance(values.get(first), dict) and rest[0] in values[first]:
        _remove(values[first], tuple(rest))
    else:
        values.pop(first, None)


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

    plain, exact = typing.get_type_hints(hint), typing.get_type_hints(hint, include_extras=True)
    settings = {}
    for field in dataclasses.fields(hint):
        rules = dict(field.metadata.get("rules", {}))
        if rules and not required(field):
            default = {} if field.default is MISSING else field.default
            default = list(default) if isinstance(default, tuple) else default
            rules["json_schema_extra"] = {"default": default} | rules["json_schema_extra"]
        plain_text = BeforeValidator(functools.partial(_unquoted, plain[field.name]))
        settings[field.name] = typing.Annotated[_some(exact[field.name]), Field(**rules), plain_text]
    typed = TypedDict(hint.__name__, settings, total=False)
    typed.__pydantic_config__ = {"extra": "forbid"}
    return typed


def json_schema(cls: type) -> dict[str, Any]:
    """Return the JSON schema of some settings of a dataclass."""
    return _adapter(cls).json_schema()


def _unquoted(hint: Any, value: Any) -> Any:
    """Read what stands in `Plain` text; nothing is an empty mapping."""
    if value is None and (typing.get_origin(hint) is dict or dataclasses.is_dataclass(hint)):
        return {}
    if isinstance(value, list) and typing.get_origin(hint) is tuple:
        return [_unquoted(typing.get_args(hint)[0], item) for item in value]
    if isinstance(value, dict) and typing.get_origin(hint) is dict:
        inner = typing.get_args(hint)[1]
        return {key: item if item is None else _unquoted(inner, item) for key, item in value.items()}
    if hint in (int, float) and isinstance(value, Plain) and _NUMBER.fullmatch(value):
        number = float(value)
        return int(number) if hint is int and number.is_integer() else number
    return value


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
    number = isinstance(value, str) and not isinstance(value, Plain) and _NUMBER.fullmatch(value)
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


def mapping(values: Any, *keys: str | int) -> dict[str, Any]:
    """Return the values as a dict with text keys (nothing is an empty one); raise `InputError` for anything else."""
    if values is None:
        return {}
    if not isinstance(values, dict):
        what = "" if keys else "the config"
        raise refusal(keys, f"{what} is {show(values)}; allowed: a mapping of keys to values")
    for key in values:
        if not isinstance(key, str):
            raise refusal((*keys, show(key)), " is not a text key; put it in quotation marks")
    return values


def asdict(settings: Any, without: Iterable[str] = ()) -> dict[str, Any]:
    """Return settings as plain JSON values, without some: tuples are lists."""
    plain = json.loads(json.dumps(dataclasses.asdict(settings)))
    return {key: value for key, value in plain.items() if key not in without}


def pick(values: dict[str, Any], keys: Iterable[str]) -> dict[str, Any]:
    """Return the values of some keys, in their own order."""
    return {key: value for key, value in values.items() if key in keys}


def known(cls: type, kind: str, *, needed: bool = False) -> list[str]:
    """List the settings of `cls` that only some kinds of entries know, this one among them; or those that it needs."""
    fields = [field for field in dataclasses.fields(cls) if kind in field.metadata.get("only", ())]
    return [field.name for field in fields if field.metadata["needed"] or not needed]


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
    text = value if plain or isinstance(value, Plain) else json.dumps(value, ensure_ascii=False, default=str)
    path = isinstance(value, str) and "/" in value
    return text if path or len(text) <= 60 else text[:57] + "..."
