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
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal, dataclass_transform, get_args, get_origin

from annotated_types import Ge, Gt, Le
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

from cdmae.errors import InputError, Keys

# the default upper bound of whole numbers: larger numbers overflow int32 later
LARGEST = 2**31 - 1
RULES = ConfigDict(extra="forbid", use_attribute_docstrings=True)
# pydantic's words, and a user's of YAML for the same
WORDS = {
    "Input should be": "expected",
    "greater than or equal to": "from",
    "less than or equal to": "up to",
    "a valid string": 'text (in quotation marks, as in "no", if YAML reads something else)',
    "a valid tuple": "a list",
    "a valid dictionary": "a mapping",
    "a dictionary": "a mapping",
}


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(Field,))
def settings(cls: type) -> type:
    """Make a frozen pydantic dataclass."""
    return dataclass(frozen=True, kw_only=True, config=RULES)(cls)


def _not_a_switch(value: Any) -> Any:
    """Refuse true and false, which pydantic would accept as the numbers 1 and 0."""
    if isinstance(value, bool):
        raise PydanticCustomError("number", "Input should be a number")
    return value


@dataclasses.dataclass(frozen=True)
class Of:
    """Marks a setting whose value is the name of an entry of a section, or several names."""

    section: str
    kinds: tuple[str, ...] = ()
    same_kind: bool = False


Whole = Annotated[int, BeforeValidator(_not_a_switch), Le(LARGEST)]
Natural = Annotated[Whole, Ge(0)]
Positive = Annotated[Whole, Ge(1)]
Length = Annotated[Whole, Ge(8)]  # of a text, special tokens included
Number = Annotated[float, BeforeValidator(_not_a_switch)]
Deviation = Annotated[Number, Ge(0)]  # may be infinite
Real = Annotated[Number, AllowInfNan(allow_inf_nan=False)]
Share = Annotated[Real, Ge(0), Le(1)]
Weight = Annotated[Real, Ge(0)]
PositiveReal = Annotated[Real, Gt(0)]
Rate = Annotated[Real, Gt(0), Le(1)]
Name = Annotated[str, Field(min_length=1)]  # a name of an entry that another entry requires
# most functions that open a path do not expand ~
HomePath = Annotated[str, AfterValidator(os.path.expanduser)]
Precision = Annotated[
    Literal["auto", "fp32", "bf16", "fp16"],
    Field(
        description="auto: bf16 where supported, fp16 on other GPUs with tensor cores, else fp32."
    ),
]
Seed = Annotated[
    Whole,
    Field(
        ge=-1,
        description="The only seed of this entry; -1: the config's.",
    ),
]
EMPTY: Any = Field(default_factory=dict)
# for a field whose name is an attribute of a base class, which would be its default
REQUIRED: Any = Field()


def rules_of(kind: Any) -> dict[str, FieldInfo]:
    """Map the settings of a class, or of an entry, to their pydantic fields."""
    return kind.__pydantic_fields__


def kinds_of(kind: Any) -> list[type]:
    """List the classes of settings in a type: a class, a union, or a mapping of entries."""
    if hasattr(kind, "__pydantic_fields__"):
        inner = [each for rule in rules_of(kind).values() for each in kinds_of(rule.annotation)]
        return [kind, *inner]
    return [each for part in get_args(kind) for each in kinds_of(part)]


def tags(kind: type) -> dict[str, str]:
    """Map the settings that distinguish a class from others of its union to their only values."""
    found = {}
    for key, rule in rules_of(kind).items():
        if get_origin(rule.annotation) is Literal and len(get_args(rule.annotation)) == 1:
            found[key] = rule.default
    return found


def kind_of(union: Any, values: dict[str, Any]) -> type | None:
    """Return the class of a union that plain values select; None if they select no class."""
    for kind in kinds_of(union):
        if all(values.get(tag) == value for tag, value in tags(kind).items()):
            return kind
    return None


# --- reading --------------------------------------------------------------------------------------


def parse(kind: Any, values: Any, *keys: str | int) -> Any:
    """Build settings of a class or a union of classes from plain values at `keys` of the config.

    Raises `InputError` with a line for each mistake.
    """
    given = {} if values is None else values
    try:
        return adapter(kind).validate_python(given)
    except ValidationError as invalid:
        errors = [_error(each, kind, given) for each in invalid.errors(include_url=False)]
        raise InputError(*errors).within(*keys) from None


