"""Read undocumented attributes of Snakemake.

`tests/rules/test_engine.py` names the version of Snakemake that has these attributes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from snakemake.jobs import Job
    from snakemake.persistence import ParamsChange
    from snakemake.workflow import Workflow


def imported(workflow: Workflow) -> bool:
    """Return whether another workflow imports this one as a module."""
    return not workflow.modifier.is_main_snakefile()


def path_of(workflow: Workflow, pattern: str) -> str:
    """Return the path of a pattern such as ``<results>``, with the prefix of a module."""
    return workflow.pathvars.apply(workflow.modifier.path_modifier.replace_prefix(pattern))


def deployment(workflow: Workflow) -> set[str]:
    """Return the methods of ``--sdm``, such as ``CONDA`` and ``APPTAINER``."""
    return {method.name for method in workflow.deployment_settings.deployment_method}


def granted_gpus(workflow: Workflow) -> int:
    """Return the number of GPUs that the profile grants to all jobs together."""
    return workflow.global_resources.get("gpu").value or 0


def changed_params(job: Job) -> ParamsChange:
    """Return the recorded and the current parameters of a job that differ."""
    return job.dag.reason(job).params_changed
