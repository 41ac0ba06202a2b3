"""Read YAML config files into plain values with file and line, and overlay several files."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from cdmae.errors import InputError
from cdmae.fields import show
from cdmae.files import check_file

# keys with which Snakemake runs code in a config file
TEMPLATE = ("__use_yte__", "__definitions__", "__variables__")
# as in 3e-4, which is text in YAML 1.1
EXPONENT = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)[eE][-+]?\d+")

# Octal, base 60 and digits in groups, as YAML 1.1 reads 010, 1:30 and 1_0. In YAML 1.2 they are 10,
# text and text, respectively.
AMBIGUOUS = re.compile(r"[-+]?0[0-9_]+|.*[:_].*")
MOST_VALUES = 100_000  # of a config file

Place = tuple[str, int]  # a file and a line


class Section(dict):
    """A mapping in a config; `places` has each key's file and line (None: the command line)."""

    places: dict[str, Place | None]


def places_of(values: Mapping[str, Any]) -> dict[str, Place | None]:
    """Return the file and line of each key of a mapping, if known."""
    return getattr(values, "places", {})


class Loader(yaml.SafeLoader):
    """A loader that keeps the line numbers of keys and refuses ambiguous or unusable YAML.

    It refuses repeated keys and keys that are not text. It refuses numbers that programs read
    differently (``010`` is 8 in YAML 1.1), and aliases that expand beyond memory. It also
    refuses text that no file name or command line can contain.
    """

    def get_single_node(self) -> yaml.Node | None:
        """Read the document; refuse one with too many values, including repeated aliases."""
        node = super().get_single_node()
        if node is not None and self._values(node, {}) > MOST_VALUES:
            raise InputError(
                f"{self.name} contains more than {MOST_VALUES:,} values, including the values that "
                "aliases (*) repeat"
            )
        return node

    def _values(self, node: yaml.Node, known: dict[yaml.Node, int]) -> int:
        """Count the values of a node.

        known: the results for other nodes, which are not counted again.
        """
        if node in known:
            return known[node]
        known[node] = 0  # for an alias inside its own value, which is refused later
        count = 1
        for part in [] if isinstance(node, yaml.ScalarNode) else node.value:
            for inner in part if isinstance(part, tuple) else (part,):
                count += self._values(inner, known)
        known[node] = count
        return count

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        """Make the value of a node."""
        try:
            value = super().construct_object(node, deep)
        except InputError:
            raise
        # for 2001-02-30, or a whole number with thousands of digits
        except (ValueError, OverflowError):
            words = (
                f"{show(node.value)} looks like a number or a date but is not a valid one; put "
                "text in quotation marks"
            )
            raise self.refusal(node, words) from None
        if node.tag.endswith((":int", ":float")) and AMBIGUOUS.fullmatch(node.value):
            words = (
                f"{node.value} is a different number in different versions of YAML; write plain "
                "digits, or put text in quotation marks"
            )
            raise self.refusal(node, words)
        return value

    def construct_yaml_map(self, node: yaml.MappingNode) -> Section:
        """Make the mapping of a node."""
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
                    key, f"the key {key.value} makes a config file run code; remove it"
                )
            if key.value in seen and not key.tag.endswith(":merge"):
                raise self.refusal(key, f"the key {key.value} is listed twice")
            seen.add(key.value)
        # this call adds the keys of merged anchors to the node
        values = Section(self.construct_mapping(node, deep=True))
        values.places = {key.value: (self.name, key.start_mark.line + 1) for key, _ in node.value}
        return values

    def construct_yaml_str(self, node: yaml.ScalarNode) -> str:
        """Make the text of a node."""
        if "\0" in node.value:
            raise self.refusal(
                node, "a text has a NUL character, which no command line can contain; remove it"
            )
        try:
            return joined(node.value)
        except UnicodeDecodeError:
            raise self.refusal(
                node, "a text has half a surrogate pair, which is not a character; remove it"
            ) from None

    def construct_yaml_binary(self, node: yaml.ScalarNode) -> bytes:
        """Refuse binary values, which no setting has."""
        raise self.refusal(node, "a value is !!binary; allowed: numbers, text, lists and mappings")

    def construct_exponent(self, node: yaml.ScalarNode) -> float:
        """Make the number of a node: an int if it is whole."""
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
    r"""Replace surrogate pairs with characters; JSON writes emoji as pairs (``\ud83d\ude00``).

    Raises `UnicodeDecodeError` for half a pair.
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
    except UnicodeDecodeError as error:
        words = f"{path} is not UTF-8 text (byte {error.start}); save it as UTF-8"
        raise InputError(words) from None
    except OSError as error:
        raise InputError(f"the config file {path} cannot be read: {error.strerror}") from None
    except RecursionError:
        raise InputError(f"{path} is nested too deeply; allowed: entries with settings") from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f"{path}, line {mark.line + 1}" if mark else str(path)
        reason = getattr(error, "problem", None) or error
        raise InputError(f"{where}: not YAML ({reason})") from None
    if not isinstance(values, dict):
        found = show(values or "nothing")
        raise InputError(f"{path} contains {found}; allowed: a mapping of settings")
    return values


def gather(
    default: Path | str,
    overlays: Iterable[Path | str] = (),
    overrides: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Overlay the files and the command line's `overrides` on the default config, in order.

    ``standalone: true`` in a file omits the default config; if several files set it, the last one
    wins. The files are read here and not by Snakemake, which ignores repeated keys and does not
    treat null as a removal.
    """
    layers = [*map(read_yaml, overlays), _typed(overrides or {})]
    standalone = [layer["standalone"] for layer in layers if "standalone" in layer]
    alone = standalone[-1:] == [True]
    values = lay({} if alone else read_yaml(default), *layers)
    _drop_systems(values, _removed_systems(values, layers))
    return values


