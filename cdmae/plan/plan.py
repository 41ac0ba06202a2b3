"""Write the plan of a run as text: a table of the rules, their sums, and the longest chain."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tabulate import tabulate

from cdmae import formats
from cdmae.plan import flops, prices
from cdmae.plan.machine import NOTES, Machine
from cdmae.plan.planned import Job, Planned

SHOWN = 12  # the number of jobs of the longest chain that are listed


@dataclass(frozen=True)
class Task:
    """A job on a machine: its seconds, its bytes of memory, and the bytes that it leaves on disk.

    after: indices of the tasks that it waits for.
    """

    job: Job
    seconds: float
    memory: float = 0.0
    disk: float = 0.0
    after: tuple[int, ...] = ()

    @property
    def name(self) -> str:
        """The rule and the name of the job, separated by a space."""
        return f"{self.job.rule} {self.job.name}".rstrip()


def tasks_of(
    planned: Planned, jobs: Sequence[Job], machine: Machine, *, everything: bool = False
) -> list[Task]:
    """Estimate the jobs that are due, or all jobs; each task lists the tasks that it waits for."""
    tasks: list[Task] = []
    makes: dict[str, int] = {}
    for job in jobs:
        if not (everything or job.due):
            continue
        threads = min(machine.cores, job.threads)
        gpus = min(machine.gpus, job.gpus)
        given = job._replace(threads=threads, gpus=gpus)
        price = prices.price(planned, given)
        seconds = price.seconds_on(machine, threads, gpus)
        after = tuple(dict.fromkeys(makes[path] for path in job.inputs if path in makes))
        makes |= dict.fromkeys(job.outputs, len(tasks))
        tasks.append(Task(given, seconds, price.memory, price.disk, after))
    return tasks


def longest_chain(tasks: Sequence[Task]) -> list[Task]:
    """Return the chain of tasks that takes longest; each task waits for the previous one."""
    ends: list[float] = []
    before: list[int | None] = []
    for task in tasks:
        last = max(task.after, key=ends.__getitem__, default=None)
        before.append(last)
        ends.append(task.seconds + (0.0 if last is None else ends[last]))
    chain: list[Task] = []
    index = max(range(len(tasks)), key=ends.__getitem__, default=None)
    while index is not None:
        chain.insert(0, tasks[index])
        index = before[index]
    return chain


def wall_time(tasks: Sequence[Task], machine: Machine) -> float:
    """Return the minimum number of seconds in which a machine can do all tasks.

    This is the larger of two times: the longest chain, and all tasks without any idle core or GPU.
    """
    chain = sum(task.seconds for task in longest_chain(tasks))
    cores = sum(task.seconds * task.job.threads for task in tasks) / machine.cores
    return max(chain, cores, gpu_hours(tasks) * 3600 / max(1, machine.gpus))


def gpu_hours(tasks: Sequence[Task]) -> float:
    """Return the sum of the hours of all GPUs."""
    return sum(task.seconds * task.job.gpus for task in tasks) / 3600


# --- text -----------------------------------------------------------------------------------------


def text(
    planned: Planned, jobs: Sequence[Job], machine: Machine, *, everything: bool = False
) -> str:
    """Return the whole plan, ready to be printed."""
    tasks = tasks_of(planned, jobs, machine, everything=everything)
    if not tasks:
        return f"all {len(jobs)} jobs are done and up to date"
    devices = f"{machine.cores} cores, no GPU"
    hours = ""
    notes = []
    if machine.gpus:
        devices = f"{machine.cores} cores and {machine.gpus} x {machine.gpu}"
        hours = f", {gpu_hours(tasks):.1f} GPU-hours"
        notes = [f"{machine.gpu}: {NOTES[machine.gpu]}"] if machine.gpu in NOTES else []
    lines = [
        f"{len(tasks)} of {len(jobs)} jobs on {devices}:",
        "",
        _table(tasks),
        "",
        f"wall time  {formats.duration(wall_time(tasks, machine))} or more{hours}",
        *_room(planned, tasks),
        f"memory     {_memory(tasks, machine)}",
        *_chain(tasks),
        *notes,
        *_basis(planned),
    ]
    return formats.plain_spaces("\n".join(lines))


def _table(tasks: list[Task]) -> str:
    """Return the table of jobs, time, memory and disk, with a row per rule."""
    rows = []
    for rule in dict.fromkeys(task.job.rule for task in tasks):
        group = [task for task in tasks if task.job.rule == rule]
        time = formats.duration(sum(task.seconds for task in group))
        hours = gpu_hours(group)
        disk = sum(task.disk for task in group)
        shown_hours = f"{hours:.1f}" if hours else ""
        shown_disk = _bytes(disk) if disk else ""
        rows.append((rule, len(group), time, shown_hours, shown_disk))
    heads = ("rule", "jobs", "time", "GPU-hours", "disk")
    align = ("left", "right", "right", "right", "right")
    return tabulate(rows, heads, "plain", colalign=align, disable_numparse=True)


def _memory(tasks: list[Task], machine: Machine) -> str:
    """Report the memory of the largest task, and whether the machine has enough."""
    largest = max(tasks, key=lambda task: task.memory)
    needed = f"up to {_bytes(largest.memory)} ({largest.name})"
    if machine.memory is None:
        return needed
    return _compared(largest.memory, needed, machine.memory, "here")


def _room(planned: Planned, tasks: list[Task]) -> list[str]:
    """Report the disk space of results and downloads, and whether there is enough room."""
    results = _existing(planned.config.results)
    left = sum(task.disk for task in tasks)
    needed = f"{_bytes(left)} in {planned.config.results}"
    free = shutil.disk_usage(results).free
    lines = [f"disk       {_compared(left, needed, free, 'free there')}"]
    files: dict[Path, float] = {}
    for task in tasks:
        if task.job.rule == "collection":
            files |= planned.downloads(task.job.name)
    if files:
        folder = _existing(os.path.commonpath(files))
        size = sum(files.values())
        needed = f"about {_bytes(size)} in {folder}"
        if folder.stat().st_dev == results.stat().st_dev:
            size += left
            needed += f", {_bytes(size)} with the results"
        free = shutil.disk_usage(folder).free
        lines.append(f"downloads  {_compared(size, needed, free, 'free there')}")
    return lines


def _compared(needed: float, words: str, available: float, where: str) -> str:
    """Compare the required bytes with the available bytes, as text."""
    missing = ""
    if needed > available:
        missing = f": NOT ENOUGH, {_bytes(needed - available)} are missing"
    return f"{words}; {_bytes(available)} are {where}{missing}"


def _chain(tasks: list[Task]) -> list[str]:
    """List the longest tasks of the longest chain."""
    chain = longest_chain(tasks)
    shown = sorted(chain, key=lambda task: -task.seconds)[:SHOWN]
    whole = formats.duration(sum(task.seconds for task in chain))
    lines = [f"longest chain of jobs, {whole}:"]
    for task in chain:
        if task in shown:
            lines.append(f"  {task.name} {formats.duration(task.seconds)}")
    return lines


def _basis(planned: Planned) -> list[str]:
    """List the sources of the estimate."""
    sizes = planned.sizes.values()
    counted = sum(size.measured for size in sizes)
    models = [start.checkpoint for start in planned.config.starts.values()]
    models += [system.model for system in planned.config.systems.values()]
    absent = [model for model in dict.fromkeys(models) if model and not flops.settings_of(model)]
    unknown = "is not on this machine; the plan assumes BERT base, with 110 million weights"
    return [
        *(f"networks: {model} {unknown}" for model in absent),
        f"sizes: {counted} of {len(sizes)} collections counted, the others as their sources report",
        "times: by the prices in cdmae/plan/prices.csv, without downloads",
    ]


def _bytes(number: float) -> str:
    """Write a number of bytes as MB or GB."""
    return formats.memory(number / 2**20)


def _existing(path: str) -> Path:
    """Return the folder, or its nearest existing parent."""
    folder = Path(path).absolute()
    return next(parent for parent in (folder, *folder.parents) if parent.exists())
