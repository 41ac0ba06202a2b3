"""Settings: frozen pydantic dataclasses, whose fields have a type, a range, a default, a meaning.

The meaning is the docstring after a field, with the unit in parentheses and the source in brackets.
pydantic checks the values. An error names the key, the value found and the expected values; all
mistakes are reported together. Entries of several kinds are a union of classes that pydantic
discriminates by one of their settings.
"""

from __future__ import annotations

import dataclasses
import difflib
import functools
import json
import os
import re
from collections.abc import Iterable
from typing import Annotated, Any, Literal, dataclass_transform, get_args, get_origin

from annotated_types import Ge, Le
from pydantic import (
    AfterValidator,
    AllowInfNan,
    BeforeValidator,
    ConfigDict,
    Field,
    TypeAdapter,
    ValidationError,
)
from pydantic.dataclasses import dataclass
from pydantic.fields import FieldInfo
from pydantic_core import PydanticCustomError

from cdmae.errors import InputError

Keys = tuple[str | int, ...]  # the path of a value in a config, from the top level

# the default upper bound of whole numbers: larger numbers overflow int32 later
LARGEST = 2**31 - 1
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
# error types of pydantic
_UNKNOWN = "unexpected_keyword_argument"
_MISSING = ("missing", "string_too_short", "union_tag_not_found")
# expected values by the type of pydantic's error, where its own words are long or Python's
_EXPECTED = {
    "bool_parsing": "true or false",
    "bool_type": "true or false",
    "dataclass_type": "a mapping of settings",
    "dict_type": "a mapping",
    "greater_than": "a number above {gt}",
    "greater_than_equal": "a number from {ge}",
    "less_than": "a number below {lt}",
    "less_than_equal": "a number up to {le}",
    "model_attributes_type": "a mapping of settings",
    "string_pattern_mismatch": "text of the pattern {pattern}",
    "string_type": 'text (in quotation marks, as in "no", if YAML reads something else)',
    "tuple_type": "a list",
}

MOST_KINDS = 4  # the most kinds with a setting that a message names
MOST_NAMES = 16  # the most settings that a message lists

RULES = ConfigDict(extra="forbid", use_attribute_docstrings=True)


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(Field,))
def settings(cls: type) -> type:
    """Make a frozen pydantic dataclass; pydantic reads only the docstrings of its own fields."""
    made = dataclass(frozen=True, kw_only=True, config=RULES)(cls)
    for base in made.__mro__[1:]:
        for key, rule in getattr(base, "__pydantic_fields__", {}).items():
            own = rules_of(made)[key]
            own.description = own.description or rule.description
    return made


def _not_a_switch(value: Any) -> Any:
    """Refuse true and false, which pydantic would accept as the numbers 1 and 0."""
    if isinstance(value, bool):
        raise PydanticCustomError("number", "Input should be a number")
    return value


@dataclasses.dataclass(frozen=True)
class Of:
    """Marks a setting whose value is the name of an entry of a section, or several names."""

    section: str


Whole = Annotated[int, BeforeValidator(_not_a_switch), Le(LARGEST)]
Natural = Annotated[Whole, Ge(0)]
Positive = Annotated[Whole, Ge(1)]
Real = Annotated[float, BeforeValidator(_not_a_switch)]
Finite = Annotated[Real, AllowInfNan(False)]
Share = Annotated[Real, Ge(0), Le(1)]
Weight = Annotated[Real, Ge(0), Le(1e6)]
Name = Annotated[str, Field(min_length=1)]  # a name of an entry that another entry requires
# most functions that open a path do not expand ~
HomePath = Annotated[str, AfterValidator(os.path.expanduser)]
# a section without content is empty
Mapped = BeforeValidator(lambda value: {} if value is None else value)
EMPTY: Any = Field(default_factory=dict)
# for a field whose name is an attribute of a base class, which would be its default
REQUIRED: Any = Field()


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


# --- reading --------------------------------------------------------------------------------------


def parse(kind: Any, values: Any, *keys: str | int) -> Any:
    """Build settings of a class or a union of classes from plain values at `keys` of the config.

    Raises `InputError` with a line for each mistake.
    """
    try:
        return adapter(kind).validate_python({} if values is None else values)
    except ValidationError as invalid:
        errors = invalid.errors(include_url=False)
        # an invalid setting may be the reason why others are missing
        wrong = [error for error in errors if error["type"] not in _MISSING] or errors
        said = [message for error in wrong for message in _messages(error, kind, keys)]
        raise InputError(*said) from None


@functools.cache
def adapter(kind: Any) -> TypeAdapter:
    """Return pydantic's adapter of a class, a union, or a mapping of entries."""
    return TypeAdapter(kind)


# --- refusals -------------------------------------------------------------------------------------


def refusal(keys: Keys, words: str) -> InputError:
    """Return the error for a mistake at `keys` of the config; `words`: the text after the keys."""
    return InputError(dotted(keys) + words, keys=keys)


def unfit(entry: Any, key: str, words: str) -> InputError:
    """Return the error for an invalid value of a setting; `words`: the text after the value."""
    return refusal((key,), f" is {show(getattr(entry, key))}{words}")