def _removed_systems(values: Mapping[str, Any], layers: Iterable[Mapping[str, Any]]) -> set[str]:
    """Return the systems that a layer removes by null and that the merged config lacks."""
    removed: set[str] = set()
    for layer in layers:
        systems = layer.get("systems")
        if isinstance(systems, Mapping):
            removed |= {name for name, entry in systems.items() if entry is None}
    kept = values.get("systems")
    return removed - set(kept if isinstance(kept, Mapping) else ())


def _drop_systems(values: Mapping[str, Any], removed: set[str]) -> None:
    """Drop removed systems from the section `report`: one null then removes a system everywhere."""
    report = values.get("report")
    methods = report.get("methods") if isinstance(report, Mapping) else None
    if isinstance(methods, dict):
        for method in [name for name, system in methods.items() if system in removed]:
            del methods[method]
    compare = report.get("compare") if isinstance(report, Mapping) else None
    if not isinstance(compare, dict):
        return
    for system, baselines in list(compare.items()):
        left = baselines
        if isinstance(baselines, list):
            left = [baseline for baseline in baselines if baseline not in removed]
        if system in removed or (baselines and not left):
            del compare[system]
        elif left != baselines:
            compare[system] = left


def check_typed(words: Sequence[str]) -> None:
    """Refuse ``KEY=010`` on the command line, which Snakemake would read as 10.

    words: the arguments of ``--config``.
    """
    for word in words:
        value = word.partition("=")[2]
        if AMBIGUOUS.fullmatch(value) and _is_number(value):
            raise InputError(
                f"--config has {word}, but {value} is a different number in different versions of "
                "YAML; write plain digits"
            )


def _is_number(text: str) -> bool:
    """Return whether Python, and with it Snakemake, reads a text as a number."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def _typed(values: Any) -> Any:
    """Parse the scalars in command-line lists and mappings, which Snakemake passes as text."""
    if isinstance(values, Mapping):
        return {key: _typed(value) for key, value in values.items()}
    if isinstance(values, list):
        return [_typed(value) for value in values]
    return _scalar(values) if isinstance(values, str) and values else values


def _scalar(text: str) -> Any:
    """Parse a scalar of the command line; text that only looks like a number remains text."""
    if re.search(r"[\ud800-\udfff]", text):
        raise InputError(f"--config has {text!a}, which is not UTF-8; allowed: text in UTF-8")
    loader = Loader("")
    tag = loader.resolve(yaml.ScalarNode, text, (True, False))
    if tag.endswith((":int", ":float")) and AMBIGUOUS.fullmatch(text):
        return text
    if tag.endswith((":null", ":bool", ":int", ":float", "!exponent")):
        with contextlib.suppress(ValueError):  # for text such as 0x_
            return yaml.SafeLoader.construct_object(loader, yaml.ScalarNode(tag, text))
    return text


def lay(*layers: Mapping[str, Any]) -> Section:
    """Merge mappings key by key: a later value replaces an earlier value, and null removes a key.

    Null for a key that no earlier layer has is a mistake. It remains in the result, and the checks
    report it.
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
            merged.places[key] = places_of(having[-1]).get(key)
    return merged
