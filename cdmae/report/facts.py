"""Read the facts of the report: the measures, trainings, counts and costs of a run.

Any part may be missing: a run of BM25 alone has no encoders, and without benchmark files a run has
no costs.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from cdmae import formats
from cdmae.config.kinds import AnySystem, System
from cdmae.config.schema import Evaluation, Report
from cdmae.config.seeds import base
from cdmae.errors import InputError
from cdmae.evaluation.best import untuned
from cdmae.evaluation.per_query import read_measures
from cdmae.evaluation.significance import Values
from cdmae.fields import parse
from cdmae.files import read_json
from cdmae.report.records import BENCHMARK, Corpus, Training, benchmarks, corpus, training

GRADED = "nDCG@10"  # the measure of BEIR


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
    sparsity: the sparsity of sparse systems' vectors, with a row per target. given: the contents of
    the facts file, some of which are shown as they are; the modules that show runs, negatives and
    teachers read them.
    """

    config: dict[str, Any]
    values: dict[tuple[str, Target, str], pd.DataFrame] = field(default_factory=dict)
    collections: dict[str, Corpus] = field(default_factory=dict)
    encoders: dict[str, Training] = field(default_factory=dict)
    trained: dict[str, Training] = field(default_factory=dict)
    masked_terms: dict[str, dict[str, Any]] = field(default_factory=dict)
    benchmarks: pd.DataFrame = field(default_factory=lambda: pd.DataFrame(columns=BENCHMARK))
    fusions: dict[str, dict[str, Any]] = field(default_factory=dict)
    sparsity: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    given: dict[str, Any] = field(default_factory=dict)

    # --- the config -------------------------------------------------------------------------------

    @property
    def seeds(self) -> list[int]:
        """Return all seeds of the run; trainings and masks come from the first."""
        given = self.config.get("seed", 42)
        return given if isinstance(given, list) else [given]

    @cached_property
    def evaluation(self) -> Evaluation:
        """Return the config's `evaluation` section, with defaults."""
        return parse(Evaluation, self.config.get("evaluation"))

    @cached_property
    def report(self) -> Report:
        """Return the config's `report` section, with defaults."""
        return parse(Report, self.config.get("report"))

    def entries(self, section: str) -> dict[str, dict[str, Any]]:
        """Return the config's section with the given name, as named entries."""
        return self.config.get(section) or {}

    def system(self, name: str) -> dict[str, Any]:
        """Return a system's entry in the config."""
        return self.entries("systems")[name]

    @cache  # noqa: B019 (one report, one process)
    def kind(self, system: str) -> System:
        """Return a system's settings as an object of its kind."""
        return parse(AnySystem, formats.without_folders(self.system(system)))

    @cache  # noqa: B019
    def learns(self, system: str) -> bool:
        """Return whether a system depends on a training, its own or the training of a part."""
        kind = self.kind(system)
        return kind.trained or any(map(self.learns, kind.parts()))

    # --- what was measured ------------------------------------------------------------------------

    @cached_property
    def systems(self) -> list[str]:
        """Return the systems that have measures, in the config's order."""
        measured = {system for system, _, _ in self.values}
        return [name for name in self.entries("systems") if name in measured]

    @property
    def bm25(self) -> str:
        """Return the first BM25 system; empty without BM25."""
        return next((name for name in self.systems if self.kind(name).lexical), "")

    @property
    def baseline(self) -> str:
        """Return the system that all others are compared with; empty if it was not measured.

        If the config names no comparison, the baseline is the default of `report.compare`.
        """
        named = self.evaluation.baseline
        if not named and not self.report.compare:
            return self.bm25 or next(iter(self.systems), "")
        return named if named in self.systems else ""

    @cached_property
    def targets(self) -> list[Target]:
        """Return the targets with measures, in the config's order."""
        measured = {target for _, target, _ in self.values}
        collections = self.evaluation.collections.items()
        named = [Target(name, split) for name, splits in collections for split in splits]
        return [target for target in named if target in measured]

    @property
    def deciding(self) -> Target | None:
        """Return the target that decides which system is best; None without measures."""
        return self._role("deciding") or min(self.targets, key=self.zero_shot, default=None)

    @property
    def reported(self) -> Target | None:
        """Return the target whose numbers the first screen shows; None without measures."""
        return self._role("reported") or self.deciding

    def _role(self, name: str) -> Target | None:
        """Look up a target that the facts name, if it was measured."""
        named = self.given.get(name)
        return Target(*named) if named and Target(*named) in self.targets else None

    def zero_shot(self, target: Target) -> bool:
        """Return whether systems were trained only on queries of other collections."""
        used = {entry.get("stage") for entry in self.entries("systems").values()}
        stages = self.entries("stages").items()
        trained = {stage.get("collection") for name, stage in stages if name in used}
        return bool(trained) and target.collection not in trained

    @cache  # noqa: B019
    def measures_of(self, target: Target) -> list[str]:
        """Return the measures of a target, in the config's order."""
        measured = {measure for _, where, measure in self.values if where == target}
        return [name for name in self.evaluation.measured(*target) if name in measured]

    def main_measure(self, target: Target) -> str:
        """Return the config's first measure, or nDCG@10 if the target is zero-shot."""
        names = self.measures_of(target)
        return GRADED if GRADED in names and self.zero_shot(target) else names[0]

    def queries(self, target: Target) -> int:
        """Count the queries that were measured."""
        measured = [len(self.values[key]) for key in self.values if key[1] == target]
        return max(measured)

    def pair(self, a: str, b: str, target: Target, measure: str) -> Values | None:
        """Return the values of two systems on the same queries, each [Q, S]; None without measures.

        If one system was trained with fewer seeds than the other, only the shared seeds count: a
        second stage of seed 42 continues the first stage of seed 42, not the mean of several seeds.
        """
        first = self.values.get((a, target, measure))
        second = self.values.get((b, target, measure))
        if a == b or first is None or second is None:
            return None
        counts = []
        if self.learns(a):
            counts.append(first.shape[1])
        if self.learns(b):
            counts.append(second.shape[1])
        seeds = min(counts, default=1)
        return first.iloc[:, :seeds].to_numpy(), second.iloc[:, :seeds].to_numpy()

    def pretraining_seconds(self, encoder: str) -> float:
        """Return the duration of a pre-training in seconds; nan if unknown.

        The trainer's record takes precedence over the record of its job.
        """
        jobs = self.benchmarks
        jobs = jobs[(jobs["rule"] == "pretrain") & (jobs["job"] == encoder)]
        about = self.encoders[encoder].about if encoder in self.encoders else {}
        return float(about.get("seconds") or jobs["seconds"].sum(min_count=1))


