"""Where the config files say what a message complains of: file and line for the messages of `loading.load`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cdmae.config import load as loading
from cdmae.errors import InputError

if TYPE_CHECKING:
    import yaml

    from cdmae.config.schema import Config

DEFAULTS = {"encoders": "pretraining", "stages": "training"}  # where entries have their defaults from
DEEPEST = 4  # keys down to a setting, such as collections.docs.parts.size

Keys = tuple[str, ...]


def load(
    default: Path | str, overlays: Sequence[Path | str], values: dict[str, Any], given: Mapping[str, Any] | None = None
) -> Config:
    """The config of a default file, overlays and their merged values; what is wrong is named with its place.

    `given` are those of the values that came with the command line.
    """
    try:
        return loading.load(loading.gather(default, overlays, values))
    except InputError as error:
        files = overlays if values.get("standalone") is True else [default, *overlays]
        raise located(error, files, given) from None


def located(error: InputError, files: Sequence[Path | str], given: Mapping[str, Any] | None = None) -> InputError:
    """The error with file and line before each sentence whose key stands in one of the config `files`.

    Of several files the last one counts, as for the values. What is `given` on the command line stands in no file, and
    neither do mistakes in other files, whose place the sentence tells itself.
    """
    known = [(Path(path), _lines(path)) for path in reversed(files)]
    return InputError("\n".join(_place(each, known, given or {}) + each for each in str(error).split("\n")))


def _place(sentence: str, files: list[tuple[Path, dict[Keys, int]]], given: Mapping[str, Any]) -> str:
    """``FILE, line N: ``, or nothing."""
    found = [
        (rest.startswith("."), -len(keys), path, keys, line)
        for text in _readings(sentence)
        for path, lines in files
        for keys, line in lines.items()
        if text.startswith(name := ".".join(keys)) and re.match(r"[.:[]| (is|has|does) ", rest := text[len(name) :])
    ]
    if not found or re.search(r", line \d", sentence):
        return ""
    *_, path, keys, line = min(found, key=lambda each: each[:2])  # the key itself, else the nearest one above it
    if _holds(given, keys):
        return ""
    return f"{path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path}, line {line}: "


def _readings(sentence: str) -> Iterator[str]:
    """A sentence with the whole path of its key in front: as it is, and for the entry's defaults."""
    sentence = re.sub(r"^([\w.-]+): (\w+ (is|has) )", r"\1.\2", sentence)  # "encoders.a: take_step is 9"
    yield sentence
    section = sentence.partition(".")[0]
    if section in DEFAULTS:
        yield re.sub(r"^\w+\.[\w-]+", DEFAULTS[section], sentence)


def _holds(values: Any, keys: Keys) -> bool:
    for key in keys:
        if not isinstance(values, Mapping) or key not in values:
            return False
        values = values[key]
    return True


def _lines(path: Path | str) -> dict[Keys, int]:
    """The line of every key of a config file; nothing for a file that is none, which its reader has refused."""
    import yaml

    found: dict[Keys, int] = {}

    def walk(node: yaml.Node, keys: Keys) -> None:
        for key, value in node.value if isinstance(node, yaml.MappingNode) and len(keys) < DEEPEST else ():
            if key.tag == "tag:yaml.org,2002:merge":
                for each in value.value if isinstance(value, yaml.SequenceNode) else [value]:
                    walk(each, keys)
            elif isinstance(key, yaml.ScalarNode):
                found[*keys, key.value] = key.start_mark.line + 1
                walk(value, (*keys, key.value))

    try:
        walk(yaml.compose(Path(path).read_text(encoding="utf-8"), yaml.SafeLoader), ())
    except (OSError, UnicodeDecodeError, RecursionError, yaml.YAMLError):
        return {}
    return found
