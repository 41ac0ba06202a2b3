"""Settings: frozen pydantic dataclasses; fields define type, default, range, unit and source.

The error for an invalid value names its key, the value and the allowed values. All mistakes in a
config are reported together. Entries of several kinds are a union of classes that pydantic
discriminates by one of their settings.
"""

from __future__ import annotations

import dataclasses
import difflib
import functools
import json
import math
import os
import re
from collections.abc import Iterable
from typing import Annotated, Any, Literal, Union, get_args

from pydantic import (
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    Field,
    TypeAdapter,
    ValidationError,
    create_model,
)
from pydantic.dataclasses import dataclass
from pydantic.fields import FieldInfo

from cdmae.errors import InputError

Keys = tuple[str | int, ...]  # the path of a value in a config, from the top level

# the default upper bound of whole numbers: larger numbers overflow int32 later
LARGEST = 2**31 - 1
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
# error types of pydantic
_UNKNOWN = ("unexpected_keyword_argument", "extra_forbidden")
_MISSING = ("missing", "union_tag_not_found")

settings = dataclass(frozen=True, kw_only=True, config=ConfigDict(extra="forbid"))
Name = Annotated[str, Field(min_length=1)]  # a name of an entry that another entry requires
# most functions that open a path do not expand ~
HomePath = Annotated[str, AfterValidator(os.path.expanduser)]
# a section without content is empty
Mapped = BeforeValidator(lambda value: {} if value is None else value)


def setting(
    default: Any = ...,
    *,
    meaning: str,
    unit: str = "",
    source: str = "",
    low: float | None = None,
    high: float | None = None,
    above: float | None = None,
    names: str = "",
) -> Any:
    """Describe a setting by a pydantic field; without a default it is required.

    `low` and `high` are inclusive bounds of a number, `above` is an exclusive bound; only
    ``high=math.inf`` allows infinity. `names`: the section of the config in which the setting's
    value must be an entry (`named`).
    """
    endless = high == math.inf
    rules: dict[str, Any] = {"ge": low, "gt": above, "le": None if endless else high}
    if isinstance(default, int | float):
        rules["strict"] = True  # pydantic would accept true as 1
    if type(default) is int and high is None:
        rules["le"] = LARGEST
    if type(default) is float and not endless:
        rules["allow_inf_nan"] = False
    rules = {key: value for key, value in rules.items() if value is not None}
    further = {"unit": unit, "source": source, "names": names, "endless": endless}
    rules["json_schema_extra"] = {
        key: value for key, value in further.items() if value or key in ("unit", "source")
    }
    if isinstance(default, dict):
        rules["json_schema_extra"]["default"] = {}
        return Field(default_factory=dict, description=meaning, **rules)
    return Field(default, description=meaning, **rules)


def rules_of(kind: Any) -> dict[str, FieldInfo]:
    """Map the settings of a class, or of an entry, to their pydantic fields."""
    return kind.__pydantic_fields__


def kinds_of(union: Any) -> list[type]:
    """List the classes of a union and of its nested unions; for a class, list only the class."""
    if isinstance(union, type):
        return [union]
    members, *_ = get_args(union)
    return [kind for member in get_args(members) or [members] for kind in kinds_of(member)]


def tags_of(union: Any) -> list[str]:
    """List the settings that discriminate the classes of a union, the outer one first."""
    if isinstance(union, type):
        return []
    members, tag = get_args(union)
    inner = [name for member in get_args(members) for name in tags_of(member)]
    return list(dict.fromkeys([tag.discriminator, *inner]))


def kind_of(union: Any, values: dict[str, Any]) -> type | None:
    """Return the class of a union that plain values select; None if they select no class."""
    for kind in kinds_of(union):
        rules = rules_of(kind)
        if all(values.get(tag) == rules[tag].default for tag in tags_of(union) if tag in rules):
            return kind
    return None


def some_of(union: Any) -> type:
    """Return a class with all settings of a union's classes, none required.

    It describes the defaults that several entries share.
    """
    rules: dict[str, list[FieldInfo]] = {}
    for kind in kinds_of(union):
        for key, rule in rules_of(kind).items():
            rules.setdefault(key, []).append(rule)
    some: dict[str, Any] = {}
    for key, (rule, *others) in rules.items():
        kinds = Literal[(rule.default, *(other.default for other in others))]
        types = Union[(rule.annotation, *(other.annotation for other in others))]  # noqa: UP007
        type_of = kinds if key in tags_of(union) else types
        words = Field(description=rule.description, json_schema_extra=rule.json_schema_extra)
        some[key] = Annotated[(type_of, *rule.metadata, words)], None
    return create_model("Defaults", __config__=ConfigDict(extra="forbid"), **some)


# --- reading --------------------------------------------------------------------------------------


