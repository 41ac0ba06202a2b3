"""Resources that jobs request: GPUs, cores, megabytes and minutes, from the plan's estimates.

A profile can overrule every request (``--set-resources``, ``--set-threads``).
"""

from __future__ import annotations

import math

from cdmae.errors import InputError
from cdmae.plan import prices
from cdmae.plan.flops import Network
from cdmae.plan.machine import Machine
from cdmae.plan.planned import Job, Planned

ON_SEVERAL = ("pretrain", "train_retriever", "train_reranker")  # rules that torchrun can start
ON_ONE = (
    "expansions", "teacher", "vectors", "vectors_external", "rerank",
    "search", "search_external", "search_feedback", "mine", "mine_external", "mine_feedback",
)  # fmt: skip
RESUMING = (*ON_SEVERAL, "expansions")  # rules that save their state
NODE = 8  # GPUs of a node, as in the paper (section 4.3)
NARROW = 256  # layer width below which neither a GPU nor a second core speeds up a job
FEW_HOURS = 2.0  # on one GPU; a longer training requests all GPUs of a node
# The reference GPU of all requests. A V100 takes 2.5 times as long, which MARGIN_OF_TIME covers; it
# does not cover a T4 (4.8 times).
REFERENCE = Machine(cores=1, gpus=1, gpu="a100")

MARGIN_OF_MEMORY = 1.25
MARGIN_OF_TIME = 3.0
LEAST_MEGABYTES = 4000
LEAST_MINUTES = 30  # importing the libraries takes minutes on a busy shared file system
# minimum minutes of a rule that may download: the plan does not know the network's speed
DOWNLOAD = 240
DAY = 1440  # maximum minutes of a rule that resumes: the limit of many queues
# requests of jobs on a collection that does not exist yet and whose source does not know its size
UNKNOWN_MEGABYTES = 64_000
UNKNOWN_MINUTES = DAY


def network(planned: Planned, job: Job) -> Network:
    """Return the network that a job trains or applies."""
    name = job.name.split("/")[0]
    if job.rule in ("pretrain", "untrained"):
        return planned.initial_network(planned.config.encoders[name].start)
    if job.rule == "expansions":
        return planned.writer(name)
    if job.rule == "teacher":
        name = planned.config.systems[name].teacher
    return planned.network(name)


def cores(planned: Planned, job: Job, most: int) -> int:
    """Return the number of cores for a job: `most`, or 1 if its network is narrow."""
    return most if network(planned, job).width >= NARROW else 1


def gpus(planned: Planned, job: Job) -> int:
    """Return the number of GPUs that a job requests.

    Narrow networks request none. A training requests a whole node if it would keep one GPU busy for
    hours, or if the size of its collection is unknown. No job requests more GPUs than a step has
    texts.
    """
    if job.rule not in ON_SEVERAL + ON_ONE or network(planned, job).width < NARROW:
        return 0
    if job.rule in ON_ONE:
        return 1
    try:
        price = prices.price(planned, job)
    except InputError:
        hours = math.inf
    else:
        hours = price.flops / REFERENCE.rate(1, 1, price.float32) / 3600
    return min(NODE, _batch(planned, job)) if hours > FEW_HOURS else 1


def _batch(planned: Planned, job: Job) -> int:
    """Return the number of texts per training step, which the processes share."""
    if job.rule == "pretrain":
        return planned.config.encoders[job.name].batch
    return planned.config.stages[planned.config.systems[job.name].stage].queries


def megabytes(planned: Planned, job: Job, attempt: int) -> int:
    """Return the memory that a job requests; further attempts request more."""
    try:
        memory = prices.price(planned, job).memory
    except InputError:
        return UNKNOWN_MEGABYTES * attempt
    return max(LEAST_MEGABYTES, round(MARGIN_OF_MEMORY * memory / 1e6)) * attempt


def minutes(planned: Planned, job: Job, attempt: int) -> int:
    """Return the time limit that a job requests.

    A rule that resumes requests at most a day per attempt. Other rules begin again at each attempt,
    and further attempts request more time.
    """
    least = DOWNLOAD if job.rule in ("collection", "expansions") else LEAST_MINUTES
    try:
        seconds = prices.price(planned, job).seconds_on(REFERENCE, job.threads, job.gpus)
    except InputError:
        requested = UNKNOWN_MINUTES
    else:
        requested = max(least, math.ceil(MARGIN_OF_TIME * seconds / 60))
    if job.rule in RESUMING:
        return min(DAY, requested)
    return requested * attempt
