"""Read the facts of the report: the measures, trainings, counts and costs of a run.

Any part may be missing: a run of BM25 alone has no encoders, and without benchmark files a run has
no costs.
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from cdmae import formats
from cdmae.config import seeds as replicas
from cdmae.config.kinds import AnySystem, System
from cdmae.config.schema import Evaluation, Report
from cdmae.errors import InputError
from cdmae.evaluation.best import untuned
from cdmae.evaluation.per_query import read_measures
from cdmae.evaluation.significance import Values
from cdmae.fields import kind_of, parse
from cdmae.files import read_json
from cdmae.report.records import BENCHMARK, Corpus, Training, benchmarks, corpus, training

GRADED = "nDCG@10"  # the measure of BEIR and of TREC DL
ONE_JUDGMENT = 1.5  # judgments per query below which nearly all queries have a single one
MANY = 5  # judgments per query above which a measure of the first relevant passage does not suffice


class Target(NamedTuple):
    """A split of a collection on which systems are measured."""

    collection: str
    split: str

    def __str__(self) -> str:
        """Return the target's name as shown in tables."""
        return f"{self.collection} {self.split}"


@dataclass(frozen=True, eq=False)
class Facts:
    """The facts that sections show; trainings and masks come from the first seed.

    values: for each (system, target, measure), a frame with a row per query id and a column per
    seed; a fusion's values are held out on the queries that its weights were tuned on
    (`cdmae.evaluation.best.untuned`). fusions: the weights of fusions, and these queries.
    sparsity: the sparsity of sparse systems' vectors, with a row per target. paths: the contents of
    the facts file; its runs, negatives and teachers are read by the modules that show them.
    """

    config: dict[str, Any]
    values: dict[tuple[str, Target, str], pd.DataFrame] = field(default_factory=dict)
    collections: dict[str, Corpus] = field(default_factory=dict)
    encoders: dict[str, Training] = field(default_factory=dict)
    trained: dict[str, Training] = field(default_factory=dict)
    masked_terms: dict[str, dict[str, Any]] = field(default_factory=dict)
    benchmarks: pd.DataFrame = field(default_factory=lambda: pd.DataFrame(columns=BENCHMARK))
    versions: dict[str, str] = field(default_factory=dict)
    machine: dict[str, str] = field(default_factory=dict)
    started: str = ""
    wall: float = math.nan  # seconds from the start of the last run to its report
    origin: dict[str, Any] = field(default_factory=dict)  # commit, changes and command
    latency: dict[str, Any] = field(default_factory=dict)
    fusions: dict[str, dict[str, Any]] = field(default_factory=dict)
    sparsity: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    paths: dict[str, Any] = field(default_factory=dict)

    @property
    def seed(self) -> int:
        """Return the seed of the run, the first one of several."""
        return self.seeds[0]

    @property
    def seeds(self) -> list[int]:
        """Return all seeds of the run."""
        given = self.config.get("seed", 42)
        return given if isinstance(given, list) else [given]

    @cache  # noqa: B019
    def trainings(self, *systems: str) -> int:
        """Return the smallest number of trainings (one per seed) behind any of the systems' means.

        Systems that no training affects, such as BM25, do not count. The result is 1 if only such
        systems are given.
        """
        counts = [
            values.shape[1]
            for (name, _, _), values in self.values.items()
            if name in systems and self.learns(name)
        ]
        return min(counts, default=1)

    @cache  # noqa: B019
    def learns(self, system: str) -> bool:
        """Return whether a system depends on a training, its own or the training of a part."""
        entry = self.system(system)
        of = entry.get("of") or ()
        used = [of] if isinstance(of, str) else [*of]
        if entry.get("reranks"):
            used.append(entry["reranks"])
        return self.kind(system).trained or any(map(self.learns, used))

    @property
    def named_seeds(self) -> str:
        """Name the seeds in words: ``seed 42``, or ``seeds 42, 43 and 44``."""
        noun = "seeds" if len(self.seeds) > 1 else "seed"
        return f"{noun} {formats.listed([str(seed) for seed in self.seeds])}"

    @cached_property
    def disk(self) -> Facts:
        """Return the facts of the models on disk, which have the first seed."""
        return replace(self, values={key: frame.iloc[:, :1] for key, frame in self.values.items()})

    @cached_property
    def evaluation(self) -> Evaluation:
        """Return the config's `evaluation` section, with defaults."""
        return parse(Evaluation, self.config.get("evaluation"))

    @cached_property
    def repeated(self) -> set[str]:
        """Return the systems that were measured with several seeds."""
        return {system for (system, _, _), values in self.values.items() if values.shape[1] > 1}

    @cached_property
    def systems(self) -> list[str]:
        """Return the systems that have measures, in the config's order."""
        measured = {system for system, _, _ in self.values}
        return [name for name in self.entries("systems") if name in measured]

    @cached_property
    def deciding(self) -> Target | None:
        """Return the target that decides which system is best; None without measures."""
        named = self.paths.get("deciding")
        if named and Target(*named) in self.targets:
            return Target(*named)
        return min(self.targets, key=self.zero_shot, default=None)

    @property
    def reported(self) -> Target | None:
        """Return the target whose numbers the first screen shows; None without measures."""
        named = self.paths.get("reported")
        return Target(*named) if named and Target(*named) in self.targets else self.deciding

    @cached_property
    def targets(self) -> list[Target]:
        """Return the targets with measures, in the config's order."""
        named = [
            Target(name, split)
            for name, splits in self.evaluation.collections.items()
            for split in splits
        ]
        measured = {target for _, target, _ in self.values}
        return [target for target in named if target in measured]

    @cache  # noqa: B019 (one report, one process)
    def measures_of(self, target: Target) -> list[str]:
        """Return the measures of a target, in the config's order."""
        measured = {measure for _, where, measure in self.values if where == target}
        named = [name for name in self.evaluation.measured(*target) if name in measured]
        return [name for name in named if name not in self.disguised(target)] or named

    @cache  # noqa: B019
    def disguised(self, target: Target) -> list[str]:
        """List the measures Judged@k that are only recall divided by k.

        They are, if queries have a single judgment.
        """
        corpus = self.collections.get(target.collection)
        if corpus is None or not 0 < corpus.per_query(target.split) < ONE_JUDGMENT:
            return []
        names = self.evaluation.measured(*target)
        return [name for name in names if name.startswith("Judged@")]

    @cached_property
    def report(self) -> Report:
        """Return the config's `report` section, with defaults."""
        return parse(Report, self.config.get("report"))

    @property
    def baseline(self) -> str:
        """Return the system that all others are compared with; empty if it was not measured.

        If the config names no comparison, the baseline is the default of `report.compare`.
        """
        named = self.evaluation.baseline
        if not named and not self.report.compare:
            return self.bm25 or next(iter(self.systems), "")
        return named if named in self.systems else ""

    @property
    def bm25(self) -> str:
        """Return the first BM25 system; empty without BM25."""
        return next((name for name in self.systems if self.kind(name).lexical), "")

    def entries(self, section: str) -> dict[str, dict[str, Any]]:
        """Return the config's section with the given name, as named entries."""
        return self.config.get(section) or {}

    def system(self, name: str) -> dict[str, Any]:
        """Return a system's entry in the config; empty if the config has none."""
        return self.entries("systems").get(name, {})

    def kind(self, system: str) -> type[System]:
        """Return the class that describes a system's kind."""
        return kind_of(AnySystem, self.system(system)) or System

    def encoder_of(self, system: str) -> str:
        """Return the encoder from which a system is trained; empty for other systems."""
        return self.system(system).get("encoder", "")

    def pretraining_seconds(self, encoder: str) -> float:
        """Return the duration of a pre-training in seconds; nan if unknown.

        The trainer's record takes precedence over the record of its job.
        """
        jobs = self.benchmarks[
            (self.benchmarks["rule"] == "pretrain") & (self.benchmarks["job"] == encoder)
        ]
        about = self.encoders[encoder].about if encoder in self.encoders else {}
        return float(about.get("seconds") or jobs["seconds"].sum(min_count=1))

    def zero_shot(self, target: Target) -> bool:
        """Return whether systems were trained only on queries of other collections."""
        used = {entry.get("stage") for entry in self.entries("systems").values()}
        trained = {
            stage.get("collection")
            for name, stage in self.entries("stages").items()
            if name in used
        }
        return bool(trained) and target.collection not in trained

    def main_measure(self, target: Target) -> str:
        """Return a target's main measure.

        It is the config's first measure, or nDCG@10 if the target is zero-shot or has many
        judgments per query.
        """
        corpus = self.collections.get(target.collection)
        many = corpus is not None and corpus.per_query(target.split) > MANY
        graded = GRADED in self.measures_of(target) and (many or self.zero_shot(target))
        return GRADED if graded else self.first_measure(target)

    def first_measure(self, target: Target) -> str:
        """Return the first measure of the config on a target."""
        return self.measures_of(target)[0]

    @cache  # noqa: B019
    def per_query(self, system: str, target: Target, measure: str) -> pd.Series | None:
        """Return the value of every query, averaged over the seeds; None without measures."""
        values = self.values.get((system, target, measure))
        return None if values is None else values.mean(axis=1)

    def value(self, system: str, target: Target, measure: str) -> float:
        """Return a system's mean over the queries; nan if it was not measured."""
        values = self.per_query(system, target, measure)
        return math.nan if values is None else float(values.mean())

    def queries(self, target: Target) -> int:
        """Count the queries that were measured."""
        return max(
            (len(values) for (_, where, _), values in self.values.items() if where == target),
            default=0,
        )

    @cache  # noqa: B019
    def pair(self, a: str, b: str, target: Target, measure: str) -> Values | None:
        """Return the values of two systems on the same queries, each [Q, S]; None without measures.

        If one system was trained with fewer seeds than the other, only the shared seeds count: a
        second stage of seed 42 continues the first stage of seed 42, not the mean of several seeds.
        """
        measured = [self.values.get((system, target, measure)) for system in (a, b)]
        if a == b or any(values is None for values in measured):
            return None
        seeds = self.trainings(a, b)
        first, second = (values.iloc[:, :seeds] for values in measured)
        if not first.index.equals(second.index):
            if not first.index.isin(second.index).all():
                raise InputError(
                    f"the measures of {a} and {b} on {target} are for different queries; "
                    "delete both and run again"
                )
            second = second.reindex(first.index)
        return first.to_numpy(), second.to_numpy()


