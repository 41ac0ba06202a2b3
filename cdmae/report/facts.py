"""What the report is about: measures, trainings, counts and costs, read from what the workflow wrote.

Every part may be missing: a run with BM25 alone has no encoders, a run without its benchmark files no costs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from cdmae.collections.store import count_passages, read_qrels, read_queries
from cdmae.config import seeds as replicas
from cdmae.config.schema import Evaluation, Report
from cdmae.errors import InputError
from cdmae.evaluation import significance
from cdmae.evaluation.tables import read_measures, read_table
from cdmae.fields import parse
from cdmae.files import read_json

GRADED = "nDCG@10"  # the measure of BEIR and of TREC DL
MANY = 5  # judgments per query from which on the first relevant passage says too little


class Target(NamedTuple):
    """What a system is measured on."""

    collection: str
    split: str

    def __str__(self) -> str:
        """As it stands in a table."""
        return f"{self.collection} {self.split}"


class Spread(NamedTuple):
    """The standard deviation of a mean over trainings that differ in the seed, and how many they are."""

    deviation: float
    seeds: int


class Difference(NamedTuple):
    """System a minus system b over the same queries: the means and what `significance.paired` says."""

    a: float
    b: float
    difference: float
    p: float
    low: float
    high: float
    queries: int


@dataclass(frozen=True)
class Training:
    """The curve of a training (a frame with `step` and losses, or None) and what its about.json records.

    bottleneck: the decoder's losses with three vectors at some steps (`cdmae.pretraining.probes.bottleneck`), or None;
    retrieval: how well halves of passages find each other there (`cdmae.pretraining.probes.halves`), or None.
    """

    curve: pd.DataFrame | None = None
    about: dict[str, Any] = field(default_factory=dict)
    bottleneck: pd.DataFrame | None = None
    retrieval: pd.DataFrame | None = None

    @property
    def steps(self) -> int:
        """How many steps were taken; 0 if that is not recorded."""
        found = self.about.get("steps", 0)
        if isinstance(found, (int, float)) and found:
            return int(found)
        return int(self.curve["step"].iloc[-1]) if self.curve is not None and len(self.curve) else 0


@dataclass(frozen=True)
class Corpus:
    """A collection in numbers: passages, and per split its queries, how many are judged, and the judgments."""

    passages: int
    queries: dict[str, int]
    judged: dict[str, int]
    judgments: dict[str, int]
    about: dict[str, Any]

    def per_query(self, split: str) -> float:
        """Judgments per judged query; 0 where there are none."""
        return self.judgments.get(split, 0) / max(self.judged.get(split, 0), 1)


@dataclass(frozen=True, eq=False)
class Facts:
    """Everything a section may show. `values`: (system, target, measure) -> value per query id.

    Of a system with several seeds, the values are means over the seeds and `repeated` has the mean over the queries of
    each; trainings and masks are those of the first seed.
    """

    config: dict[str, Any]
    values: dict[tuple[str, Target, str], pd.Series] = field(default_factory=dict)
    repeated: dict[tuple[str, Target, str], tuple[float, ...]] = field(default_factory=dict)
    collections: dict[str, Corpus] = field(default_factory=dict)
    encoders: dict[str, Training] = field(default_factory=dict)
    trained: dict[str, Training] = field(default_factory=dict)
    masked_terms: dict[str, dict[str, Any]] = field(default_factory=dict)
    benchmarks: pd.DataFrame = field(default_factory=lambda: pd.DataFrame(columns=BENCHMARK))
    versions: dict[str, str] = field(default_factory=dict)
    machine: dict[str, str] = field(default_factory=dict)
    started: str = ""
    latency: dict[str, Any] = field(default_factory=dict)
    paths: dict[str, Any] = field(default_factory=dict)  # of what is read where it is shown: see `PATHS`

    @property
    def seed(self) -> int:
        """The seed of the run, the first one of several."""
        return int(self.config.get("seed", 42))

    @property
    def noise(self) -> float:
        """The difference that the config takes another seed to make: not in points, but a share of 1."""
        return self.config.get("report", {}).get("noise", Report.noise) / 100

    @property
    def seeds(self) -> list[int]:
        """All of its seeds."""
        return list(self.config.get("seeds") or [self.seed])

    @cached_property
    def systems(self) -> list[str]:
        """The systems that have measures, in the config's order, others behind."""
        measured = {system for system, _, _ in self.values}
        named = [name for name in self.entries("systems") if name in measured]
        return named + sorted(measured.difference(named))

    @cached_property
    def targets(self) -> list[Target]:
        """What was measured on, in the config's order."""
        measured = {target for _, target, _ in self.values}
        wanted = self.config.get("evaluation", {}).get("collections", {})
        named = [Target(collection, split) for collection, splits in wanted.items() for split in splits]
        return [each for each in named if each in measured] + sorted(measured.difference(named))

    @cached_property
    def measures(self) -> list[str]:
        """The measures, in the config's order."""
        return list(dict.fromkeys(measure for target in self.targets for measure in self.measures_of(target)))

    @cache  # noqa: B019 (one report, one process)
    def measures_of(self, target: Target) -> list[str]:
        """Those that a target was measured in."""
        measured = {measure for _, where, measure in self.values if where == target}
        evaluation = parse(Evaluation, self.config.get("evaluation"))
        named = [each for each in evaluation.measured(*target) if each in measured]
        return named + sorted(measured.difference(named))

    @property
    def baseline(self) -> str:
        """The system that the others are compared with, or nothing."""
        name = self.config.get("evaluation", {}).get("baseline") or ""
        return name if name in self.systems else ""

    def entries(self, section: str) -> dict[str, dict[str, Any]]:
        """A section of the config with named entries."""
        return self.config.get(section) or {}

    def zero_shot(self, target: Target) -> bool:
        """Whether nothing was trained on queries of this collection, while something was on another's."""
        used = {entry.get("stage") for entry in self.entries("systems").values()}
        trained = {stage.get("collection") for name, stage in self.entries("stages").items() if name in used}
        return bool(trained) and target.collection not in trained

    def main_measure(self, target: Target) -> str:
        """The measure that stands for a target: the first of the config; nDCG@10 for zero-shot and many judgments."""
        corpus = self.collections.get(target.collection)
        many = corpus is not None and corpus.per_query(target.split) > MANY
        measures = self.measures_of(target) or self.measures
        return GRADED if GRADED in measures and (many or self.zero_shot(target)) else measures[0]

    def value(self, system: str, target: Target, measure: str) -> float:
        """The mean over the queries; nan where it was not measured."""
        found = self.values.get((system, target, measure))
        return math.nan if found is None else float(found.mean())

    def by_seed(self, system: str, target: Target, measure: str) -> tuple[float, ...]:
        """The mean over the queries of each of its trainings; nothing where it was not measured."""
        key = (system, target, measure)
        if key in self.repeated:
            return self.repeated[key]
        return (self.value(*key),) if key in self.values else ()

    def queries(self, target: Target) -> int:
        """How many queries were measured."""
        return max((len(each) for (_, found, _), each in self.values.items() if found == target), default=0)

    @cache  # noqa: B019
    def difference(self, a: str, b: str, target: Target, measure: str) -> Difference | None:
        """System `a` minus system `b`, or None where one of them was not measured."""
        first, second = (self.values.get((system, target, measure)) for system in (a, b))
        if first is None or second is None or first is second:
            return None
        second = second.reindex(first.index)
        if second.isna().any():
            raise InputError(
                f"the measures of {a} and {b} on {target} are of different queries; delete both and run again"
            )
        tested = significance.paired(first.to_numpy(), second.to_numpy())
        return Difference(float(first.mean()), float(second.mean()), *(tested[key] for key in Difference._fields[2:]))


