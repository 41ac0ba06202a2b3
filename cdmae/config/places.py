"""File and line in the config for what the messages of `cdmae.config.load` complain of."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cdmae.config import load as loading
from cdmae.errors import InputError

if TYPE_CHECKING:
    import yaml

    from cdmae.config.schema import Config

DEFAULTS = {"encoders": "pretraining", "stages": "training"}  # where entries have their defaults from
DEEPEST = 4  # keys down to a setting, such as collections.docs.parts.size
# "encoders.a.steps is 3", "seeds[1] is 3", "encoders.a: take_step is 9": the key begins a sentence, its last part may
# follow a colon.
KEY = re.compile(r"(?P<path>[\w.-]+)(?=[:\[ ])(: (?P<last>\w+)(?= (?:is|has) ))?")

Keys = tuple[str, ...]


def load(
    default: Path | str, overlays: Sequence[Path | str], values: dict[str, Any], given: Mapping[str, Any] | None = None
) -> Config:
    """Load the config of a default file, overlays and their merged values; mistakes are told with their places.

    `given` are those of the values that came with the command line.
    """
    try:
        return loading.load(loading.gather(default, overlays, values))
    except InputError as error:
        files = overlays if values.get("standalone") is True else [default, *overlays]
        raise located(error, files, given) from None


def located(error: InputError, files: Sequence[Path | str], given: Mapping[str, Any] | None = None) -> InputError:
    """Put file and line before each sentence whose key stands in one of the config `files`.

    Of several files the last one counts, as for the values. What is `given` on the command line stands in no file, and
    neither do mistakes in other files, whose place the sentence tells itself.
    """
    lines: dict[Keys, tuple[Path, int]] = {}
    for path in map(Path, files):
        lines |= {keys: (path, line) for keys, line in _lines(path).items()}
    return InputError("\n".join(_place(sentence, lines, given or {}) + sentence for sentence in str(error).split("\n")))


def _place(sentence: str, lines: dict[Keys, tuple[Path, int]], given: Mapping[str, Any]) -> str:
    """Return ``FILE, line N: `` of the key itself, of the entry's default for it, or of the nearest key above it."""
    match = KEY.match(sentence)
    if match is None or re.search(r", line \d", sentence):
        return ""
    keys = tuple(".".join(filter(None, match.groupdict().values())).split("."))
    default = (DEFAULTS[keys[0]], *keys[2:]) if keys[0] in DEFAULTS else keys
    above = [keys[:length] for length in range(len(keys) - 1, 0, -1)]
    nearest = next((place for place in (keys, default, *above) if place in lines), None)
    if nearest is None or _holds(given, nearest):
        return ""
    path, line = lines[nearest]
    return f"{path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path}, line {line}: "


def _holds(values: Any, keys: Keys) -> bool:
    for key in keys:
        if not isinstance(values, Mapping) or key not in values:
            return False
        values = values[key]
    return True


def _lines(path: Path) -> dict[Keys, int]:
    """Return the line of every key of a config file; nothing for a file that is none, which its reader has refused."""
    import yaml

    lines: dict[Keys, int] = {}

    def walk(node: yaml.Node, keys: Keys) -> None:
        for key, value in node.value if isinstance(node, yaml.MappingNode) and len(keys) < DEEPEST else ():
            if key.tag == "tag:yaml.org,2002:merge":
                for mapping in value.value if isinstance(value, yaml.SequenceNode) else [value]:
                    walk(mapping, keys)
            elif isinstance(key, yaml.ScalarNode):
                lines[*keys, key.value] = key.start_mark.line + 1
                walk(value, (*keys, key.value))

    try:
        walk(yaml.compose(path.read_text(encoding="utf-8"), yaml.SafeLoader), ())
    except (OSError, UnicodeDecodeError, RecursionError, yaml.YAMLError):
        return {}
    return lines
