"""From work to seconds: what a machine does per second, as assumed, and as earlier runs of a rule have shown."""

from __future__ import annotations

import csv
import os
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from cdmae.errors import InputError
from cdmae.planning.work import Planned, Work

if TYPE_CHECKING:
    from cdmae.jobs import Job

PEAK = {  # floating-point operations per second of a GPU, bfloat16 (V100: float16), dense
    "h200": 989e12, "h100": 989e12, "a100": 312e12, "l40s": 362e12, "v100": 125e12, "rtx4090": 165e12,
}  # fmt: skip
UTILISED = 0.45  # of a GPU's peak, on real word-pieces
CORE = 100e9  # operations per second of a core that computes a network
# What the rules ask for (workflow/rules): processor cores at most, GPUs of the paper.
THREADS = dict.fromkeys(
    (
        "tokens", "ngrams", "importance", "index_bm25", "mine_bm25", "search_bm25", "mine", "search", "mine_external",
        "search_external",
    ),
    16,
) | dict.fromkeys(("pretrain", "train_retriever", "train_reranker", "teacher", "vectors", "rerank"), 8)  # fmt: skip
NETWORKS = {"pretrain": 8} | dict.fromkeys(
    (
        "train_retriever", "train_reranker", "teacher", "vectors", "vectors_external", "mine", "search",
        "mine_external", "search_external", "rerank",
    ),
    1,
)  # fmt: skip
# seconds until a process works: imports of torch, of numba, Java with its compiler, or little
START = {"index_bm25": 2.0} | dict.fromkeys((*NETWORKS, "ngrams", "importance"), 4.0)
START |= {"masked_terms": 3.0} | dict.fromkeys(("mine_bm25", "search_bm25"), 5.0)
OTHERS_START = 1.5
NARROW = 256  # dimensions below which more than one core does not help a network


@dataclass(frozen=True)
class Speed:
    """How a kind of job has run: seconds until it works, and seconds it works over those expected."""

    start: float
    factor: float = 1.0


@dataclass(frozen=True)
class Machine:
    """Cores and GPUs; `corrections` are what earlier runs have shown, by kind of job."""

    cores: int
    gpus: int = 0
    gpu: str = ""
    corrections: dict[str, Speed] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuse a GPU whose speed is not known."""
        if self.gpus and self.gpu not in PEAK:
            raise InputError(f"--gpu is {self.gpu or 'missing'}; allowed: {', '.join(PEAK)}")

    def cores_of(self, job: Job, planned: Planned) -> int:
        """The cores that a job is given."""
        most = min(self.cores, THREADS.get(job.rule, 1))
        return 1 if job.rule in NETWORKS and not self.gpus and _narrow(job, planned) else most

    def gpus_of(self, job: Job) -> int:
        """The GPUs that a job is given."""
        return min(self.gpus, NETWORKS.get(job.rule, 0))

    def seconds(self, job: Job, work: Work, planned: Planned) -> float:
        """How long a job takes."""
        speed = self.corrections.get(planned.kind(job), Speed(start(job)))
        return speed.start + speed.factor * self._working(job, work, planned)

    def _working(self, job: Job, work: Work, planned: Planned) -> float:
        cores, gpus = self.cores_of(job, planned), self.gpus_of(job)
        rate = gpus * PEAK[self.gpu] * UTILISED if gpus else cores * CORE
        return work.flops / rate + work.core_seconds / cores

    def corrected(self, planned: Planned, records: dict[tuple[str, str], float]) -> Machine:
        """The machine with what earlier runs of the jobs of `planned` took: (rule, name) -> seconds.

        Jobs that mostly start tell how long that takes, others how fast they work. Records tell nothing of networks
        where there are GPUs: they may be of another device.
        """
        runs: dict[str, list[tuple[float, float, float]]] = {}
        for job in planned.jobs:
            seconds = records.get((job.rule, job.name.replace("/", ".")))
            if seconds is None or (self.gpus and job.rule in NETWORKS):
                continue
            run = (seconds, start(job), self._working(job, planned.work(job), planned))
            runs.setdefault(planned.kind(job), []).append(run)
        found = {kind: _speed(each) for kind, each in runs.items()}
        return Machine(self.cores, self.gpus, self.gpu, self.corrections | found)


def _speed(runs: list[tuple[float, float, float]]) -> Speed:
    """From what jobs of a kind took, and what was expected of their starts and of their work, in seconds."""
    taken, starting, working = map(sum, zip(*runs, strict=True))
    if working > starting:
        return Speed(starting / len(runs), max(0.0, taken - starting) / working)
    return Speed(max(0.0, taken - working) / len(runs))


def start(job: Job) -> float:
    """Seconds until the process of a job begins to work."""
    return START.get(job.rule, OTHERS_START)


def _narrow(job: Job, planned: Planned) -> bool:
    name = job.name.split("/")[0]
    config = planned.config
    begun = config.encoders[name].start if job.rule == "pretrain" else None
    system = config.systems.get(name)
    if begun is None and system is not None and system.encoder:
        begun = config.encoders[system.encoder].start
    return begun is not None and planned.network(begun).width < NARROW


def records(folder: Path | str) -> dict[tuple[str, str], float]:
    """Snakemake's benchmark files: (rule, name) -> seconds, the parts of a name joined by dots."""
    found = {}
    for path in sorted(Path(folder).rglob("*.tsv")):
        rule, *names = path.relative_to(folder).with_suffix("").parts
        with open(path, newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file, delimiter="\t"))
        if rows and rows[-1].get("s"):
            found[rule, ".".join(names).replace("/", ".")] = float(rows[-1]["s"])
    return found


def here() -> Machine:
    """The machine that runs this."""
    try:
        listed = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, check=False).stdout
    except OSError:
        listed = ""
    gpus = [line for line in listed.splitlines() if line.startswith("GPU ")]
    names = [name for name in PEAK if gpus and name in gpus[0].lower().replace(" ", "")]
    return Machine(len(os.sched_getaffinity(0)), len(gpus), names[0] if names else "a100" if gpus else "")
