"""List the jobs of a run as Snakemake itself plans them, in this process."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cdmae.errors import InputError
from cdmae.plan.planned import Job

if TYPE_CHECKING:
    from snakemake import jobs

ROOT = Path(__file__).resolve().parent.parent


def dry_run(
    configfiles: Iterable[str] = (),
    targets: Iterable[str] = (),
    *,
    cores: int = 1,
    gpus: int = 0,
    values: dict[str, Any] | None = None,
) -> dict[Job, jobs.Job]:
    """List the jobs of a whole run, or of some targets, each after the jobs that make its inputs.

    configfiles: overlays on the default; values: the values of ``--config``. Raises `InputError` if
    the Snakefile or Snakemake refuses the config or the targets.
    """
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
        return {
            Job(
                job.rule.name,
                "/".join(job.wildcards),
                tuple(dict.fromkeys(job.input)),
                tuple(job.output),
                job.threads,
                job.resources.get("gpu", 0),
                graph.needrun(job),
            ): job
            for job in ordered
        }