def read(facts: Path | str | dict[str, Any]) -> Facts:
    """Read all files that facts, or a file of facts, name."""
    given = facts if isinstance(facts, dict) else read_json(facts)
    named = {name: value for name, value in given.items() if value}
    file = defaultdict(dict, named)
    config = file["config"]
    fusions = {name: read_json(about) for name, about in file["fusions"].items()}
    terms = {name: path for name, path in file["masked_terms"].items() if Path(path).exists()}
    return Facts(
        config=config,
        values=_values(file["measures"], fusions),
        collections={
            name: corpus(config, name, folder) for name, folder in file["collections"].items()
        },
        encoders={name: training(folder) for name, folder in file["encoders"].items()},
        trained={name: training(folder) for name, folder in file["trained"].items()},
        masked_terms={name: read_json(path) for name, path in terms.items()},
        benchmarks=benchmarks(file["benchmarks"], file["logs"]),
        fusions=fusions,
        sparsity={name: read_json(rows) for name, rows in file["sparsity"].items()},
        given=file,
    )


def _values(
    paths: dict[str, str], fusions: dict[str, dict[str, Any]]
) -> dict[tuple[str, Target, str], pd.DataFrame]:
    """Read the measures of all systems and seeds, in the form of `Facts.values`."""
    systems: dict[str, list[str]] = {}
    for name in paths:
        systems.setdefault(base(name), []).append(name)
    if not paths:
        return {}
    measures = {name: read_measures(path) for name, path in paths.items()}
    every = pd.concat(measures, names=["name"]).reset_index("name")
    found = {}
    for (*target, measure), rows in every.groupby(["collection", "split", "measure"], sort=False):
        wide = rows.pivot(index="query_id", columns="name", values="value")
        if wide.isna().any(axis=None):
            raise InputError(
                f"the measures on {Target(*target)} are for different queries; delete the measures "
                "of all systems and run again"
            )
        for name in fusions.keys() & wide.columns:
            wide[name] = untuned(wide[name], fusions[name], target, measure)
        for system, names in systems.items():
            own = wide.columns.intersection(names, sort=False)
            if len(own):
                found[system, Target(*target), measure] = wide[own]
    return {key: found[key] for system in systems for key in found if key[0] == system}
