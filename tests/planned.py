"""The jobs of a config as Snakemake plans them, in this process: what tests of the workflow's graph
look at.
"""

from collections.abc import Iterable
from contextlib import chdir
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

from snakemake.api import SnakemakeApi
from snakemake.exceptions import RuleException, WorkflowError
from snakemake.settings.enums import RerunTrigger
from snakemake.settings.types import (
    ConfigSettings,
    DAGSettings,
    OutputSettings,
    Quietness,
    ResourceSettings,
)

from cdmae.errors import InputError
from workflow import fingerprint

ROOT = Path(__file__).resolve().parent.parent


class Job(NamedTuple):
    """A job of a dry run: its rule, its wildcards joined by ``/``, and its files."""

    rule: str
    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


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
    plain = mock.patch("workflow.fingerprint.executed", fingerprint.executed.__wrapped__)
    with chdir(ROOT), mock.patch("workflow.fingerprint._module", one), plain:
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
    """List the jobs of a config."""
    return [job.record for job in plan(values, *targets, **machine).values()]


def one(module: str) -> tuple[str, list[str]]:
    """Return a hash for a module, which imports nothing."""
    return "1", []


def changed(before: dict, after: dict) -> set[tuple[str, str]]:
    """Name the jobs that another config runs again for their own parameters; the report shows every
    setting.
    """
    names = before.keys() & after.keys()
    return {name for name in names if before[name].reasons != after[name].reasons} - {
        ("report", "")
    }


def dry_run(
    configfiles: Iterable[str] = (),
    targets: Iterable[str] = (),
    *,
    cores: int = 1,
    gpus: int = 0,
    values: dict[str, Any] | None = None,
) -> dict[Job, Any]:
    """List the jobs of a whole run, or of some targets, each after the jobs that make its inputs.

    configfiles: overlays on the default; values: the values of ``--config``. Raises `InputError` if
    the Snakefile or Snakemake refuses the config or the targets.
    """
    files = [Path(file) for file in configfiles]
    with SnakemakeApi(OutputSettings(quiet={Quietness.ALL})) as api:
        try:
            planned = api.workflow(
                ResourceSettings(cores=cores, resources={"gpu": gpus}),
                ConfigSettings(config=values or {}, configfiles=files),
                snakefile=ROOT / "Snakefile",
            )
            # as in the profiles
            triggers = RerunTrigger.all() - {RerunTrigger.SOFTWARE_ENV, RerunTrigger.CODE}
            planned.dag(DAGSettings(targets=set(targets), rerun_triggers=triggers))
            # the API only prints the planned jobs and does not return them
            workflow = planned._workflow
            workflow._prepare_dag(
                forceall=False, ignore_incomplete=True, lock_warn_only=True, nolock=True
            )
            workflow._build_dag()
        except SystemExit as refused:
            raise refused.__cause__ from None
        except (RuleException, WorkflowError) as error:
            raise InputError(str(error)) from None
        graph = workflow.dag
        rules = [rule.name for rule in workflow.rules]
        levels = (
            sorted(level, key=lambda job: (rules.index(job.rule.name), *job.wildcards))
            for level in graph.toposorted()
        )
        ordered = [job for level in levels for job in level if job.output]
        for job in ordered:
            assert job.resources, "evaluated now, before the globals are those of another config"
        return {
            Job(
                job.rule.name,
                "/".join(job.wildcards),
                tuple(dict.fromkeys(job.input)),
                tuple(job.output),
            ): job
            for job in ordered
        }
