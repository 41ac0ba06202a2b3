"""Whether a config makes what is asked for, and what else may have been meant: read off the rules' own patterns."""

from __future__ import annotations

import difflib
import itertools
import os
import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from cdmae.config import systems
from cdmae.config.schema import Config
from cdmae.config.systems import TRAINED
from cdmae.errors import InputError
from workflow.facts import FIGURES, TABLES, exhibit

ROOT = Path(__file__).resolve().parent.parent
ALL = "all"  # the target of a whole run
RULE = r"^(?:use )?rule (?:\w+ as )?(\w+).*:\n((?:^$|^ .*\n)+)"  # its name, and the lines below
ALONE = ("report", "latency")  # rules without wildcards, which can be targets


@cache
def _rules() -> dict[str, str]:
    texts = [path.read_text(encoding="utf-8") for path in sorted((ROOT / "workflow/rules").glob("*.smk"))]
    return {name: body for text in texts for name, body in re.findall(RULE, text, flags=re.MULTILINE)}


@cache
def patterns() -> dict[str, list[str]]:
    """Map every rule that makes something to the patterns of its outputs, below the results folder."""
    outputs: dict[str, list[str]] = {}
    for name, body in _rules().items():
        block = re.search(r"^    output:\n((?: {8}.*\n)+)", body, flags=re.MULTILINE)
        for words in re.findall(r'"<results>/[^"]*"(?:, "\.\w+")*', block[1] if block else ""):
            pattern, *forms = re.findall(r'"(?:<results>/)?([^"]*)"', words)
            outputs.setdefault(name, []).extend([pattern + form for form in forms] or [pattern])
    return outputs


def _kinds(rule: str) -> list[str]:
    """List the kinds of system to which a rule constrains its wildcard; none: whatever they are."""
    told = re.search(r"^ {8}system=of_kind\((.+)\),$", _rules()[rule], flags=re.MULTILINE)
    return (re.findall(r'"(\w+)"', told[1]) or list(TRAINED)) if told else []


def paths(config: Config) -> dict[str, list[str]]:
    """Map every rule to the paths that it makes of the entries of a config."""
    every = systems.targets(config)
    names = {
        "collection": list(config.collections),
        "start": list(config.starts),
        "importance": list(config.importance),
        "encoder": list(config.encoders),
        "system": list(config.systems),
        "split": list(dict.fromkeys(split for _, split in every)),
        "target": [f"{collection}.{split}" for collection, split in every],
    }
    taught = [systems.taught_like(config, name) for name in systems.taught(config)]
    own = {rule: {"system": systems.of_kind(config, *kinds)} for rule in patterns() if (kinds := _kinds(rule))} | {
        "masked_terms": {"encoder": systems.masked_by_importance(config)},
        "teacher": {"system": list(dict.fromkeys(taught))},
        "table": {"exhibit": TABLES},
        "figure": {"exhibit": FIGURES},
    }
    outputs = {
        rule: [path for pattern in known for path in _filled(pattern, names | own.get(rule, {}))]
        for rule, known in patterns().items()
    }
    negatives = ["negatives/{}.{}.{}.parquet".format(*key) for key in systems.mined(config)]
    outputs |= {rule: negatives for rule in outputs if "mine" in rule}
    results = os.path.normpath(config.results)
    return {rule: [os.path.join(results, path) for path in known] for rule, known in outputs.items()}


def _filled(pattern: str, names: dict[str, Sequence[str]]) -> list[str]:
    wildcards = re.findall(r"{(\w+)}", pattern)
    values = itertools.product(*(names[wildcard] for wildcard in wildcards))
    return [pattern.format(**dict(zip(wildcards, row, strict=True))) for row in values]


def resolved(config: Config | None, target: str) -> str:
    """Return what is asked for as the rules name it, whether it begins with ``./`` or the checkout's own path.

    Of a result, rule or exhibit the config must know it, as `check_target` says; Snakemake looks for other files.
    """
    path = os.path.normpath(target).removeprefix(f"{ROOT}/") if "/" in target else target
    if config is None:
        return path
    of_results = f"{path}/".startswith(f"{os.path.normpath(config.results)}/") and not Path(path).is_file()
    named = path in {*patterns(), *TABLES, *FIGURES} - {*ALONE}
    return check_target(config, target) if of_results or named else path


def check_target(config: Config, target: str) -> str:
    """Return a target as the rules name it.

    Raises `InputError` for one that no job makes, with the nearest one, and for an exhibit that the config lacks the
    entries for.
    """
    path = os.path.normpath(target).removeprefix(f"{ROOT}/")
    if Path(path).stem in (*TABLES, *FIGURES):
        exhibit(config, Path(path).stem)
    outputs = paths(config)
    known = [path for several in outputs.values() for path in several]
    if path in (*known, *TABLES, *FIGURES, *ALONE, ALL):
        return path
    several = outputs.get(path) or [other for other in known if other.startswith(f"{path}/")]
    if several:
        what = "rule that makes" if path in outputs else "folder of"
        raise InputError(f"{target} is a {what} several results; allowed: one of them, such as {several[0]}")
    near = difflib.get_close_matches(path, [*known, *TABLES, *FIGURES, ALL, *ALONE], n=1)
    raise InputError(
        f"{target} is nothing that this config makes; "
        + (f"did you mean {near[0]}?" if near else "./run -n lists what it makes")
    )
