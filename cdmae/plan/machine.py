"""From work to seconds: what a machine does per second, as assumed, and as earlier runs of a rule have shown."""

from __future__ import annotations

import csv
import os
import re
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple, TextIO

from cdmae.errors import InputError
from cdmae.plan.work import PLAIN, Job, Planned, Work

PEAK = {  # floating-point operations per second of a GPU, bfloat16 (V100: float16), dense
    "h200": 989e12, "h100": 989e12, "a100": 312e12, "l40s": 362e12, "v100": 125e12, "rtx4090": 165e12,
}  # fmt: skip
UTILISED = 0.45  # of a GPU's peak, on real word-pieces
CORE = 100e9  # operations per second of a core that computes a network
# seconds until a process works: imports of torch, of numba, Java with its compiler, or little
START = {
    "index_bm25": 2.0, "mine_bm25": 5.0, "search_bm25": 5.0, "ngrams": 1.5, "importance": 1.5, "latency": 6.0,
    "pretrain": 4.0, "train_retriever": 4.0, "train_reranker": 4.0, "teacher": 4.0, "rerank": 4.0, "vectors": 4.0,
    "mine": 4.0, "search": 4.0, "vectors_external": 9.0, "mine_external": 9.0, "search_external": 9.0,
    "untrained": 4.0,
}  # fmt: skip
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

    def clipped(self, job: Job) -> Job:
        """Return a job that is given no more cores and GPUs than there are."""
        return job._replace(threads=min(self.cores, job.threads), gpus=min(self.gpus, job.gpus))

    def estimate(self, job: Job, work: Work, kinds: Sequence[str]) -> tuple[float, float]:
        """Return the seconds that a job takes and its bytes of memory at the peak; what GPUs keep is left out.

        kinds: what jobs of equal speed have in common, the closest first (`Planned.kinds`).
        """
        known = (self.corrections[kind] for kind in kinds if kind in self.corrections)
        speed = next(known, Speed(START.get(job.rule, OTHERS_START)))
        seconds, memory = self._assumed(job, work)
        return speed.start + speed.factor * seconds, max(PLAIN / 2, memory + speed.memory)

    def _assumed(self, job: Job, work: Work) -> tuple[float, float]:
        """Return the seconds that a job works at the assumed speeds, and its bytes of memory."""
        job = self.clipped(job)
        rate = job.gpus * PEAK[self.gpu] * UTILISED if job.gpus else job.threads * CORE
        memory = job.gpus * (work.memory + ON_GPU) if job.gpus else work.memory + work.network
        return work.flops / rate + work.core_seconds / job.threads, memory + job.threads * work.a_core

    def corrected(self, planned: Planned, jobs: Iterable[Job], records: dict[tuple[str, str], Record]) -> Machine:
        """Take over what earlier runs of the jobs took.

        Records tell nothing of networks where there are GPUs: they may be of another device.
        """
        runs: dict[str, list[Run]] = {}
        for job in jobs:
            record = records.get((job.rule, job.name.replace("/", ".")))
            if record is None or (self.gpus and job.gpus):
                continue
            working, memory = self._assumed(job, planned.work(job))
            beyond = record.memory - memory if record.memory else None
            for kind in planned.kinds(job):
                run = Run(record.seconds, START.get(job.rule, OTHERS_START), working, beyond)
                runs.setdefault(kind, []).append(run)
        return replace(self, corrections=self.corrections | {kind: shown(several) for kind, several in runs.items()})


class Record(NamedTuple):
    """What a run of a job took: seconds, and bytes of memory at its peak, 0 where that was not seen."""

    seconds: float
    memory: float = 0.0


class Run(NamedTuple):
    """Seconds that a job took, those expected of its start and of its work, and bytes beyond those expected."""

    taken: float
    starting: float
    working: float
    beyond: float | None = None


def shown(runs: Sequence[Run]) -> Speed:
    """Take the speed of a kind of job from its runs: of those that mostly start, how long that takes."""
    taken, starting, working = (sum(run[place] for run in runs) for place in range(3))
    beyond = [run.beyond for run in runs if run.beyond is not None]
    memory = sum(beyond) / max(1, len(beyond))
    if working > starting:
        return Speed(starting / len(runs), max(0.0, taken - starting) / working, memory)
    return Speed(max(0.0, taken - working) / len(runs), memory=memory)


def records(folder: Path | str) -> dict[tuple[str, str], Record]:
    """Snakemake's benchmark files by (rule, name), the parts of a name joined by dots; damaged ones tell nothing."""
    taken = {}
    for path in sorted(Path(folder).rglob("*.tsv")):
        rule, *names = path.relative_to(folder).with_suffix("").parts
        with open(path, newline="", encoding="utf-8", errors="replace") as file:
            last = _last_row(file)
        seconds, mebibytes = (
            float(text) if re.fullmatch(r"\d+(\.\d*)?", text := last.get(name) or "") else 0.0
            for name in ("s", "max_rss")
        )
        if seconds:
            taken[rule, ".".join(names).replace("/", ".")] = Record(seconds, mebibytes * 2**20)
    return taken


def _last_row(file: TextIO) -> dict[str, str]:
    try:
        return [{}, *csv.DictReader(file, delimiter="\t")][-1]
    except csv.Error:  # a field that is longer than its limit
        return {}


def here() -> Machine:
    """Return the machine that runs this, with the GPUs that CUDA_VISIBLE_DEVICES and CDMAE_DEVICE leave it."""
    try:
        listed = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, check=False).stdout
    except OSError:
        listed = ""
    gpus = [line for line in listed.splitlines() if line.startswith("GPU ")]
    if os.environ.get("CDMAE_DEVICE") == "cpu":
        gpus = []
    if (chosen := os.environ.get("CUDA_VISIBLE_DEVICES")) is not None:
        gpus = gpus[: len([card for card in chosen.split(",") if card not in ("", "-1")])]
    names = [name for name in PEAK if gpus and name in gpus[0].lower().replace(" ", "")]
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return Machine(len(os.sched_getaffinity(0)), len(gpus), names[0] if names else "a100" if gpus else "", memory)
