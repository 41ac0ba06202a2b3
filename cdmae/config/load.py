"""Load a config from files: the defaults, the overlays, inherited values, and every check."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from pathlib import Path
from typing import Annotated, Any

import yaml

from cdmae.config import checks, demands, schema, seeds
from cdmae.config.encoders import Encoder
from cdmae.config.schema import Config
from cdmae.errors import InputError
from cdmae.fields import (
    Keys,
    Mapped,
    dotted,
    kind_of,
    moved,
    parse,
    pick,
    refusal,
    rules_of,
    setting,
    settings,
    show,
    some_of,
    suggestion,
    unfit,
)
from cdmae.files import check_file

Entries = dict[str, dict[str, Any]]  # the values of a section's entries by name

BEFORE = ("after", "snapshot_of")  # the keys by which an encoder needs another one
# the settings that a snapshot does not take from its encoder
OF_SNAPSHOT = ("snapshot_of", "take_step")
# the section with the defaults of another section's entries
DEFAULTS = {"encoders": "pretraining", "stages": "training"}
# the kind of entries that do not set it
KINDS = {"encoders": {"objective": "mae"}, "stages": {"head": "dense"}}
MOST_MISTAKES = 10  # that are reported at once
# keys with which Snakemake runs code in a config file
TEMPLATE = ("__use_yte__", "__definitions__", "__variables__")
# as in 3e-4, which is text in YAML 1.1
EXPONENT = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)[eE][-+]?\d+")

# Octal, base 60 and digits in groups, as YAML 1.1 reads 010, 1:30 and 1_0. In YAML 1.2 they are 10,
# text and text.
AMBIGUOUS = re.compile(r"[-+]?0[0-9_]+|.*[:_].*")
MOST_VALUES = 100_000  # of a config file

Place = tuple[str, int]  # a file and a line


Pretraining = some_of(schema.AnyEncoder)
Training = some_of(schema.AnyStage)


@settings
class Written(Config):
    """What config files may say: a config whose encoders and stages have defaults."""

    pretraining: Annotated[Pretraining, Mapped] = setting({}, meaning="defaults of every encoder")
    training: Annotated[Training, Mapped] = setting(
        {}, meaning="defaults of every stage, as far as they are of its kind"
    )
    standalone: bool = setting(False, meaning="in an overlay: leaves `config.yaml` out")


# --- from files to values -------------------------------------------------------------------------


class Section(dict):
    """A mapping of a config with file and line of its keys; None for the command line's keys."""

    places: dict[str, Place | None]


class Loader(yaml.SafeLoader):
    """A loader that keeps the lines of keys and refuses YAML that a config cannot mean.

    Refused are repeated keys and keys that are not text; numbers that look like others (``010`` is
    8 in YAML 1.1); aliases with more values than memory holds; and text that no file name or
    command line can contain.
    """

    def get_single_node(self) -> yaml.Node | None:
        """Read the document; an alias counts as often as its values are used."""
        node = super().get_single_node()
        if node is not None and self._values(node, {}) > MOST_VALUES:
            raise InputError(
                f"{self.name} holds more than {MOST_VALUES:,} values, counting the values of "
                "aliases (*)"
            )
        return node

    def _values(self, node: yaml.Node, known: dict[yaml.Node, int]) -> int:
        if node not in known:
            known[node] = 0  # for an alias inside its own value, which is refused later
            parts = [] if isinstance(node, yaml.ScalarNode) else node.value
            pairs = [part if isinstance(part, tuple) else (part,) for part in parts]
            known[node] = 1 + sum(self._values(part, known) for pair in pairs for part in pair)
        return known[node]

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        """Make a value of a node."""
        try:
            value = super().construct_object(node, deep)
        except InputError:
            raise
        # for 2001-02-30, or a whole number with thousands of digits
        except (ValueError, OverflowError):
            words = (
                f"{show(node.value)} looks like a number or a date and is none; put text in "
                "quotation marks"
            )
            raise self.refusal(node, words) from None
        if node.tag.endswith((":int", ":float")) and AMBIGUOUS.fullmatch(node.value):
            words = (
                f"{node.value} is not the same number for all programs; write plain digits, or "
                "put text in quotation marks"
            )
            raise self.refusal(node, words)
        return value

    def construct_yaml_map(self, node: yaml.MappingNode) -> Section:
        """Make a mapping of a node."""
        seen = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                kind = "list" if isinstance(key, yaml.SequenceNode) else "mapping"
                raise self.refusal(key, f"a key is a {kind}; allowed: text")
            if not key.tag.endswith((":str", ":merge")):
                raise self.refusal(
                    key, f"the key {key.value} is not text; put it in quotation marks"
                )
            if key.value in TEMPLATE:
                raise self.refusal(
                    key, f"the key {key.value} makes a config file run code; leave it out"
                )
            if key.value in seen and not key.tag.endswith(":merge"):
                raise self.refusal(key, f"the key {key.value} is listed twice")
            seen.add(key.value)
        # afterwards the node has the keys of merged anchors
        values = Section(self.construct_mapping(node, deep=True))
        values.places = {key.value: (self.name, key.start_mark.line + 1) for key, _ in node.value}
        return values

    def construct_yaml_str(self, node: yaml.ScalarNode) -> str:
        """Make a text of a node."""
        if "\0" in node.value:
            raise self.refusal(
                node, "a text has a NUL, which no command line can hold; leave it out"
            )
        try:
            return joined(node.value)
        except UnicodeDecodeError:
            raise self.refusal(
                node, "a text has half a surrogate pair, which is no character; leave it out"
            ) from None

    def construct_yaml_binary(self, node: yaml.ScalarNode) -> bytes:
        """Refuse binary values, which no setting has."""
        raise self.refusal(node, "a value is !!binary; allowed: numbers, text, lists and mappings")

    def construct_exponent(self, node: yaml.ScalarNode) -> float:
        """Make a number of a node: an int if it is whole."""
        number = float(node.value)
        return int(number) if number.is_integer() else number

    def refusal(self, node: yaml.Node, words: str) -> InputError:
        """Return the error for a node."""
        return InputError(f"{self.name}, line {node.start_mark.line + 1}: {words}")


