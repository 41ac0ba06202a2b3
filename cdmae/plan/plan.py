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
    """Seconds until all tasks are done, and the most bytes of memory that they take at a time."""

    seconds: float
    memory: float


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


def critical_path(tasks: Sequence[Task]) -> list[int]:
    """Return the longest chain of tasks that wait for each other; every task stands behind those it waits for."""
    ends: list[float] = []
    for task in tasks:
        ends.append(task.seconds + max((ends[other] for other in task.after), default=0.0))
    chain: list[int] = []
    before: Sequence[int] = range(len(tasks))
    while before:
        chain.insert(0, max(before, key=ends.__getitem__))
        before = tasks[chain[0]].after
    return chain


def course(tasks: Sequence[Task], cores: int, gpus: int) -> Course:
    """How the tasks run, as far as cores and GPUs last.

    Those that want several GPUs go first, which others would take one by one, then those that most time hangs on.
    """
    followers: list[list[int]] = [[] for _ in tasks]
    tails = [task.seconds for task in tasks]  # the time of the longest chain that begins with a task
    for place in range(len(tasks) - 1, -1, -1):
        for other in tasks[place].after:
            followers[other].append(place)
            tails[other] = max(tails[other], tasks[other].seconds + tails[place])
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
    return Course(now, most)


# --- its text --------------------------------------------------------------------------------------------------------


def text(planned: Planned, jobs: Sequence[Job], machine: Machine, *, everything: bool = False) -> str:
    """Write the whole plan, ready to be printed."""
    tasks = steps(planned, jobs, machine, everything=everything)
    if not tasks:
        return f"all {len(jobs)} jobs are done and up to date"
    ran = course(tasks, machine.cores, machine.gpus)
    hours = f", {_gpu_hours(tasks):.1f} GPU-hours" if machine.gpus else ""
    devices = f"{machine.cores} cores" + (f" and {machine.gpus} x {machine.gpu}" if machine.gpus else ", no GPU")
    lines = [
        f"{len(tasks)} of {len(jobs)} jobs on {devices}:",
        "",
        *_table(tasks),
        "",
        f"wall time  {formats.duration(ran.seconds)}" + hours,
        f"disk       {_disk(planned, tasks)}",
        *_downloads(planned, tasks),
        f"memory     {_memory(machine, tasks, ran)}",
        *_chain(tasks),
        *_basis(planned, machine, tasks),
    ]
    return "\n".join(line.rstrip() for line in lines)


def _table(tasks: list[Task]) -> list[str]:
    rows = [("rule", "jobs", "time", "GPU-hours", "disk")]
    for rule in dict.fromkeys(task.job.rule for task in tasks):
        group = [task for task in tasks if task.job.rule == rule]
        seconds, hours, disk = sum(task.seconds for task in group), _gpu_hours(group), sum(task.disk for task in group)
        shown = f"{hours:.1f}" if hours else "", _bytes(disk) if disk else ""
        rows.append((rule, str(len(group)), formats.duration(seconds), *shown))
    first, *others = (max(map(len, column)) for column in zip(*rows, strict=True))
    return [
        "  ".join([row[0].ljust(first), *(cell.rjust(width) for cell, width in zip(row[1:], others, strict=True))])
        for row in rows
    ]


def _gpu_hours(tasks: Sequence[Task]) -> float:
    return sum(task.seconds * task.gpus for task in tasks) / 3600


def _disk(planned: Planned, tasks: list[Task]) -> str:
    """Tell what the run leaves, what there is; and plainly, where that is not enough."""
    results, left = planned.config.results, sum(task.disk for task in tasks)
    free = shutil.disk_usage(_existing(results)).free
    return _compared(left, f"{_bytes(left)} in {results}", free, "are free there")


def _downloads(planned: Planned, tasks: list[Task]) -> list[str]:
    """Tell what the sources fetch and keep besides, and whether there is room; nothing where nothing is fetched."""
    files: dict[Path, float] = {}
    for task in tasks:
        if task.job.rule == "collection":
            files |= planned.downloads(task.job.name)
    if not files:
        return []
    folder, results = _existing(os.path.commonpath(files)), _existing(planned.config.results)
    beside = sum(task.disk for task in tasks) if folder.stat().st_dev == results.stat().st_dev else 0.0
    size, free = sum(files.values()), shutil.disk_usage(folder).free
    both = f", {_bytes(size + beside)} with the results" if beside else ""
    return ["downloads  " + _compared(size + beside, f"about {_bytes(size)} in {folder}{both}", free, "are free there")]


def _memory(machine: Machine, tasks: list[Task], ran: Course) -> str:
    """Return the largest job, what runs at a time, and what there is."""
    largest = max(tasks, key=lambda task: task.memory)
    needed = f"up to {_bytes(largest.memory)} ({largest.name}), {_bytes(ran.memory)} of all at a time"
    return needed if machine.memory is None else _compared(ran.memory, needed, machine.memory, "are here")


def _compared(needed: float, said: str, there: float, where: str) -> str:
    short = f": NOT ENOUGH, {_bytes(needed - there)} are missing" if needed > there else ""
    return f"{said}; {_bytes(there)} {where}{short}"


def _chain(tasks: list[Task]) -> list[str]:
    """Return the critical path: its longest links, in their order."""
    chain = critical_path(tasks)
    longest = sorted(chain, key=lambda place: -tasks[place].seconds)[:SHOWN]
    links = [f"  {tasks[place].name} {formats.duration(tasks[place].seconds)}" for place in chain if place in longest]
    return [f"longest chain of jobs, {formats.duration(sum(tasks[place].seconds for place in chain))}:", *links]


def _basis(planned: Planned, machine: Machine, tasks: list[Task]) -> list[str]:
    """Tell what the numbers stand on."""
    measured = [name for name, size in planned.sizes.items() if size.measured]
    models = [start.checkpoint for start in planned.config.starts.values()]
    models += [system.model for system in planned.config.systems.values()]
    absent = [model for model in dict.fromkeys(models) if model and not flops.settings_of(model)]
    corrected = sorted({kind for task in tasks for kind in planned.kinds(task.job)} & set(machine.corrections))
    return [
        *(
            f"networks: {model} is not here yet, and is counted as a BERT base of 110 million weights"
            for model in absent
        ),
        f"sizes: {len(measured)} of {len(planned.sizes)} collections counted, the others as their sources tell",
        "times: downloads left out; "
        + (f"earlier runs for {', '.join(corrected)}; else " if corrected else "")
        + "assumed speeds",
    ]


def _bytes(number: float) -> str:
    return formats.memory(number / 2**20)


def _existing(path: str) -> Path:
    """Return the folder, or the nearest one above it that is there."""
    folder = Path(path).absolute()
    return next(parent for parent in (folder, *folder.parents) if parent.exists())
