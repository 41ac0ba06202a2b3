"""Put parameters into the form that Snakemake records, and name the values that changed.

A rule has one parameter for the settings that affect its result and one for its code, both plain
mappings. Snakemake records the `repr` of each, runs a job again if one differs, and prints the old
and the new text. This module compares them key by key.
"""

from __future__ import annotations

import ast
import json
import logging
import shlex
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from snakemake.logging import get_event
from snakemake_interface_logger_plugins.common import LogEvent

from cdmae.fields import show
from workflow import engine
from workflow.fingerprint import FOLLOWED

if TYPE_CHECKING:
    from snakemake.jobs import Job
    from snakemake.persistence import ParamsChange

SAID = "Params have changed since last execution: "  # printed by Snakemake before both texts
SHOWN = 5  # the most changes listed per job, and jobs per change


class Json(dict):
    """A mapping that becomes JSON in a command line and a plain mapping in Snakemake's records."""

    def __str__(self) -> str:
        return json.dumps(self)


class Options(Json):
    """A mapping that becomes options in a command line, and a plain one in Snakemake's records."""

    def __init__(self, *mappings: Mapping[str, Any], **values: Any) -> None:
        """Store options by name; underscores in names become dashes."""
        super().__init__(plain(dict(*mappings, **values)))

    def __str__(self) -> str:
        words: list[str] = []
        for key, value in self.items():
            values = value if isinstance(value, list) else [value]
            words += [f"--{key.replace('_', '-')}", *(shlex.quote(str(each)) for each in values)]
        return " ".join(words)


def plain(values: Mapping[str, Any]) -> Json:
    """Return settings in the form in which they are compared and recorded.

    Keys are sorted, tuples become lists, and mappings become `Json`.
    """
    return json.loads(json.dumps(values, sort_keys=True), object_hook=Json)


class Reasons:
    """A log filter that names changed settings and modules in the reasons for Snakemake's jobs."""

    def __init__(self, job_of: Callable[[int], Job]) -> None:
        """Store a function that looks up a job by its number."""
        self.job_of = job_of

    def __call__(self, record: logging.LogRecord) -> bool:
        """Change the reason in a log record, and let the record pass."""
        if get_event(record) == LogEvent.JOB_INFO:
            change = engine.changed_params(self.job_of(record.jobid))
            record.reason = record.reason.replace(
                f"{SAID}{change}", f"{SAID}{enumerated(named(change))}"
            )
        return True


def summary(jobs: Iterable[Job]) -> list[str]:
    """List the changes that cause jobs to run again, each with the jobs that it affects."""
    concerned: dict[str, list[str]] = {}
    for job in jobs:
        for words in named(engine.changed_params(job)):
            concerned.setdefault(words, []).append(" ".join([job.rule.name, *job.wildcards]))
    return [f"{words}: {enumerated(names)}" for words, names in concerned.items()]


def enumerated(words: list[str]) -> str:
    """List a few items, and count the items left out."""
    more = len(words) - SHOWN
    return "; ".join([*words[:SHOWN], f"{more} more"] if more > 0 else words)


def named(change: ParamsChange) -> list[str]:
    """Name the settings and modules that differ between two sets of recorded parameters."""
    try:
        before = flat(change.only_old)
        now = flat(change.only_new)
    except (SyntaxError, TypeError, ValueError):
        return ["its parameters were recorded by another version of the workflow"]
    keys = [key for key in before | now if before.get(key) != now.get(key)]
    return [in_words(key, before, now) for key in keys]


def in_words(key: str, before: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """Describe the change of one key; for a module, only its name."""
    if key.endswith(".py") or key.split(".")[0] in FOLLOWED:
        return f"code of {key}"
    if key not in before:
        return f"{key} is {show(now[key])} and was not set"
    if key not in now:
        return f"{key} was {show(before[key])} and is not set"
    return f"{key} was {show(before[key])} and is {show(now[key])}"


def flat(recorded: Iterable[str]) -> dict[str, Any]:
    """Read recorded parameters as one mapping; dots join the keys of nested mappings."""
    values: dict[str, Any] = {}
    for text in recorded:
        values |= _flat(dict(ast.literal_eval(text)))
    return values


def _flat(values: Mapping[str, Any], above: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in values.items():
        path = f"{above}{key}"
        found |= _flat(value, f"{path}.") if isinstance(value, dict) and value else {path: value}
    return found
