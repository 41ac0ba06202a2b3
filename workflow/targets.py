"""What a run is asked for: whether its config makes it, and what else may have been meant."""

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
NONE = "(?!)"  # the constraint of a wildcard for which no name may stand
ASKED: list[
    str
] = []  # of this process: Snakemake reads the Snakefile before it looks at its targets


def ask(targets: Iterable[str]) -> list[str]:
    """Set what the run is asked for, as the rules name it, whether it begins with ``./`` or the
    checkout's own path.
    """
    ASKED[:] = [
        os.path.normpath(name).removeprefix(f"{ROOT}/") if "/" in name else name for name in targets
    ]
    return list(ASKED)


def paths(rules: Iterable[Rule], config: Config) -> dict[str, list[str]]:
    """Map every rule to the paths that it makes of the entries of a config: its wildcards are
    constrained to these.

    Of the negatives only those that a training asks for are made.
    """
    mined = {".".join(key) for key in systems.mined(config)}
    outputs: dict[str, list[str]] = {rule.name: [] for rule in rules}
    for rule in rules:
        for pattern in rule.output:
            names = {
                name: known.pattern.split("|")
                for name, known in get_wildcard_constraints(pattern).items()
            }
            if [NONE] not in names.values():
                outputs[rule.name] += expand(strip_wildcard_constraints(pattern), **names)
    return {
        rule: [
            path
            for path in made
            if Path(path).parent.name != "negatives" or Path(path).stem in mined
        ]
        for rule, made in outputs.items()
    }


def check(rules: Sequence[Rule], config: Config) -> None:
    """Look at what the run is asked for; Snakemake looks for files that are no results.

    Raises `InputError` for what no job makes, with the nearest name; for what stands for several
    results; and for an exhibit that the config lacks the entries for.
    """
    outputs = paths(rules, config) if ASKED else {}
    alone = [rule.name for rule in rules if not rule.has_wildcards()]
    known = [path for made in outputs.values() for path in made]
    for target in ASKED:
        if Path(target).stem in (*TABLES, *FIGURES):
            exhibit(config, Path(target).stem)
        if Path(target).suffix in YAML:
            raise InputError(
                f"{target} is nothing that this config makes; config files follow --configfile"
            )
        if target in known or target in alone or os.path.isfile(target):
            continue
        several = outputs.get(target) or [path for path in known if path.startswith(f"{target}/")]
        if several:
            what = "rule that makes" if target in outputs else "folder of"
            raise InputError(
                f"{target} is a {what} several results; allowed: one of them, such as {several[0]}"
            )
        if target in outputs or target.startswith(f"{os.path.normpath(config.results)}/"):
            what, remedy = "nothing that this config makes", "./run -n lists what it makes"
        elif "/" not in target:
            what, remedy = (
                "neither a command nor a rule nor a file",
                "./run --help lists what there is",
            )
        else:
            continue
        near = difflib.get_close_matches(target, [*known, *alone, *COMMANDS, "test"], n=1)
        raise InputError(f"{target} is {what}; " + (f"did you mean {near[0]}?" if near else remedy))
