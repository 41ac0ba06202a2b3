"""The plan of a run as text: a line for every rule, and what it comes to."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tabulate import tabulate

from cdmae import formats
from cdmae.plan import flops
from cdmae.plan.machine import Machine
from cdmae.plan.work import Job, Planned

SHOWN = 12  # links of the longest chain


@dataclass(frozen=True)
class Task:
    """A job on a machine: its seconds, the bytes that it holds and leaves.

    after: the tasks that it waits for, by their places in the list.
    """

    job: Job
    seconds: float
    memory: float = 0.0
    disk: float = 0.0
    after: tuple[int, ...] = ()

    @property
    def name(self) -> str:
        """The rule with the job's name."""
        return f"{self.job.rule} {self.job.name}".rstrip()


def tasks_of(
    planned: Planned, jobs: Sequence[Job], machine: Machine, *, everything: bool = False
) -> list[Task]:
    """Price the jobs that are due, or all jobs; each follows the jobs that make its inputs."""
    tasks: list[Task] = []
    makes: dict[str, int] = {}
    for job in jobs:
        if not (everything or job.due):
            continue
        given = job._replace(
            threads=min(machine.cores, job.threads), gpus=min(machine.gpus, job.gpus)
        )
        price = planned.price(given)
        seconds = (
            price.start
            + price.seconds / given.threads
            + price.flops / machine.rate(given.threads, given.gpus)
        )
        after = tuple(dict.fromkeys(makes[path] for path in job.inputs if path in makes))
        makes |= dict.fromkeys(job.outputs, len(tasks))
        tasks.append(Task(given, seconds, price.memory, price.disk, after))
    return tasks


def longest_chain(tasks: Sequence[Task]) -> list[Task]:
    """Return the tasks of which each waits for the one before, and that together take longest."""
    ends: list[float] = []
    before: list[int | None] = []
    for task in tasks:
        last = max(task.after, key=ends.__getitem__, default=None)
        before.append(last)
        ends.append(task.seconds + (0.0 if last is None else ends[last]))
    chain: list[Task] = []
    place = max(range(len(tasks)), key=ends.__getitem__, default=None)
    while place is not None:
        chain.insert(0, tasks[place])
        place = before[place]
    return chain


def wall_time(tasks: Sequence[Task], machine: Machine) -> float:
    """Return the least seconds in which a machine can do all tasks.

    That is the longest chain, or the time that all tasks take its cores or its GPUs if no core or
    GPU ever waits.
    """
    chain = sum(task.seconds for task in longest_chain(tasks))
    cores = sum(task.seconds * task.job.threads for task in tasks) / machine.cores
    return max(chain, cores, gpu_hours(tasks) * 3600 / max(1, machine.gpus))


def gpu_hours(tasks: Sequence[Task]) -> float:
    """Sum the hours of all GPUs."""
    return sum(task.seconds * task.job.gpus for task in tasks) / 3600


# --- its text -------------------------------------------------------------------------------------


def text(
    planned: Planned, jobs: Sequence[Job], machine: Machine, *, everything: bool = False
) -> str:
    """Write the whole plan, ready to be printed."""
    tasks = tasks_of(planned, jobs, machine, everything=everything)
    if not tasks:
        return f"all {len(jobs)} jobs are done and up to date"
    chain = longest_chain(tasks)
    shown = sorted(chain, key=lambda task: -task.seconds)[:SHOWN]
    hours = f", {gpu_hours(tasks):.1f} GPU-hours" if machine.gpus else ""
    devices = f"{machine.cores} cores" + (
        f" and {machine.gpus} x {machine.gpu}" if machine.gpus else ", no GPU"
    )
    largest = max(tasks, key=lambda task: task.memory)
    memory = f"up to {_bytes(largest.memory)} ({largest.name})"
    if machine.memory is not None:
        memory = _compared(largest.memory, memory, machine.memory, "here")
    return "\n".join(
        [
            f"{len(tasks)} of {len(jobs)} jobs on {devices}:",
            "",
            _table(tasks),
            "",
            f"wall time  {formats.duration(wall_time(tasks, machine))} or more{hours}",
            *_room(planned, tasks),
            f"memory     {memory}",
            f"longest chain of jobs, {formats.duration(sum(task.seconds for task in chain))}:",
            *(f"  {task.name} {formats.duration(task.seconds)}" for task in chain if task in shown),
            *_basis(planned),
        ]
    )


def _table(tasks: list[Task]) -> str:
    rows = []
    for rule in dict.fromkeys(task.job.rule for task in tasks):
        group = [task for task in tasks if task.job.rule == rule]
        hours, disk = gpu_hours(group), sum(task.disk for task in group)
        time = formats.duration(sum(task.seconds for task in group))
        rows.append(
            (rule, len(group), time, f"{hours:.1f}" if hours else "", _bytes(disk) if disk else "")
        )
    heads, align = ("rule", "jobs", "time", "GPU-hours", "disk"), ("left", *["right"] * 4)
    return tabulate(rows, heads, "plain", colalign=align, disable_numparse=True)


def _room(planned: Planned, tasks: list[Task]) -> list[str]:
    """Report the disk space of results and sources, and whether there is enough room."""
    results, left = _existing(planned.config.results), sum(task.disk for task in tasks)
    free = shutil.disk_usage(results).free
    lines = [
        "disk       "
        + _compared(left, f"{_bytes(left)} in {planned.config.results}", free, "free there")
    ]
    fetched = [planned.downloads(task.job.name) for task in tasks if task.job.rule == "collection"]
    if files := {path: size for sizes in fetched for path, size in sizes.items()}:
        folder, size = _existing(os.path.commonpath(files)), sum(files.values())
        beside = left if folder.stat().st_dev == results.stat().st_dev else 0.0
        both = f", {_bytes(size + beside)} with the results" if beside else ""
        free, what = shutil.disk_usage(folder).free, f"about {_bytes(size)} in {folder}{both}"
        lines.append("downloads  " + _compared(size + beside, what, free, "free there"))
    return lines


def _compared(needed: float, said: str, there: float, where: str) -> str:
    short = f": NOT ENOUGH, {_bytes(needed - there)} are missing" if needed > there else ""
    return f"{said}; {_bytes(there)} are {where}{short}"


def _basis(planned: Planned) -> list[str]:
    """Return the basis of the estimate, a line per source."""
    sizes = planned.sizes.values()
    counted = sum(size.measured for size in sizes)
    models = [start.checkpoint for start in planned.config.starts.values()]
    models += [system.model for system in planned.config.systems.values()]
    absent = [model for model in dict.fromkeys(models) if model and not flops.settings_of(model)]
    return [
        *(
            f"networks: {model} is not here yet, and is counted as a BERT base "
            "of 110 million weights"
            for model in absent
        ),
        f"sizes: {counted} of {len(sizes)} collections counted, the others as their sources tell",
        "times: by the prices in cdmae/plan/prices.csv; downloads left out",
    ]


def _bytes(number: float) -> str:
    return formats.memory(number / 2**20)


def _existing(path: str) -> Path:
    """Return the folder, or the nearest one above it that is there."""
    folder = Path(path).absolute()
    return next(parent for parent in (folder, *folder.parents) if parent.exists())