def parse(kind: Any, values: Any, *keys: str | int) -> Any:
    """Build settings of a class or a union of classes from plain values at `keys` of the config.

    Raises `InputError` with a line for each mistake.
    """
    try:
        return _adapter(kind).validate_python({} if values is None else values)
    except ValidationError as invalid:
        errors = invalid.errors(include_url=False)
        schema = json_schema(kind)
        # an invalid setting may be the reason why others are missing
        wrong = [error for error in errors if error["type"] not in _MISSING]
        raise InputError(
            *(said for error in wrong or errors for said in _mistakes(error, schema, keys))
        ) from None


@functools.cache
def _adapter(kind: Any) -> TypeAdapter:
    return TypeAdapter(kind)


def json_schema(kind: Any) -> dict[str, Any]:
    """Return the JSON schema of a class or a union."""
    return _adapter(kind).json_schema()


# --- refusals -------------------------------------------------------------------------------------


def refusal(keys: Keys, words: str) -> InputError:
    """Return the error for a mistake at `keys` of the config; `words`: the text after the keys."""
    return InputError(dotted(keys) + words, keys=keys)


def unfit(entry: Any, key: str, words: str) -> InputError:
    """Return the error for an invalid value of a setting; `words`: the text after the value."""
    return refusal((key,), f" is {show(getattr(entry, key))}{words}")


def _mistakes(error: Any, schema: dict[str, Any], keys: Keys) -> list[InputError]:
    """Turn a pydantic error into messages with the key, its value and the allowed values.

    schema: the JSON schema of the whole class or union.
    """
    value = error["input"]
    rule = whole(schema, schema)
    owner: dict[str, Any] = {}
    union: dict[str, Any] = {}
    tag = ""
    outer: tuple[dict[str, Any], str] | None = None  # a union of unions, and its kind
    for key in error["loc"]:
        if "discriminator" in rule:  # pydantic puts the kind after the entry's name
            outer = (union, tag) if union else None
            union = rule
            tag = str(key)
            rule = _kinds(union, schema)[tag]
        else:
            owner = rule
            keys = (*keys, key)
            inner = (
                rule.get("properties", {}).get(key)
                or rule.get("items")
                or rule["additionalProperties"]
            )
            rule = whole(inner or {}, schema)
    if error["type"] == "value_error":
        return [moved(mistake, keys) for mistake in error["ctx"]["error"].several]
    if error["type"] in _UNKNOWN:
        unknown_here = not union or str(keys[-1]) not in _settings(union, schema)
        if outer and unknown_here:
            union, tag = outer
        return [refusal(keys, _unknown(str(keys[-1]), owner, union, tag, schema))]
    if error["type"] in (*_MISSING, "string_too_short") and "discriminator" not in rule:
        return [refusal(keys, _missing(owner, union, tag, rule))]
    if error["type"].startswith("union_tag"):
        tag = rule["discriminator"]["propertyName"]
        kinds = _kinds(rule, schema)
        found = value.get(tag)
        if found is None:
            return [refusal((*keys, tag), f" is missing; allowed: {', '.join(kinds)}")]
        return [refusal((*keys, tag), f" is {show(found)}; {suggestion(str(found), kinds)}")]
    return [refusal(keys, _unfit(value, rule))]


def moved(mistake: InputError, keys: Keys) -> InputError:
    """Prefix the keys of an entry to an error within the entry."""
    words = str(mistake)
    if mistake.keys:  # the words begin with their place, such as "of.size is 3"
        return InputError(dotted((*keys, words)), keys=(*keys, *mistake.keys))
    where = f"{dotted(keys)}: " if keys else ""
    return InputError(where + words, keys=(*keys, words.partition(" ")[0]))


