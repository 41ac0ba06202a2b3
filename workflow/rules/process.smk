# How a run begins, alone on its results, and what it says last.

import atexit

from snakemake.common import NOTHING_TO_BE_DONE_MSG
from snakemake.logging import logger

from workflow import recorded, surroundings
from workflow.failures import Failures


def job_of(number):
    """Find the job of a number in Snakemake's log."""
    return next(job for job in workflow.dag.jobs if job.jobid == number)


locks = []
failures = Failures(job_of)
logger.addFilter(failures)
logger.addFilter(recorded.Reasons(job_of))


onstart:
    with in_a_sentence():
        locks.append(surroundings.lock(results))


def say_last(words):
    """Say something once Snakemake has said all that it says: what was wrong stands last, where one looks first."""
    atexit.register(print, words, file=sys.stderr)


onerror:
    for failure in reversed(list(failures)):
        say_last(failure)


def say_where():
    """Name what there is to look at."""
    page = f"{results}/report/index.html"
    exhibits = [name for name in (*TABLES, *FIGURES) if name in workflow.dag_settings.targets]
    for name in exhibits:
        say_last(f"{name}: {results}/tables/{name}.{'md' if name in TABLES else 'svg'}")
    if not exhibits and Path(page).exists():
        say_last(f"report: {page}")


onsuccess:
    say_where()


def nothing_to_do(record):
    """A filter of log records that drops none: where there is nothing to do, Snakemake calls no hook but says so."""
    if record.msg == NOTHING_TO_BE_DONE_MSG and not workflow.dryrun:
        say_where()
    return True


logger.addFilter(nothing_to_do)
