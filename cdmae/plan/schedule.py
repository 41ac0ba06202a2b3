"""Jobs on a machine: when all are done, which chain of them decides it, what they hold at once on the way."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Task:
    """A job with its time, what it occupies, and the tasks (by their places in the list) that it waits for.

    memory: bytes while it runs.
    """

    name: str
    seconds: float
    cores: int = 1
    gpus: int = 0
    after: tuple[int, ...] = ()
    memory: float = 0.0


@dataclass(frozen=True)
class Course:
    """Seconds until all tasks are done, and the most bytes of memory that they take at a time."""

    seconds: float
    memory: float


def critical_path(tasks: Sequence[Task]) -> list[int]:
    """Return the longest chain of tasks that wait for each other; every task stands behind those it waits for."""
    ends, before = [0.0] * len(tasks), [-1] * len(tasks)
    for place, task in enumerate(tasks):
        for other in task.after:
            if before[place] < 0 or ends[other] > ends[before[place]]:
                before[place] = other
        ends[place] = task.seconds + (ends[before[place]] if before[place] >= 0 else 0.0)
    chain = [max(range(len(tasks)), key=ends.__getitem__)] if tasks else []
    while chain and before[chain[-1]] >= 0:
        chain.append(before[chain[-1]])
    return chain[::-1]


def course(tasks: Sequence[Task], cores: int, gpus: int) -> Course:
    """How the tasks run, as far as cores and GPUs last.

    Those that want several GPUs go first, which others would take one by one, then those that most time hangs on.
    """
    tails = _tails(tasks)

    def order(place: int) -> tuple[bool, float]:
        return min(tasks[place].gpus, gpus) <= 1, -tails[place]

    waits = [len(task.after) for task in tasks]
    followers: list[list[int]] = [[] for _ in tasks]
    for place, task in enumerate(tasks):
        for other in task.after:
            followers[other].append(place)
    ready = sorted((place for place, count in enumerate(waits) if not count), key=order)
    running: list[tuple[float, int]] = []
    now = memory = 0.0
    while ready or running:
        for place in list(ready):
            task = tasks[place]
            if min(task.cores, cores) <= cores - _used(tasks, running, "cores", cores) and min(
                task.gpus, gpus
            ) <= gpus - _used(tasks, running, "gpus", gpus):
                heapq.heappush(running, (now + task.seconds, place))
                ready.remove(place)
        memory = max(memory, sum(tasks[place].memory for _, place in running))
        now, done = heapq.heappop(running)
        for place in followers[done]:
            waits[place] -= 1
            if not waits[place]:
                ready.append(place)
        ready.sort(key=order)
    return Course(now, memory)


def _used(tasks: Sequence[Task], running: list[tuple[float, int]], what: str, most: int) -> int:
    return sum(min(getattr(tasks[place], what), most) for _, place in running)


def _tails(tasks: Sequence[Task]) -> list[float]:
    """Return the time of the longest chain that begins with each task."""
    tails = [task.seconds for task in tasks]
    for place in range(len(tasks) - 1, -1, -1):
        for other in tasks[place].after:
            tails[other] = max(tails[other], tasks[other].seconds + tails[place])
    return tails
