"""Price jobs by the table ``prices.csv``, which lists the cost per unit of a rule's work.

rule     one or several, separated by spaces; ``*``: every rule without rows of its own
unit     the unit that `cdmae.plan.work` counts; a ``job`` counts once
seconds  of one core; the seconds of a ``job`` are its startup, which more cores do not shorten
disk     bytes that the job leaves
memory   bytes of the process
device bytes on each GPU, or bytes of the process without GPUs
source   origin of the price

Prices of the same rule and unit in several rows add up. Networks are not in the table: their price
is their number of operations (`cdmae.plan.flops`).
"""

from __future__ import annotations

import csv
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from cdmae.plan import jobs

if TYPE_CHECKING:
    from cdmae.plan.machine import Machine
    from cdmae.plan.planned import Job, Planned

TABLE = Path(__file__).with_name("prices.csv")
PRICED = ("seconds", "disk", "memory", "device")
ON_GPU = 2.5e9  # bytes of a process's memory that CUDA and its libraries use, for each GPU
Units = dict[str, dict[str, float]]


class Price(NamedTuple):
    """The cost of a job: operations, startup, seconds of one core, bytes of disk and memory.

    float32: whether a GPU computes the operations in float32.
    """

    flops: float
    start: float
    seconds: float
    disk: float
    memory: float
    float32: bool = False

    def seconds_on(self, machine: Machine, cores: int, gpus: int) -> float:
        """Return the seconds that the job takes on a number of cores and GPUs of a machine."""
        operations = self.flops / machine.rate(cores, gpus, self.float32)
        return self.start + self.seconds / cores + operations


def price(planned: Planned, job: Job) -> Price:
    """Price a job by the table; the memory is host memory and excludes GPU memory."""
    counted = jobs.count(planned, job)
    table = of(job.rule)
    units = {"job": 1.0, **counted.units}
    if "core" in table:
        units["core"] = job.threads
    seconds, disk, memory, device = (
        sum(number * table[unit][column] for unit, number in units.items()) for column in PRICED
    )
    host = job.gpus * (memory + ON_GPU) if job.gpus else memory + device
    start = table["job"]["seconds"]
    float32 = bool(counted.flops) and jobs.in_float32(planned, job)
    return Price(counted.flops, start, seconds - start, disk, host, float32)


def of(rule: str) -> Units:
    """Return the prices of a rule: for each unit, its price in each column."""
    table = _table()
    return table.get(rule, table["*"])


@cache
def _table() -> dict[str, Units]:
    table: dict[str, Units] = {}
    with open(TABLE, newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            for rule in row["rule"].split():
                units = table.setdefault(rule, {})
                prices = units.setdefault(row["unit"], dict.fromkeys(PRICED, 0.0))
                for name in PRICED:
                    prices[name] += float(row[name] or 0)
    return table
