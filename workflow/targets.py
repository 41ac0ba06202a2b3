"""Check the targets of a run against the config's results, and suggest the nearest name."""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from snakemake.io import expand, get_wildcard_constraints, strip_wildcard_constraints

from cdmae.config import systems
from cdmae.config.schema import Config
from cdmae.errors import InputError
from workflow.commands import COMMANDS, YAML
from workflow.facts import FIGURES, TABLES, exhibit

if TYPE_CHECKING:
    from snakemake.rules import Rule

ROOT = Path(__file__).resolve().parent.parent
NONE = "(?!)"  # the constraint of a wildcard without names
# the targets of this process: Snakemake reads the Snakefile before it looks at its targets
ASKED: list[str] = []


def ask(targets: Iterable[str]) -> list[str]:
    """Set the targets of the run, and return them as the rules name them.

    A path may begin with ``./`` or with the path of the checkout.
    """
    ASKED.clear()
    for name in targets:
        path = os.path.normpath(name).removeprefix(f"{ROOT}/")
        ASKED.append(path if "/" in name else name)
    return list(ASKED)


def paths(rules: Iterable[Rule], config: Config) -> dict[str, list[str]]:
    """Map every rule to the paths that it produces for a config.

    The constraints of the rules list the names. Negatives are mined only if a training reads them.
    """
    mined = {".".join(key) for key in systems.mined(config)}
    outputs: dict[str, list[str]] = {}
    for rule in rules:
        made: list[str] = []
        for pattern in rule.output:
            constraints = get_wildcard_constraints(pattern)
            names = {name: known.pattern.split("|") for name, known in constraints.items()}
            if [NONE] not in names.values():
                made += expand(strip_wildcard_constraints(pattern), **names)
        outputs[rule.name] = [path for path in made if _is_made(Path(path), mined)]
    return outputs


def _is_made(path: Path, mined: set[str]) -> bool:
    """Return whether a rule makes a path; for negatives, this depends on the trainings."""
    return path.parent.name != "negatives" or path.stem in mined


def check(rules: Sequence[Rule], config: Config) -> None:
    """Check the requested targets; existing files that are not results are allowed.

    Raises `InputError` for a target that no job makes, and suggests the nearest name. Also raises
    it for a target that matches several results, and for an exhibit with entries that the config
    lacks.
    """
    outputs = paths(rules, config) if ASKED else {}
    alone = [rule.name for rule in rules if not rule.has_wildcards()]
    known = [path for made in outputs.values() for path in made]
    for target in ASKED:
        if Path(target).stem in (*TABLES, *FIGURES):
            exhibit(config, Path(target).stem)
        if Path(target).suffix in YAML:
            raise InputError(
                f"{target} is not made by this config; put config files after --configfile"
            )
        if target in known or target in alone or os.path.isfile(target):
            continue
        several = outputs.get(target) or [path for path in known if path.startswith(f"{target}/")]
        if several:
            kind = "rule that makes" if target in outputs else "folder of"
            raise InputError(
                f"{target} is a {kind} several results; allowed: one of them, such as {several[0]}"
            )
        if target in outputs or target.startswith(f"{os.path.normpath(config.results)}/"):
            wrong = "not made by this config"
            remedy = "./run -n lists its results"
        elif "/" not in target:
            wrong = "neither a command nor a rule nor a file"
            remedy = "./run --help lists the commands"
        else:
            continue
        near = difflib.get_close_matches(target, [*known, *alone, *COMMANDS, "test"], n=1)
        raise InputError(
            f"{target} is {wrong}; " + (f"did you mean {near[0]}?" if near else remedy)
        )