# collections by name; the run over training queries that a student has its negatives from, and its teacher's, by
# student; the runs of the systems on one target, and which: (collection, split)
PATHS = ("collections", "mined", "teachers", "runs", "shown")
BENCHMARK = ["rule", "job", "seconds", "cpu", "memory"]


def read(path: Path | str) -> Facts:
    """Read the facts file and all it points to."""
    given = read_json(path)
    config = given.get("config") or {}
    values = _values(given.get("measures") or {})
    about = given.get("masked_terms") or {}
    return Facts(
        config=config,
        values={key: _pooled(*key[:2], seeds) for key, seeds in values.items()},
        repeated={key: tuple(float(each.mean()) for each in seeds) for key, seeds in values.items() if len(seeds) > 1},
        collections={
            name: corpus(folder, used_splits(config, name)) for name, folder in (given.get("collections") or {}).items()
        },
        encoders={name: training(folder) for name, folder in (given.get("encoders") or {}).items()},
        trained={name: training(folder) for name, folder in (given.get("trained") or {}).items()},
        masked_terms={name: read_json(each) for name, each in about.items() if Path(each).exists()},
        benchmarks=benchmarks(given.get("benchmarks")),
        versions=given.get("versions") or {},
        machine=given.get("machine") or {},
        started=(given.get("started") or "")[: len("2025-01-01 12:00")],
        latency=read_json(given["latency"]) if given.get("latency") else {},
        paths={name: given[name] for name in PATHS if given.get(name)},
    )


