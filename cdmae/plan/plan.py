"""The plan of a run as text: a line for every rule, and what it comes to.

The jobs are put on the machine as far as its cores and GPUs last: when all are done, which chain of them decides it,
what they hold at once on the way.
"""

from __future__ import annotations

import heapq
import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from tabulate import tabulate

from cdmae import formats
from cdmae.plan import flops
from cdmae.plan.machine import Machine
from cdmae.plan.work import Job, Planned

SHOWN = 12  # links of the critical path


@dataclass(frozen=True)
class Task:
    """A job with its time, what it occupies, and the tasks (by their places in the list) that it waits for.

    memory: bytes while it runs; disk: bytes that it leaves.
    """

    name: str
    seconds: float
    cores: int = 1
    gpus: int = 0
    after: tuple[int, ...] = ()
    memory: float = 0.0
    disk: float = 0.0
    job: Job = Job("", "")


class Course(NamedTuple):
    """Seconds until all tasks are done, the most bytes that they take at a time, and the chain that takes longest."""

    seconds: float
    memory: float
    chain: list[int]


# --- the schedule ----------------------------------------------------------------------------------------------------


def steps(planned: Planned, jobs: Sequence[Job], machine: Machine, *, everything: bool = False) -> list[Task]:
    """Estimate the jobs that are due, or all of them; each stands behind those whose results it reads."""
    tasks: list[Task] = []
    makes: dict[str, int] = {}
    for job in map(machine.clipped, jobs):
        if not (everything or job.due):
            continue
        work = planned.work(job)
        seconds, memory = machine.estimate(job, work, planned.kinds(job))
        after = tuple(dict.fromkeys(makes[path] for path in job.inputs if path in makes))
        name = f"{job.rule} {job.name}".rstrip()
        makes |= dict.fromkeys(job.outputs, len(tasks))
        tasks.append(Task(name, seconds, job.threads, job.gpus, after, memory, work.disk, job))
    return tasks


def course(tasks: Sequence[Task], cores: int, gpus: int) -> Course:
    """Run the tasks as far as cores and GPUs last; every task stands behind those it waits for.

    Those that want several GPUs go first, which others would take one by one, then those that most time hangs on.
    """
    followers: list[list[int]] = [[] for _ in tasks]
    tails = [task.seconds for task in tasks]  # the time of the longest chain that begins with a task
    for place in range(len(tasks) - 1, -1, -1):
        for other in tasks[place].after:
            followers[other].append(place)
            tails[other] = max(tails[other], tasks[other].seconds + tails[place])
    chain: list[int] = []
    behind: Sequence[int] = range(len(tasks))
    while behind:
        chain.append(max(behind, key=tails.__getitem__))
        behind = followers[chain[-1]]
    needs = [(min(task.cores, cores), min(task.gpus, gpus)) for task in tasks]
    waits = [len(task.after) for task in tasks]
    ready = [place for place, count in enumerate(waits) if not count]
    running: list[tuple[float, int]] = []
    now = most = 0.0
    while ready or running:
        ready.sort(key=lambda place: (needs[place][1] <= 1, -tails[place]))
        for place in list(ready):
            if needs[place][0] <= cores and needs[place][1] <= gpus:
                cores, gpus = cores - needs[place][0], gpus - needs[place][1]
                heapq.heappush(running, (now + tasks[place].seconds, place))
                ready.remove(place)
        most = max(most, sum(tasks[place].memory for _, place in running))
        now, done = heapq.heappop(running)
        cores, gpus = cores + needs[done][0], gpus + needs[done][1]
        for place in followers[done]:
            waits[place] -= 1
        ready += [place for place in reversed(followers[done]) if not waits[place]]
    return Course(now, most, chain)


# --- its text --------------------------------------------------------------------------------------------------------


def text(planned: Planned, jobs: Sequence[Job], machine: Machine, *, everything: bool = False) -> str:
    """Write the whole plan, ready to be printed."""
    tasks = steps(planned, jobs, machine, everything=everything)
    if not tasks:
        return f"all {len(jobs)} jobs are done and up to date"
    ran = course(tasks, machine.cores, machine.gpus)
    hours = f", {_gpu_hours(tasks):.1f} GPU-hours" if machine.gpus else ""
    devices = f"{machine.cores} cores" + (f" and {machine.gpus} x {machine.gpu}" if machine.gpus else ", no GPU")
    largest = max(tasks, key=lambda task: task.memory)
    memory = f"up to {_bytes(largest.memory)} ({largest.name}), {_bytes(ran.memory)} of all at a time"
    longest = sorted(ran.chain, key=lambda place: -tasks[place].seconds)[:SHOWN]
    return "\n".join(
        [
            f"{len(tasks)} of {len(jobs)} jobs on {devices}:",
            "",
            _table(tasks),
            "",
            f"wall time  {formats.duration(ran.seconds)}{hours}",
            *_room(planned, tasks),
            f"memory     {memory if machine.memory is None else _compared(ran.memory, memory, machine.memory, 'here')}",
            f"longest chain of jobs, {formats.duration(sum(tasks[place].seconds for place in ran.chain))}:",
            *(f"  {tasks[p].name} {formats.duration(tasks[p].seconds)}" for p in ran.chain if p in longest),
            *_basis(planned, machine, tasks),
        ]
    )


def _table(tasks: list[Task]) -> str:
    rows = []
    for rule in dict.fromkeys(task.job.rule for task in tasks):
        group = [task for task in tasks if task.job.rule == rule]
        hours, disk = _gpu_hours(group), sum(task.disk for task in group)
        time = formats.duration(sum(task.seconds for task in group))
        rows.append((rule, len(group), time, f"{hours:.1f}" if hours else "", _bytes(disk) if disk else ""))
    heads, align = ("rule", "jobs", "time", "GPU-hours", "disk"), ("left", *["right"] * 4)
    return tabulate(rows, heads, "plain", colalign=align, disable_numparse=True)


def _gpu_hours(tasks: Sequence[Task]) -> float:
    return sum(task.seconds * task.gpus for task in tasks) / 3600


def _room(planned: Planned, tasks: list[Task]) -> list[str]:
    """Tell what the run leaves, what its sources fetch and keep besides, and plainly whether there is room."""
    results, left = _existing(planned.config.results), sum(task.disk for task in tasks)
    free = shutil.disk_usage(results).free
    lines = ["disk       " + _compared(left, f"{_bytes(left)} in {planned.config.results}", free, "free there")]
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


def _basis(planned: Planned, machine: Machine, tasks: list[Task]) -> list[str]:
    """Tell what the numbers stand on."""
    measured = sum(size.measured for size in planned.sizes.values())
    models = [start.checkpoint for start in planned.config.starts.values()]
    models += [system.model for system in planned.config.systems.values()]
    absent = [model for model in dict.fromkeys(models) if model and not flops.settings_of(model)]
    corrected = sorted({kind for task in tasks for kind in planned.kinds(task.job)} & set(machine.corrections))
    earlier = f"earlier runs for {', '.join(corrected)}; else " if corrected else ""
    return [
        *(
            f"networks: {model} is not here yet, and is counted as a BERT base of 110 million weights"
            for model in absent
        ),
        f"sizes: {measured} of {len(planned.sizes)} collections counted, the others as their sources tell",
        f"times: downloads left out; {earlier}assumed speeds",
    ]


def _bytes(number: float) -> str:
    return formats.memory(number / 2**20)


def _existing(path: str) -> Path:
    """Return the folder, or the nearest one above it that is there."""
    folder = Path(path).absolute()
    return next(parent for parent in (folder, *folder.parents) if parent.exists())
