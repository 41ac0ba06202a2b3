# The beginning of a run, which locks its results, and its last lines.

from snakemake.common import NOTHING_TO_BE_DONE_MSG
from snakemake.logging import logger

from workflow import closing, recorded, surroundings
from workflow.failures import Failures


def job_of(number):
    """Look up a job by its number in Snakemake's log."""
    return next(job for job in workflow.dag.jobs if job.jobid == number)


def print_results():
    """Print the location of the results at the end."""
    closing.print_results(results, workflow.dag_settings.targets)


def nothing_to_do(record):
    """Print the results when Snakemake logs that there is nothing to do; let all records pass.

    Snakemake calls no hook in this case.
    """
    if record.msg == NOTHING_TO_BE_DONE_MSG and not workflow.dryrun:
        print_results()
    return True


locks = []
failures = Failures(job_of)
for log_filter in (failures, recorded.Reasons(job_of), nothing_to_do, closing.keeps):
    logger.addFilter(log_filter)


onstart:
    with in_a_sentence():
        locks.append(surroundings.lock(results))


onsuccess:
    print_results()


onerror:
    for failure in reversed(list(failures)):
        closing.print_last(str(failure))