def read(facts: Path | str | dict[str, Any]) -> Facts:
    """Read all files that facts, or a file of facts, name."""
    given = facts if isinstance(facts, dict) else read_json(facts)
    named = {name: value for name, value in given.items() if value}
    file = defaultdict(dict, named)
    config = file["config"]
    fusions = {name: read_json(about) for name, about in file["fusions"].items()}
    return Facts(
        config=config,
        values=_values(file["measures"], fusions),
        collections={
            name: corpus(config, name, folder) for name, folder in file["collections"].items()
        },
        encoders={name: training(folder) for name, folder in file["encoders"].items()},
        trained={name: training(folder) for name, folder in file["trained"].items()},
        masked_terms={
            name: read_json(terms)
            for name, terms in file["masked_terms"].items()
            if Path(terms).exists()
        },
        benchmarks=benchmarks(file.get("benchmarks"), file.get("logs")),
        versions=file["versions"],
        machine=file["machine"],
        started=file.get("started", "")[: len("2025-01-01 12:00")],
        wall=float(file.get("wall", math.nan)),
        origin=file["origin"],
        latency=file["latency"],
        fusions=fusions,
        sparsity={name: read_json(rows) for name, rows in file["sparsity"].items()},
        paths=file,
    )


def _values(
    paths: dict[str, str], fusions: dict[str, dict[str, Any]]
) -> dict[tuple[str, Target, str], pd.DataFrame]:
    """Read the measures of all systems and seeds, in the form of `Facts.values`."""
    by_seed: dict[tuple[str, Target, str], list[pd.Series]] = defaultdict(list)
    for name, path in paths.items():
        about = fusions.get(name, {})
        for (*target, measure), rows in read_measures(path).groupby(
            ["collection", "split", "measure"], sort=False
        ):
            values = rows.set_index("query_id")["value"].rename(name)
            values = untuned(values, about, target, measure)
            by_seed[replicas.base(name), Target(*target), measure].append(values)
    frames = {key: pd.concat(several, axis=1) for key, several in by_seed.items()}
    for (system, target, _), frame in frames.items():
        if frame.isna().any(axis=None):
            raise InputError(
                f"the measures of the seeds of {system} on {target} are for different queries; "
                "delete them and run again"
            )
    return frames
