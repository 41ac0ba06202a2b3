"""The jobs of a config as Snakemake plans them, in this process."""

from contextlib import chdir
from functools import cache
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
# as in the profiles
TRIGGERS = RerunTrigger.all() - {RerunTrigger.SOFTWARE_ENV, RerunTrigger.CODE}
# of files whose fingerprint is 1
EXECUTED = cache(fingerprint.executed.__wrapped__)


class Planned(NamedTuple):
    """A job: inputs by name, outputs, parameters by name, and those that are reasons to run again.

    detail: Snakemake's job.
    """

    inputs: dict[str, list[str]]
    outputs: list[str]
    params: dict[str, Any]
    reasons: set[str]
    detail: Any

    @property
    def reads(self) -> list[str]:
        """All inputs."""
        return list(map(str, self.detail.input))


def plan(values: dict[str, Any], *targets: str, gpus: int = 0) -> dict[tuple[str, str], Planned]:
    """Plan a whole config, or some targets, by rule and wildcards, joined by ``/``.

    A job comes after the jobs that make its inputs. All code has the fingerprint 1. Raises
    `InputError` if the Snakefile or Snakemake refuses the config or the targets.
    """
    plain = mock.patch("workflow.fingerprint.executed", EXECUTED)
    one = mock.patch("workflow.fingerprint._module", lambda _: ("1", []))
    with chdir(ROOT), plain, one, SnakemakeApi(OutputSettings(quiet={Quietness.ALL})) as api:
        try:
            graph = _graph(api, values, targets, gpus)
        except SystemExit as refused:
            raise refused.__cause__ from None
        except (RuleException, WorkflowError) as error:
            raise InputError(str(error)) from None
        rules = [rule.name for rule in graph.workflow.rules]
        jobs = {}
        for level in graph.toposorted():
            ordered = sorted(level, key=lambda job: (rules.index(job.rule.name), *job.wildcards))
            for job in ordered:
                if job.output:
                    jobs[job.rule.name, "/".join(job.wildcards)] = _planned(job)
    return jobs


def _graph(api: SnakemakeApi, values: dict[str, Any], targets: tuple[str, ...], gpus: int) -> Any:
    planned = api.workflow(
        ResourceSettings(cores=64, resources={"gpu": gpus}),
        ConfigSettings(config={**values, "standalone": True}),
        snakefile=ROOT / "Snakefile",
    )
    planned.dag(DAGSettings(targets=set(targets), rerun_triggers=TRIGGERS))
    # the API only prints the planned jobs and does not return them
    workflow = planned._workflow
    workflow._prepare_dag(forceall=False, ignore_incomplete=True, lock_warn_only=True, nolock=True)
    workflow._build_dag()
    return workflow.dag


def _planned(job: Any) -> Planned:
    assert job.resources, "evaluated now, before the globals are those of another config"
    inputs = {
        name: [paths] if isinstance(paths, str) else list(paths)
        for name, paths in job.input.items()
    }
    reasons = {str(reason) for reason in job.non_derived_params}
    return Planned(inputs, list(job.output), dict(job.params.items()), reasons, job)


def changed(before: dict, after: dict) -> set[tuple[str, str]]:
    """Name the jobs that another config runs again for their own parameters, but for the report."""
    names = before.keys() & after.keys() - {("report", "")}
    return {name for name in names if before[name].reasons != after[name].reasons}
