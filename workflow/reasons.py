"""Name the settings, modules and files that are the reason to run a job again.

Snakemake prints the old and the new text of every parameter; a job's settings have dozens of keys.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from cdmae.fields import show
from workflow.fingerprint import CONTENT

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
    words = []
    for key in old | new:
        was = f"was {show(old[key])}" if key in old else "was not set"
        is_now = f"is {show(new[key])}" if key in new else "is not set"
        if key.startswith(CONTENT):
            changed = key
        elif re.match(r"(cdmae|workflow)[./]|config/", key):
            changed = f"code of {key}"
        else:
            changed = f"{key.removeprefix('settings.')} {was} and {is_now}"
        if key not in old or key not in new or old[key] != new[key]:
            words.append(changed)
    more = [f"{len(words) - SHOWN} more"] if len(words) > SHOWN else []
    return "; ".join(words[:SHOWN] + more)


def _read(recorded: Iterable[str]) -> dict[str, Any]:
    """Read recorded parameters as one mapping; dots join the keys of nested mappings."""
    values: dict[str, Any] = {}
    for text in recorded:
        numbers = re.sub(
            r"(?<=[:,] |.[\[(])-?(inf|nan)\b", r"'\1'", text
        )  # which `repr` writes as names
        values |= _flat(ast.literal_eval(numbers))
    return values


def _flat(values: Mapping[str, Any], above: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in dict(values).items():
        path = f"{above}{key}"
        found |= _flat(value, f"{path}.") if isinstance(value, dict) and value else {path: value}
    return found