def moved(mistake: InputError, keys: Keys) -> InputError:
    """Prefix the keys of an entry to an error within the entry."""
    words = str(mistake)
    if mistake.keys:  # the words begin with their place, such as "of.size is 3"
        return InputError(dotted((*keys, words)), keys=(*keys, *mistake.keys))
    where = f"{dotted(keys)}: " if keys else ""
    return InputError(where + words, keys=(*keys, words.partition(" ")[0]))


def _messages(error: Any, kind: Any, keys: Keys) -> list[InputError]:
    """Turn one of pydantic's errors into messages with the config's key and the nearest name.

    kind: the type of the values at `keys`.
    """
    owner: Any = None  # the type that has the last key
    union = kind  # the union of the owner's kind, if any
    tags: list[str] = []  # the kind in the union
    for key in error["loc"]:
        inner = _inner(kind, key)
        if _is_union(kind):  # pydantic puts the tag of a kind after the name of the entry
            tags.append(str(key))
        elif key != "[key]":
            keys = (*keys, key)
            owner = kind
            if _is_union(inner):
                union = inner
                tags = []
        kind = inner
    value = error["input"]
    if error["type"] == "value_error":
        return [moved(mistake, keys) for mistake in error["ctx"]["error"].several]
    if error["type"] == _UNKNOWN:
        return [refusal(keys, _unknown(str(keys[-1]), owner, union, tags))]
    if error["type"].startswith("union_tag"):
        tag = get_args(kind)[1].discriminator
        kinds = list(dict.fromkeys(rules_of(member)[tag].default for member in kinds_of(kind)))
        found = f"is {show(value[tag])}" if tag in value else "is missing"
        return [refusal((*keys, tag), f" {found}; {suggestion(str(value.get(tag)), kinds)}")]
    if error["type"] in _MISSING:
        return [refusal(keys, f" is missing: {rules_of(owner)[str(keys[-1])].description}")]
    if get_origin(kind) is Literal:
        return [refusal(keys, f" is {show(value)}; {suggestion(str(value), get_args(kind))}")]
    expected = error["msg"].removeprefix("Input should be ")
    if error["type"] in _EXPECTED:
        expected = _EXPECTED[error["type"]].format(**error.get("ctx", {}))
    return [refusal(keys, f" is {show(value)}; expected {expected}")]


def _is_union(kind: Any) -> bool:
    """Return whether a type is a union of kinds with a discriminator."""
    return get_origin(kind) is Annotated and hasattr(get_args(kind)[1], "discriminator")


def _inner(kind: Any, key: Any) -> Any:
    """Return the type of a value in a class or container; for a union, the type with the tag."""
    if isinstance(kind, type) and hasattr(kind, "__pydantic_fields__"):
        return rules_of(kind)[key].annotation if key in rules_of(kind) else None
    arguments = get_args(kind)
    if _is_union(kind):
        tag = arguments[1].discriminator
        members = get_args(arguments[0])
        return next(m for m in members if rules_of(kinds_of(m)[0])[tag].default == key)
    if get_origin(kind) is Annotated:
        return _inner(arguments[0], key)
    return {dict: arguments[-1:], tuple: arguments[:1]}.get(get_origin(kind), (None,))[0]


def _unknown(key: str, owner: Any, union: Any, tags: list[str]) -> str:
    """Return the message for a key that is not a setting, or that only other kinds have."""
    if not tags:
        return f" is not a setting; {setting(key, rules_of(owner))}"
    names = tags_of(union)
    having = []
    for kind in kinds_of(union):
        rules = rules_of(kind)
        if key in rules:
            having.append(" ".join(rules[name].default for name in names if name in rules))
    here = f" is not a setting of {' '.join(tags)}"
    if 0 < len(having) <= MOST_KINDS:
        return f"{here}, but of {', '.join(having)}"
    return f"{here}; {setting(key, rules_of(owner))}"


def setting(key: str, known: Iterable[str]) -> str:
    """Return the nearest of the known settings, or all if they are few, for messages."""
    names = list(known)
    said = suggestion(key, names)
    long = said.startswith("expected") and len(names) > MOST_NAMES
    return "config/README.md lists all settings" if long else said


def suggestion(name: str, names: Iterable[str]) -> str:
    """Return ``did you mean X?`` if a name is similar, otherwise ``expected ...``."""
    names = list(names)
    if not names:
        return "there is nothing to choose from"
    near = difflib.get_close_matches(name, names, n=1)
    return f"did you mean {near[0]}?" if near else f"expected {', '.join(map(show, names))}"


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
    for key, rule in rules_of(entry).items():
        value = getattr(entry, key)
        section = next((mark.section for mark in rule.metadata if isinstance(mark, Of)), None)
        if section and isinstance(value, str):
            edges += [((key,), value, section)] if value else []
        elif section:
            indices = value if isinstance(value, dict) else range(len(value))
            edges += [
                ((key, index), name, section) for index, name in zip(indices, value, strict=True)
            ]
    return edges
