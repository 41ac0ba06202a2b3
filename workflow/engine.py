"""Read undocumented attributes of Snakemake.

`tests/rules/test_engine.py` names the version of Snakemake that has these attributes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cdmae.errors import InputError

if TYPE_CHECKING:
    from snakemake.jobs import Job
    from snakemake.persistence import ParamsChange
    from snakemake.workflow import Workflow


MOST_SHARDS = 1200  # the graph has a dependency for every pair of shards: minutes and gigabytes


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


def shards(workflow: Workflow) -> int:
    """Return N of ``--set-scatter shards=N``, or 1.

    Raises `InputError` for a number outside 1 to `MOST_SHARDS`, and for an unknown name, unless the
    name may belong to the workflow that imports this one.
    """
    given = workflow.resource_settings.overwrite_scatter
    for name, number in given.items():
        if name != "shards" and not imported(workflow):
            raise InputError(f"--set-scatter is {name}={number}; allowed: shards={number}")
    number = given.get("shards", 1)
    if not 1 <= number <= MOST_SHARDS:
        raise InputError(f"--set-scatter is shards={number}; allowed: 1 to {MOST_SHARDS:,} shards")
    return number


def changed_params(job: Job) -> ParamsChange:
    """Return the recorded and the current parameters of a job that differ."""
    return job.dag.reason(job).params_changed