def _kinds(union: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    """Map the kinds of a union to their rules; a kind may be a union itself."""
    mapping = union["discriminator"]["mapping"]
    rules = {
        kind: target if isinstance(target, dict) else {"$ref": target}
        for kind, target in mapping.items()
    }
    return {kind: whole(rule, schema) for kind, rule in rules.items()}


def _settings(rule: dict[str, Any], schema: dict[str, Any]) -> set[str]:
    """Return the settings of a rule, or of all kinds of a union."""
    if "discriminator" in rule:
        return {key for kind in _kinds(rule, schema).values() for key in _settings(kind, schema)}
    return set(rule["properties"])


def _unknown(
    key: str, rule: dict[str, Any], union: dict[str, Any], tag: str, schema: dict[str, Any]
) -> str:
    """Return the message for a key that is not a setting, or that only other kinds have."""
    own = rule["properties"]
    kinds = _kinds(union, schema) if union else {}
    known = [_settings(kind, schema) for kind in kinds.values()]
    if not any(key in keys for keys in known):
        return f" is not a setting; {suggestion(key, own)}"
    what = union["discriminator"]["propertyName"]
    all_know = set.intersection(*known)
    most_know = set.intersection(*(keys for keys in known if keys > all_know))
    few = [name for name in own if name not in most_know]
    some = f"of the settings that only some {what}s have, it has {', '.join(few)}"
    return f" is not a setting of {what} {tag}; {some if few else 'allowed: ' + ', '.join(own)}"


def _missing(rule: dict[str, Any], union: dict[str, Any], tag: str, inner: dict[str, Any]) -> str:
    """Return the message for a missing required setting."""
    if not union:
        return f" is missing: {inner['description']}"
    kind = f"{union['discriminator']['propertyName']} {tag}"
    return f" is missing; {kind} needs {', '.join(rule['required'])}"


def _unfit(value: Any, rule: dict[str, Any]) -> str:
    """Return the message for a value that violates a rule."""
    if value is None and ("discriminator" in rule or rule.get("type") == "object"):
        return " is empty; allowed: a mapping of its settings ({} where all have defaults)"
    if "enum" in rule and isinstance(value, str):
        return f" is {show(value)}; {suggestion(value, rule['enum'])}"
    number = isinstance(value, str) and _NUMBER.fullmatch(value)
    quoted = (
        ", without quotation marks" if number and rule.get("type") in ("number", "integer") else ""
    )
    huge = isinstance(value, int | float) and value > LARGEST and rule.get("maximum") == LARGEST
    most = f" to {LARGEST}" if huge else ""
    return f" is {show(value)}; allowed: {allowed(rule)}{most}{quoted}"


def whole(rule: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    """Return a rule of a JSON schema merged with the definition that it refers to."""
    return schema["$defs"][rule["$ref"].rpartition("/")[2]] | rule if "$ref" in rule else rule


def allowed(rule: dict[str, Any]) -> str:
    """Describe the values that a JSON schema allows."""
    kind = rule.get("type", "object")
    if "const" in rule:
        return show(rule["const"])
    if "form" in rule:  # the words for a text with a pattern
        return rule["form"]
    if "enum" in rule:
        return ", ".join(map(show, rule["enum"]))
    if kind == "array":
        return f"a list, each element {allowed(rule['items'])}"
    if kind in ("integer", "number"):
        low, above, high = (rule.get(key) for key in ("minimum", "exclusiveMinimum", "maximum"))
        lower = ""
        upper = ""
        if low is not None:
            lower = f" from {_digits(low)}"
        elif above is not None:
            lower = f" above {_digits(above)}"
        if high not in (None, LARGEST):
            upper = f" to {_digits(high)}"
        elif "exclusiveMaximum" in rule:
            upper = f" and below {_digits(rule['exclusiveMaximum'])}"
        elif "endless" in rule:
            upper = " to infinity"
        return ("a whole number" if kind == "integer" else "a number") + lower + upper
    return {
        "object": "a mapping of keys to values",
        "boolean": "true or false",
        "string": "text (in a config file and in quotation marks if it looks like a number)",
    }[kind]


def _digits(number: float) -> str:
    """Format integers with all digits, and other numbers with up to six significant digits."""
    return str(number) if isinstance(number, int) else f"{number:g}"


def suggestion(name: str, names: Iterable[str]) -> str:
    """Return ``did you mean X?`` if a name is similar, otherwise ``allowed: ...``."""
    names = list(names)
    if not names:
        return "there is nothing to choose from"
    near = difflib.get_close_matches(name, names, n=1)
    return f"did you mean {near[0]}?" if near else f"allowed: {', '.join(map(show, names))}"


def dotted(keys: Keys) -> str:
    """Format keys for messages, such as ``systems.fused.of[1]``."""
    return "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in keys).removeprefix(
        "."
    )


def show(value: Any) -> str:
    """Format a value as in YAML or JSON, shortened unless it is a path that users may look up."""
    other = isinstance(value, str) and (
        value in ("true", "false", "null") or _NUMBER.fullmatch(value)
    )
    plain = isinstance(value, str) and value.isprintable() and value.strip() and not other
    text = value if plain else json.dumps(value, ensure_ascii=False, default=str)
    path = isinstance(value, str) and "/" in value
    return text if path or len(text) <= 60 else text[:57] + "..."


# --- plain values and names -----------------------------------------------------------------------


def asdict(entry: Any, without: Iterable[str] = ()) -> dict[str, Any]:
    """Return settings as plain JSON values, with lists for tuples, except the keys `without`."""
    plain = json.loads(json.dumps(dataclasses.asdict(entry)))
    return {key: value for key, value in plain.items() if key not in without}


def pick(values: dict[str, Any], keys: Iterable[str]) -> dict[str, Any]:
    """Return the entries of `values` with the given keys, in the order of `values`."""
    return {key: value for key, value in values.items() if key in keys}


def named(entry: Any) -> list[tuple[Keys, str, str]]:
    """List the names of other entries that an entry contains: (path, name, section).

    A path is a tuple of keys: ``("of", 1)``.
    """
    edges: list[tuple[Keys, str, str]] = []
    for key, field in rules_of(entry).items():
        value = getattr(entry, key)
        section = (field.json_schema_extra or {}).get("names")
        if section and isinstance(value, str):
            edges += [((key,), value, section)] if value else []
        elif section:
            indices = value if isinstance(value, dict) else range(len(value))
            edges += [
                ((key, index), name, section) for index, name in zip(indices, value, strict=True)
            ]
    return edges
