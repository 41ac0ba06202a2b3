"""Name the settings, modules and files that are the reason to run a job again.

Snakemake prints the old and the new text of every parameter; a job's settings have dozens of keys.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from cdmae.fields import show
from workflow.contents import PREFIX

if TYPE_CHECKING:
    from snakemake.jobs import Reason

SHOWN = 5  # changes in the reason for one job
MISSING = "output files have to be generated"  # Snakemake's words
SHORT = {MISSING: "missing output", "input files updated by another job": "jobs before them"}


def of_job(reason: Reason) -> str:
    """Return what is missing or has changed for a job, or else Snakemake's other reasons."""
    names = list(reason.get_names())
    if MISSING in names:
        return SHORT[MISSING]
    if reason.params_changed:
        return changes(reason.params_changed.only_old, reason.params_changed.only_new)
    return ", ".join(SHORT.get(name, name) for name in names)


def changes(before: Iterable[str], now: Iterable[str]) -> str:
    """Name the first settings and modules that differ between two sets of recorded parameters."""
    try:
        old, new = _read(before), _read(now)
    except (SyntaxError, TypeError, ValueError):
        return "its parameters were recorded by another version of the workflow"
    # as text, because nan differs from itself
    keys = [key for key in old | new if repr(old.get(key)) != repr(new.get(key))]
    words = [_in_words(key, old, new) for key in keys[:SHOWN]]
    more = [f"{len(keys) - SHOWN} more"] if len(keys) > SHOWN else []
    return "; ".join(words + more)


def _in_words(key: str, before: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """Describe the change of one key; for a module or a file, only its name."""
    if key.startswith(PREFIX):
        return key
    if key.endswith(".py") or re.match(r"(cdmae|benchmarks|config)[./]", key):
        return f"code of {key}"
    name = key.removeprefix("settings.")
    if key not in before:
        return f"{name} is {show(now[key])} and was not set"
    if key not in now:
        return f"{name} was {show(before[key])} and is not set"
    return f"{name} was {show(before[key])} and is {show(now[key])}"


def _read(recorded: Iterable[str]) -> dict[str, Any]:
    """Read recorded parameters as one mapping; dots join the keys of nested mappings."""
    values: dict[str, Any] = {}
    for text in recorded:
        tree = _Numbers().visit(ast.parse(text, mode="eval"))
        values |= _flat(dict(ast.literal_eval(tree)))
    return values


class _Numbers(ast.NodeTransformer):
    """Read ``inf`` and ``nan``, which `repr` writes as names, as numbers."""

    def visit_Name(self, node: ast.Name) -> ast.AST:  # noqa: N802 (the name that ast calls)
        return ast.Constant(float(node.id)) if node.id in ("inf", "nan") else node


def _flat(values: Mapping[str, Any], above: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in values.items():
        path = f"{above}{key}"
        found |= _flat(value, f"{path}.") if isinstance(value, dict) and value else {path: value}
    return found