def used_splits(config: dict[str, Any], collection: str) -> list[str]:
    """The splits of a collection that are trained or measured on."""
    stages = [each for each in (config.get("stages") or {}).values() if each.get("collection") == collection]
    measured = config.get("evaluation", {}).get("collections", {}).get(collection, [])
    return list(dict.fromkeys([*(each.get("split", "train") for each in stages), *measured]))


def corpus(folder: Path | str, splits: list[str]) -> Corpus:
    """Count what a collection holds."""
    folder = Path(folder)
    about = read_json(folder / "about.json") if (folder / "about.json").exists() else {}
    queries = {split: len(read_queries(folder, split)) for split in splits}
    qrels = {split: read_qrels(folder, split)["query"] for split in splits}
    judged = {split: int(found.nunique()) for split, found in qrels.items()}
    judgments = {split: len(found) for split, found in qrels.items()}
    return Corpus(count_passages(folder), queries, judged, judgments, about)


def training(folder: Path | str) -> Training:
    """Read the curve and the record of a training; either may be missing."""
    folder = Path(folder)
    curve, bottleneck, retrieval = (
        read_table(folder / name, gaps=gaps) if (folder / name).exists() else None
        for name, gaps in (("steps.tsv", True), ("bottleneck.tsv", False), ("retrieval.tsv", False))
    )
    if curve is not None and ("step" not in curve or curve.empty):
        curve = None
    about = read_json(folder / "about.json") if (folder / "about.json").exists() else {}
    return Training(curve, about, bottleneck, retrieval)


def benchmarks(folder: Path | str | None) -> pd.DataFrame:
    """Snakemake's benchmark files: a frame (rule, job, seconds, cpu in seconds, memory in MB), nan where unknown."""
    rows = []
    for path in sorted(Path(folder).rglob("*.tsv")) if folder and Path(folder).is_dir() else []:
        rule, *job = path.relative_to(folder).with_suffix("").parts
        frame = read_table(path).rename(columns=str.strip)
        if frame.empty or "s" not in frame or rule == "report":
            continue
        columns = [pd.to_numeric(frame[name], errors="coerce") if name in frame else None for name in _BENCHMARK]
        seconds, cpu, memory = (np.nan if column is None else float(column.iloc[-1]) for column in columns)
        rows.append((rule, "/".join(job) or rule, seconds, cpu, memory))
    return pd.DataFrame(rows, columns=BENCHMARK)


_BENCHMARK = ("s", "cpu_time", "max_rss")


def _values(paths: dict[str, str]) -> dict[tuple[str, Target, str], list[pd.Series]]:
    """The values of every system, one series per seed."""
    found: dict[tuple[str, Target, str], list[pd.Series]] = {}
    for name, path in paths.items():
        for (target, measure), values in _measured(path).items():
            found.setdefault((replicas.base(name), target, measure), []).append(values)
    return found


def _measured(path: str) -> dict[tuple[Target, str], pd.Series]:
    found = {}
    for (collection, split, measure), rows in read_measures(path).groupby(
        ["collection", "split", "measure"], sort=False
    ):
        values = rows.set_index("query_id")["value"]
        if values.index.has_duplicates:
            raise InputError(f"{path} has a query of {collection} {split} twice for {measure}; delete it and run again")
        found[Target(str(collection), str(split)), str(measure)] = values
    return found


def _pooled(system: str, target: Target, seeds: list[pd.Series]) -> pd.Series:
    """The mean over the seeds, query by query."""
    if len(seeds) == 1:
        return seeds[0]
    if any(set(each.index) != set(seeds[0].index) for each in seeds):
        raise InputError(
            f"the measures of the seeds of {system} on {target} are of different queries; delete them and run again"
        )
    return pd.concat(seeds, axis=1).mean(axis=1)
