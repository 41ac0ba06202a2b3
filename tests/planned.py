"""The jobs of a config as Snakemake plans them, in this process: what tests of the workflow's graph
look at.
"""

from collections.abc import Sequence
from contextlib import chdir
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

from cdmae.config.load import load
from cdmae.plan.planned import Job, priced
from workflow.dry_run import dry_run

ROOT = Path(__file__).resolve().parent.parent


class Planned(NamedTuple):
    """A job: its inputs by name, its outputs, its parameters by name, and those that are reasons to
    run again.
    """

    inputs: dict[str, list[str]]
    outputs: list[str]
    params: dict[str, Any]
    reasons: set[str]
    record: Job
    detail: Any


def plan(
    values: dict[str, Any], *targets: str, cores: int = 64, gpus: int = 0
) -> dict[tuple[str, str], Planned]:
    """Plan a whole config, or some targets of it, by rule and name; all code has the fingerprint 1."""
    with chdir(ROOT), mock.patch("workflow.fingerprint.fingerprint", ones):
        known = dry_run(
            targets=targets,
            values={**values, "standalone": True},
            cores=cores,
            gpus=gpus,
        )
    return {
        (job.rule, job.name): Planned(
            {
                name: [paths] if isinstance(paths, str) else list(paths)
                for name, paths in detail.input.items()
            },
            list(job.outputs),
            dict(detail.params.items()),
            {str(reason) for reason in detail.non_derived_params},
            job,
            detail,
        )
        for job, detail in known.items()
    }


def records(values: dict[str, Any], *targets: str, **machine: int) -> list[Job]:
    """List the jobs as `./run plan` reads them."""
    config = load(values)
    return [priced(config, job.record) for job in plan(values, *targets, **machine).values()]


def ones(script: str, modules: Sequence[str] = ()) -> dict[str, str]:
    """Return the fingerprint 1 for every module."""
    return dict.fromkeys([script, *modules], "1")


def changed(before: dict, after: dict) -> set[tuple[str, str]]:
    """Name the jobs that another config runs again for their own parameters; the report shows every
    setting.
    """
    names = before.keys() & after.keys()
    return {name for name in names if before[name].reasons != after[name].reasons} - {
        ("report", "")
    }