adapter = functools.cache(TypeAdapter)


# --- refusals -------------------------------------------------------------------------------------


def unfit(entry: Any, key: str, words: str) -> InputError:
    """Return the error for an invalid value of a setting; `words`: the text after the value."""
    return InputError(f" is {show(getattr(entry, key))}{words}", keys=(key,))


def _error(error: Any, kind: Any, value: Any) -> InputError:
    """Turn one of pydantic's errors in a value of type `kind` into one with keys of the config."""
    keys: Keys = ()
    # some are not keys of the config, such as the name of a kind in a union
    for key in error["loc"]:
        if isinstance(value, list | tuple) or (isinstance(value, Mapping) and key in value):
            keys = (*keys, key)
            value = value[key]
    reason = error["type"]
    context = error.get("ctx", {})
    if reason == "value_error":
        return context["error"].within(*keys)
    if reason == "unexpected_keyword_argument":
        return InputError(unknown(str(keys[-1]), kinds_of(kind)), keys=keys, kind=reason)
    if reason == "missing":
        return InputError(" is missing", keys=(*keys, error["loc"][-1]), kind=reason)
    value = error["input"]
    if reason.startswith("union_tag"):
        tag = context["discriminator"].strip("'")
        keys = (*keys, tag)
        if tag not in value:
            return InputError(" is missing", keys=keys, kind="missing")
        value = value[tag]
    names = re.findall("'([^']*)'", context.get("expected", context.get("expected_tags", "")))
    if names:  # of kinds, or of the values of a literal
        words = suggestion(str(value), names)
    else:
        words = error["msg"]
        for theirs, ours in WORDS.items():
            words = words.replace(theirs, ours)
        words = words[:1].lower() + words[1:]
    return InputError(f" is {show(value)}; {words}", keys=keys, kind=reason)


def unknown(key: str, kinds: list[type]) -> str:
    """Return the message for a key that is no setting, or that only other ones of `kinds` have."""
    known = {name for kind in kinds for name in rules_of(kind)}
    near = difflib.get_close_matches(key, known - {key}, n=1)
    if near and key not in known:
        return f" is not a setting; did you mean {near[0]}?"
    return " is not a setting here; config/README.md lists all settings"


def suggestion(name: str, names: Iterable[str]) -> str:
    """Return ``did you mean X?`` if a name is similar, otherwise ``expected ...``."""
    names = list(names)
    if not names:
        return "there is nothing to choose from"
    near = difflib.get_close_matches(name, names, n=1)
    return f"did you mean {near[0]}?" if near else f"expected {', '.join(map(show, names))}"


def show(value: Any) -> str:
    """Format a value as in YAML or JSON, shortened."""
    plain = isinstance(value, str) and value.isprintable() and value.strip()
    text = value if plain else json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 200 else text[:197] + "..."


# --- plain values and names -----------------------------------------------------------------------


class Entry:
    """An entry of a section of the config.

    unread: its settings without effect; `cdmae.config.load` resets them to their defaults.
    """

    unread: tuple[str, ...] = ()

    def values(self) -> dict[str, Any]:
        """Return the settings with an effect as plain values."""
        return asdict(self, self.unread)


def asdict(entry: Any, without: Iterable[str] = ()) -> dict[str, Any]:
    """Return settings as plain JSON values, with lists for tuples, except the keys `without`."""
    plain = json.loads(json.dumps(dataclasses.asdict(entry)))
    return {key: value for key, value in plain.items() if key not in without}


def pick(values: dict[str, Any], keys: Iterable[str]) -> dict[str, Any]:
    """Return the entries of `values` with the given keys, in the order of `values`."""
    return {key: value for key, value in values.items() if key in keys}


def named(entry: Any) -> list[tuple[Keys, str, Of]]:
    """List the names of other entries that an entry contains: (path, name, mark).

    A path is a tuple of keys: ``("of", 1)``.
    """
    edges: list[tuple[Keys, str, Of]] = []
    for key, rule in rules_of(entry).items():
        value = getattr(entry, key)
        mark = next((mark for mark in rule.metadata if isinstance(mark, Of)), None)
        if mark and isinstance(value, str):
            edges += [((key,), value, mark)] if value else []
        elif mark:
            indices = value if isinstance(value, dict) else range(len(value))
            names = zip(indices, value, strict=True)
            edges += [((key, index), name, mark) for index, name in names]
    return edges
