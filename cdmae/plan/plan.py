"""The plan of a run as text: a line for every rule, and what it comes to."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cdmae import formats
from cdmae.plan.machine import Machine
from cdmae.plan.schedule import Course, Task, course, critical_path
from cdmae.plan.work import Job, Planned, Work

SHOWN = 12  # links of the critical path


@dataclass(frozen=True)
class Step:
    """A job that is still to be done, its work and its time on the machine."""

    job: Job
    work: Work
    task: Task


def steps(planned: Planned, jobs: Sequence[Job], machine: Machine, *, everything: bool = False) -> list[Step]:
    """Estimate the jobs that are due, or all of them; each stands behind those whose results it reads."""
    todo: list[Step] = []
    makes: dict[str, int] = {}
    for job in jobs:
        if not (everything or job.due):
            continue
        work = planned.work(job)
        after = tuple(dict.fromkeys(makes[path] for path in job.inputs if path in makes))
        name = f"{job.rule} {job.name}".rstrip()
        task = Task(
            name,
            machine.seconds(job, work, planned),
            machine.cores_of(job),
            machine.gpus_of(job),
            after,
            machine.peak(job, work, planned),
        )
        makes |= dict.fromkeys(job.outputs, len(todo))
        todo.append(Step(job, work, task))
    return todo


def text(planned: Planned, jobs: Sequence[Job], machine: Machine, *, everything: bool = False) -> str:
    """Write the whole plan, ready to be printed."""
    todo = steps(planned, jobs, machine, everything=everything)
    if not todo:
        return f"all {len(jobs)} jobs are done and up to date"
    ran = course([step.task for step in todo], machine.cores, machine.gpus)
    gpu_hours = sum(step.task.seconds * step.task.gpus for step in todo) / 3600
    devices = f"{machine.cores} cores" + (f" and {machine.gpus} x {machine.gpu}" if machine.gpus else ", no GPU")
    lines = [
        f"{len(todo)} of {len(jobs)} jobs on {devices}:",
        "",
        *_table(todo),
        "",
        f"wall time  {formats.duration(ran.seconds)}" + (f", {gpu_hours:.1f} GPU-hours" if machine.gpus else ""),
        f"disk       {_disk(planned, todo)}",
        *_downloads(planned, todo),
        f"memory     {_memory(machine, todo, ran)}",
        *_chain(todo),
        *_basis(planned, machine, todo),
    ]
    return "\n".join(line.rstrip() for line in lines)


def _disk(planned: Planned, todo: list[Step]) -> str:
    """Tell what the run leaves, what there is; and plainly, where that is not enough."""
    results, left = planned.config.results, sum(step.work.disk for step in todo)
    free = shutil.disk_usage(_existing(Path(results))).free
    return _compared(left, f"{_bytes(left)} in {results}", free, "are free there")


def _downloads(planned: Planned, todo: list[Step]) -> list[str]:
    """Tell what the sources fetch and keep besides, and whether there is room; nothing where nothing is fetched."""
    files: dict[Path, float] = {}
    for step in todo:
        if step.job.rule == "collection":
            files |= planned.downloads(step.job.name)
    if not files:
        return []
    folder = _existing(Path(os.path.commonpath(files)))
    results = _existing(Path(planned.config.results))
    beside = sum(step.work.disk for step in todo) if folder.stat().st_dev == results.stat().st_dev else 0.0
    size, free = sum(files.values()), shutil.disk_usage(folder).free
    both = f", {_bytes(size + beside)} with the results" if beside else ""
    return ["downloads  " + _compared(size + beside, f"about {_bytes(size)} in {folder}{both}", free, "are free there")]


def _memory(machine: Machine, todo: list[Step], ran: Course) -> str:
    """Return the largest job, what runs at a time, and what there is."""
    largest = max((step.task for step in todo), key=lambda task: task.memory)
    needed = f"up to {_bytes(largest.memory)} ({largest.name}), {_bytes(ran.memory)} of all at a time"
    if machine.memory is None:
        return needed
    return _compared(ran.memory, needed, machine.memory, "are here")


def _compared(needed: float, said: str, there: float, where: str) -> str:
    short = f": NOT ENOUGH, {_bytes(needed - there)} are missing" if needed > there else ""
    return f"{said}; {_bytes(there)} {where}{short}"


def _table(todo: list[Step]) -> list[str]:
    rows = [("rule", "jobs", "time", "GPU-hours", "disk")]
    for rule in dict.fromkeys(step.job.rule for step in todo):
        group = [step for step in todo if step.job.rule == rule]
        seconds = sum(step.task.seconds for step in group)
        hours = sum(step.task.seconds * step.task.gpus for step in group) / 3600
        disk = sum(step.work.disk for step in group)
        shown = _bytes(disk) if disk else ""
        rows.append((rule, str(len(group)), formats.duration(seconds), f"{hours:.1f}" if hours else "", shown))
    widths = [max(len(row[place]) for row in rows) for place in range(5)]
    return [
        row[0].ljust(widths[0]) + "".join("  " + row[place].rjust(widths[place]) for place in range(1, 5))
        for row in rows
    ]


def _chain(todo: list[Step]) -> list[str]:
    """Return the critical path: its longest links, in their order."""
    tasks = [step.task for step in todo]
    chain = critical_path(tasks)
    longest = sorted(chain, key=lambda place: -tasks[place].seconds)[:SHOWN]
    links = [f"{tasks[place].name} {formats.duration(tasks[place].seconds)}" for place in chain if place in longest]
    total = formats.duration(sum(tasks[place].seconds for place in chain))
    return [f"longest chain of jobs, {total}:", *(f"  {link}" for link in links)]


def _basis(planned: Planned, machine: Machine, todo: list[Step]) -> list[str]:
    """Tell what the numbers stand on."""
    measured = [name for name, size in planned.sizes.items() if size.measured]
    kinds = {kind for step in todo for kind in planned.kinds(step.job)}
    corrected = sorted(kinds & set(machine.corrections))
    return [
        f"sizes: {len(measured)} of {len(planned.sizes)} collections counted, the others as their sources tell",
        "times: downloads left out; "
        + (f"earlier runs for {', '.join(corrected)}; else " if corrected else "")
        + "assumed speeds",
    ]


def _bytes(number: float) -> str:
    return formats.memory(number / 2**20)


def _existing(path: Path) -> Path:
    path = path.absolute()
    return path if path.exists() else _existing(path.parent)