Loader.add_constructor("tag:yaml.org,2002:map", Loader.construct_yaml_map)
Loader.add_constructor("tag:yaml.org,2002:str", Loader.construct_yaml_str)
Loader.add_constructor("tag:yaml.org,2002:binary", Loader.construct_yaml_binary)
Loader.add_constructor("!exponent", Loader.construct_exponent)
Loader.add_implicit_resolver("!exponent", EXPONENT, list("+-.0123456789"))


def joined(text: str) -> str:
    r"""Join surrogate pairs, as JSON writes emoji (``\ud83d\ude00``).

    Raises UnicodeDecodeError for half a pair.
    """
    return text.encode("utf-16", "surrogatepass").decode("utf-16")


def read_yaml(path: Path | str) -> dict[str, Any]:
    """Read a config file.

    Raises `InputError` for a missing or malformed file, and for a repeated key.
    """
    check_file(path)
    try:
        loader = Loader(Path(path).read_text(encoding="utf-8"))
        loader.name = str(path)
        values = loader.get_single_data()
        if not isinstance(values, dict):
            raise InputError(
                f"{path} holds {show(values or 'nothing')}; allowed: a mapping of settings"
            )
        return values
    except UnicodeDecodeError as error:
        raise InputError(
            f"{path} is not UTF-8 text (byte {error.start}); save it as UTF-8"
        ) from None
    except OSError as error:
        raise InputError(f"the config file {path} cannot be read: {error.strerror}") from None
    except RecursionError:
        raise InputError(f"{path} is nested too deeply; allowed: entries with settings") from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f"{path}, line {mark.line + 1}" if mark else str(path)
        raise InputError(
            f"{where}: not YAML ({getattr(error, 'problem', None) or error})"
        ) from None


