"""From work to seconds: what a machine does per second, as assumed, and as earlier runs of a rule have shown."""

from __future__ import annotations

import csv
import os
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path

from cdmae.errors import InputError
from cdmae.plan.work import PLAIN, Job, Planned, Work

PEAK = {  # floating-point operations per second of a GPU, bfloat16 (V100: float16), dense
    "h200": 989e12, "h100": 989e12, "a100": 312e12, "l40s": 362e12, "v100": 125e12, "rtx4090": 165e12,
}  # fmt: skip
UTILISED = 0.45  # of a GPU's peak, on real word-pieces
CORE = 100e9  # operations per second of a core that computes a network
NETWORKS = (
    "pretrain", "train_retriever", "train_reranker", "teacher", "vectors", "mine", "search", "rerank",
)  # fmt: skip
# seconds until a process works: imports of torch, of numba, Java with its compiler, or little
START = {"index_bm25": 2.0} | dict.fromkeys(NETWORKS, 4.0) | dict.fromkeys(("ngrams", "importance"), 1.5)
START |= dict.fromkeys(("mine_bm25", "search_bm25"), 5.0)
START |= dict.fromkeys(("vectors_external", "mine_external", "search_external"), 9.0)
START |= {"latency": 6.0}
OTHERS_START = 1.0
ON_GPU = 2.5e9  # bytes of a process's own memory that CUDA and its libraries take


@dataclass(frozen=True)
class Speed:
    """How a kind of job has run: seconds until it works, seconds it works over those expected, bytes beyond those."""

    start: float
    factor: float = 1.0
    memory: float = 0.0


@dataclass(frozen=True)
class Machine:
    """Cores, GPUs, bytes of memory, None if unknown; `corrections` are what earlier runs have shown, by kind of job."""

    cores: int
    gpus: int = 0
    gpu: str = ""
    memory: float | None = None
    corrections: dict[str, Speed] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuse a GPU whose speed is not known, and fewer cores, GPUs or bytes than there can be."""
        for option, wrong, allowed in (
            ("cores", self.cores < 1, "1 and more"),
            ("gpus", self.gpus < 0, "0 and more"),
            ("memory", self.memory is not None and self.memory <= 0, "more than 0"),
        ):
            if wrong:
                raise InputError(f"--{option} is {getattr(self, option):g}; allowed: {allowed}")
        if self.gpus and self.gpu not in PEAK:
            raise InputError(f"--gpu is {self.gpu or 'missing'}; allowed: {', '.join(PEAK)}")

    def cores_of(self, job: Job) -> int:
        """Count the cores that a job is given."""
        return min(self.cores, job.threads)

    def gpus_of(self, job: Job) -> int:
        """Count the GPUs that a job is given."""
        return min(self.gpus, job.gpus)

    def seconds(self, job: Job, work: Work, planned: Planned) -> float:
        """How long a job takes."""
        speed = self._speed(job, planned)
        return speed.start + speed.factor * self._working(job, work)

    def peak(self, job: Job, work: Work, planned: Planned) -> float:
        """Bytes of memory that a job takes at its peak; what it keeps on GPUs is left out."""
        return max(PLAIN / 2, self._peak(job, work) + self._speed(job, planned).memory)

    def _speed(self, job: Job, planned: Planned) -> Speed:
        known = (self.corrections[kind] for kind in planned.kinds(job) if kind in self.corrections)
        return next(known, Speed(start(job)))

    def _peak(self, job: Job, work: Work) -> float:
        gpus = self.gpus_of(job)
        where = gpus * (work.memory + ON_GPU) if gpus else work.memory + work.network
        return where + self.cores_of(job) * work.a_core

    def _working(self, job: Job, work: Work) -> float:
        cores, gpus = self.cores_of(job), self.gpus_of(job)
        rate = gpus * PEAK[self.gpu] * UTILISED if gpus else cores * CORE
        return work.flops / rate + work.core_seconds / cores

    def corrected(self, planned: Planned, jobs: Iterable[Job], records: dict[tuple[str, str], Record]) -> Machine:
        """Take over what earlier runs of the jobs took.

        Jobs that mostly start tell how long that takes, others how fast they work. Records tell nothing of networks
        where there are GPUs: they may be of another device.
        """
        runs: dict[str, list[_Run]] = {}
        for job in jobs:
            record = records.get((job.rule, job.name.replace("/", ".")))
            if record is None or (self.gpus and job.gpus):
                continue
            work = planned.work(job)
            beyond = record.memory - self._peak(job, work) if record.memory else None
            run = _Run(record.seconds, start(job), self._working(job, work), beyond)
            for kind in planned.kinds(job):
                runs.setdefault(kind, []).append(run)
        speeds = {kind: _speed(several) for kind, several in runs.items()}
        return replace(self, corrections=self.corrections | speeds)


@dataclass(frozen=True)
class Record:
    """What a run of a job took: seconds, and bytes of memory at its peak, 0 where that was not seen."""

    seconds: float
    memory: float = 0.0


@dataclass(frozen=True)
class _Run:
    """Seconds that a job took, those expected of its start and of its work, and bytes beyond those expected."""

    taken: float
    starting: float
    working: float
    beyond: float | None = None


def _speed(runs: list[_Run]) -> Speed:
    """From the runs of the jobs of a kind."""
    taken, starting, working = (sum(getattr(run, name) for run in runs) for name in ("taken", "starting", "working"))
    beyond = [run.beyond for run in runs if run.beyond is not None]
    memory = sum(beyond) / max(1, len(beyond))
    if working > starting:
        return Speed(starting / len(runs), max(0.0, taken - starting) / working, memory)
    return Speed(max(0.0, taken - working) / len(runs), memory=memory)


def start(job: Job) -> float:
    """Seconds until the process of a job begins to work."""
    return START.get(job.rule, OTHERS_START)


def records(folder: Path | str) -> dict[tuple[str, str], Record]:
    """Snakemake's benchmark files by (rule, name), the parts of a name joined by dots."""
    taken = {}
    for path in sorted(Path(folder).rglob("*.tsv")):
        rule, *names = path.relative_to(folder).with_suffix("").parts
        with open(path, newline="", encoding="utf-8", errors="replace") as file:
            rows = list(csv.DictReader(file, delimiter="\t"))
        seconds, mebibytes = (_number(rows[-1].get(name)) if rows else 0.0 for name in ("s", "max_rss"))
        if seconds:
            taken[rule, ".".join(names).replace("/", ".")] = Record(seconds, mebibytes * 2**20)
    return taken


def _number(text: str | None) -> float:
    """Tell what a cell says, 0 where it says nothing, or is no number: a record is a help and not needed."""
    try:
        return float(text or 0)
    except ValueError:
        return 0.0


def here() -> Machine:
    """Return the machine that runs this, with the GPUs that CUDA_VISIBLE_DEVICES leaves it."""
    try:
        listed = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, check=False).stdout
    except OSError:
        listed = ""
    gpus = [line for line in listed.splitlines() if line.startswith("GPU ")]
    if (chosen := os.environ.get("CUDA_VISIBLE_DEVICES")) is not None:
        gpus = gpus[: len([card for card in chosen.split(",") if card not in ("", "-1")])]
    names = [name for name in PEAK if gpus and name in gpus[0].lower().replace(" ", "")]
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return Machine(len(os.sched_getaffinity(0)), len(gpus), names[0] if names else "a100" if gpus else "", memory)