def gather(
    default: Path | str,
    overlays: Iterable[Path | str] = (),
    overrides: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Overlay the files and the command line's `overrides` on the default config, in order.

    ``standalone: true`` in a file leaves the default out; the last file that sets it counts. The
    files are read here and not by the engine, which ignores repeated keys and does not treat null
    as a removal.
    """
    layers = [*map(read_yaml, overlays), _typed(overrides or {})]
    alone = [layer["standalone"] for layer in layers if "standalone" in layer][-1:] == [True]
    return lay({} if alone else read_yaml(default), *layers)


def _typed(values: Any) -> Any:
    """Parse scalars in lists and mappings of the command line, which the engine passes as text."""
    if isinstance(values, Mapping):
        return {key: _typed(value) for key, value in values.items()}
    if isinstance(values, list):
        return [_typed(value) for value in values]
    if isinstance(values, str) and re.search(r"[\ud800-\udfff]", values):
        raise InputError(f"--config has {values!a}, which is not UTF-8; allowed: text in UTF-8")
    tag = (
        Loader("").resolve(yaml.ScalarNode, values, (True, False))
        if isinstance(values, str) and values
        else ""
    )
    if tag.endswith((":int", ":float")) and AMBIGUOUS.fullmatch(values):
        return values  # text, which a number is not
    if tag.endswith((":null", ":bool", ":int", ":float", "!exponent")):
        with contextlib.suppress(ValueError):  # of text that only looks like a number, such as 0x_
            return yaml.SafeLoader.construct_object(Loader(""), yaml.ScalarNode(tag, values))
    return values


def lay(*layers: Mapping[str, Any]) -> Section:
    """Merge mappings key by key; later values replace earlier ones, and null removes a key.

    Null for a key that no earlier layer has is a mistake, and remains for the checks.
    """
    merged = Section()
    merged.places = {}
    for key in dict.fromkeys(key for layer in layers for key in layer):
        having = [layer for layer in layers if key in layer]
        values = [layer[key] for layer in having]
        nulls = [index for index, value in enumerate(values) if value is None]
        left = values[nulls[-1] + 1 :] if nulls else values
        if left or len(nulls) == len(values):
            mappings = left and all(isinstance(value, Mapping) for value in left)
            merged[key] = lay(*left) if mappings else values[-1]
            merged.places[key] = _places(having[-1]).get(key)
    return merged


# --- from values to a config ----------------------------------------------------------------------


def load(values: dict[str, Any]) -> Config:
    """Check the merged values of the config files and make a config of them.

    Raises `InputError` with a line for each mistake, which begins with file and line where `gather`
    read the values. What each entry says and lacks is checked first, then what entries demand of
    each other.
    """
    try:
        config = _made(values)
        demands.check(config)
    except InputError as error:
        raise _placed(error.several, values) from None
    return seeds.replicate(config)


def _made(values: dict[str, Any]) -> Config:
    """Make a config of plain values; raises `InputError` with all mistakes of its entries."""
    mistakes: list[InputError] = []

    def noted(make: Callable[..., Any], *arguments: Any) -> Any:
        try:
            return make(*arguments)
        except InputError as error:
            mistakes.extend(error.several)

    for section in schema.SECTIONS:
        for name in _mapping(values.get(section)):
            noted(checks.check_name, name, section)
    entries = {section: _mapping(values.get(section)) for section in DEFAULTS}
    entries["encoders"] = (
        noted(inherited, entries["encoders"], _mapping(values.get(DEFAULTS["encoders"]))) or {}
    )
    laid = {section: _laid(section, entries[section], values) for section in DEFAULTS}
    written = noted(
        parse, Written, {**values, **{key: laid[key] for key in laid if _mapping(values.get(key))}}
    )
    if written:
        parts = {key: getattr(written, key) for key in rules_of(Config)}
        parts["stages"] = {
            name: _seeded(stage, written.seed) for name, stage in written.stages.items()
        }
        parts["encoders"] = {
            name: noted(
                _finished,
                _seeded(encoder, written.seed),
                entries["encoders"][name],
                ("encoders", name),
            )
            for name, encoder in written.encoders.items()
        }
    if mistakes:
        raise InputError(
            *dict.fromkeys(_of_defaults(mistake, entries, values) for mistake in mistakes)
        )
    return Config(**parts)


def _mapping(values: Any) -> Mapping[str, Any]:
    """Return values that may be no mapping, which `Written` refuses, as one."""
    return values if isinstance(values, Mapping) else {}


def _laid(section: str, entries: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """Lay the entries of a section over their defaults: over those that their kind knows."""
    defaults = {**KINDS[section], **_mapping(values.get(DEFAULTS[section]))}
    laid = {}
    for name, entry in entries.items():
        kind = kind_of(schema.SECTIONS[section], {**defaults, **_mapping(entry)})
        known = pick(defaults, rules_of(kind)) if kind else {}
        laid[name] = {**known, **entry} if isinstance(entry, Mapping) else entry
    return laid


def _of_defaults(mistake: InputError, entries: Entries, values: Mapping[str, Any]) -> InputError:
    """Say where a mistake of an entry is if the entry has it from the defaults of its section."""
    section, name, key = (*mistake.keys, "", "", "")[:3]
    if section not in DEFAULTS or key in _mapping(entries[section].get(name)):
        return mistake
    if key not in _mapping(values.get(DEFAULTS[section])) or not str(mistake).startswith(
        dotted(mistake.keys)
    ):
        return mistake
    return refusal(
        (DEFAULTS[section], *mistake.keys[2:]), str(mistake).removeprefix(dotted(mistake.keys))
    )


def _seeded(entry: Any, seed: int) -> Any:
    """Give an entry without a seed of its own that of the config."""
    return replace(entry, seed=seed) if entry.seed == -1 else entry


def _finished(encoder: Encoder, own: Mapping[str, Any], keys: Keys) -> Encoder:
    """Reset settings without effect on an encoder.

    Raises `InputError` if the encoder itself sets one, or if it lacks a name.
    """
    default = {key: rules_of(encoder)[key].default for key in encoder.unread}
    for key, why in encoder.unread.items():
        if key in own and getattr(encoder, key) != default[key]:
            raise moved(unfit(encoder, key, f", but {why}; leave it out"), keys)
    if encoder.reads_importance and not encoder.importance:
        needed = "start, collection, importance"
        raise refusal(
            (*keys, "importance"), f" is missing; objective {encoder.objective} needs {needed}"
        )
    return replace(encoder, **default)  # changing for others what is not read here restarts nothing


def _placed(mistakes: Sequence[InputError], values: Any) -> InputError:
    """Make one error of several, in the order of the files, a few at most.

    ``encoders.a: take_step is 9`` of every encoder is one mistake.
    """
    several: dict[str, tuple[tuple[bool, Any], str]] = {}
    for mistake in mistakes:
        entry, colon, rest = str(mistake).partition(": ")
        place = _place(mistake.keys, values)
        near = (
            os.path.relpath(place[0])
            if place and Path(place[0]).is_relative_to(Path.cwd())
            else place and place[0]
        )
        sentence = f"{near}, line {place[1]}: {mistake}" if place else str(mistake)
        several.setdefault(
            rest if colon and " " not in entry else str(mistake), ((place is None, place), sentence)
        )
    sentences = [sentence for _, sentence in sorted(several.values(), key=lambda pair: pair[0])]
    more = [f"and {len(sentences) - MOST_MISTAKES} more"] if len(sentences) > MOST_MISTAKES else []
    return InputError("\n".join([*sentences[:MOST_MISTAKES], *more]))


def _place(keys: Keys, values: Any) -> Place | None:
    """Return the file and line of a key, of its default, or of the nearest key above it."""
    # items of a list have the list's line
    keys = tuple(key for key in keys if isinstance(key, str))
    default = [(DEFAULTS[keys[0]], *keys[2:])] if len(keys) > 2 and keys[0] in DEFAULTS else []
    for place in (
        [keys, *default, *(keys[:length] for length in range(len(keys) - 1, 0, -1))] if keys else []
    ):
        above = reduce(
            lambda inner, key: inner.get(key) if isinstance(inner, Mapping) else None,
            place[:-1],
            values,
        )
        if isinstance(above, Mapping) and place[-1] in above:
            return _places(above).get(place[-1])
    return None


def _places(values: Mapping[str, Any]) -> dict[str, Place | None]:
    return getattr(values, "places", {})


# --- what entries inherit -------------------------------------------------------------------------


def inherited(encoders: Mapping[str, Any], defaults: Mapping[str, Any]) -> Entries:
    """Give each encoder the inherited settings: the start of `after`, all settings for a snapshot.

    Raises `InputError` if the earlier encoder does not exist or needs the encoder itself, and if a
    snapshot sets more than its step.
    """
    for key in BEFORE:
        if key in defaults:
            raise refusal(
                ("pretraining", key), " cannot be a default: the first encoder has none before it"
            )
    before = {
        name: {
            key: values[key]
            for key in BEFORE
            if isinstance(_mapping(values).get(key), str) and values[key]
        }
        for name, values in encoders.items()
    }
    for name, needed in before.items():
        for key, other in needed.items():
            if other not in encoders:
                raise refusal(
                    ("encoders", name, key), f" is {show(other)}; {suggestion(other, encoders)}"
                )
    checks.check_cycles(
        "encoders", {name: list(needed.values()) for name, needed in before.items()}
    )

    def whole(name: str) -> Any:
        values, keys = encoders[name], ("encoders", name)
        if source := before[name].get("snapshot_of"):
            if first := before[source].get("snapshot_of"):
                raise refusal(
                    (*keys, "snapshot_of"), f" is {source}, a snapshot itself; allowed: {first}"
                )
            return _snapshot(values, _mapping(whole(source)), defaults, keys)
        start = (
            _mapping(whole(before[name]["after"])).get("start") if "after" in before[name] else None
        )
        return {"start": start, **values} if start else values

    return {name: whole(name) for name in encoders}


def _snapshot(
    values: dict[str, Any], source: dict[str, Any], defaults: dict[str, Any], keys: Keys
) -> dict[str, Any]:
    """Give a snapshot the values of its encoder, `source`, and its own step."""
    name, whole = values["snapshot_of"], {**defaults, **source}
    if whole.get("objective") == "none":
        raise refusal(
            (*keys, "snapshot_of"),
            f" is {name}, which is not pre-trained; allowed: an encoder that is",
        )
    for key in values:
        if key not in OF_SNAPSHOT and values[key] != whole.get(key):
            raise refusal(
                (*keys, key),
                f" is {show(values[key])}, but a snapshot has all but its take_step from "
                f"encoders.{name}; leave it out",
            )
    if not values.get("take_step"):
        raise refusal(
            (*keys, "take_step"), f" is missing: the step of encoders.{name} that is kept"
        )
    return {**source, **values}
