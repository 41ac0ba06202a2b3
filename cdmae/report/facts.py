"""Read the facts of the report: the measures, trainings and costs of a run.

Any part may be missing: a run of BM25 alone has no encoders.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property, partial
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from cdmae.config import seeds, splits, systems
from cdmae.config.kinds import System
from cdmae.config.schema import Config
from cdmae.errors import InputError
from cdmae.evaluation.best import Choice, choose, untuned
from cdmae.evaluation.per_query import read_measures
from cdmae.evaluation.significance import Values
from cdmae.files import read_json
from cdmae.layout import place
from cdmae.report.records import Corpus, Training, corpus, training

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

    config: without replicas of other seeds. circumstances: of `cdmae.circumstances`. measures: the
    files of some systems' measures; without them, the systems' of the whole run are read.
    """

    config: Config
    circumstances: Mapping[str, Any] = field(default_factory=dict)
    measures: Sequence[Path] = ()

    @cached_property
    def plain(self) -> dict[str, Any]:
        """Return the config as plain values."""
        return self.config.values()

    def at(self, what: str, **names: str) -> Path:
        """Return the path of a result (`cdmae.layout.place`)."""
        return Path(place(self.config.results, what, **names))

    def each(
        self, what: str, key: str, names: Iterable[str], reader: Callable[[Path], Any] = read_json
    ) -> dict[str, Any]:
        """Read a result of each of some entries, by name, where it exists; key: as in `place`."""
        paths = {name: self.at(what, **{key: name}) for name in names}
        return {name: reader(path) for name, path in paths.items() if path.exists()}

    # --- the results of jobs ----------------------------------------------------------------------

    @cached_property
    def values(self) -> dict[tuple[str, Target, str], pd.DataFrame]:
        """Map (system, target, measure) to a frame with a row per query id and a column per seed.

        A fusion's values are held out on the queries and in the measure that chose its weights
        (`cdmae.evaluation.best.untuned`); other measures of these queries are not.
        """
        if self.measures:
            measures = {path.stem: read_measures(path) for path in self.measures}
        else:
            names = seeds.replicate(self.config).systems
            measures = self.each("measures", "system", names, read_measures)
        return _by_system(measures, self.config.systems, self.fusions)

    @cached_property
    def fusions(self) -> dict[str, dict[str, Any]]:
        """Return the weights of fusions of all seeds, and the queries on which they were tuned."""
        return self.each("fusion", "system", seeds.replicate(self.config).systems)

    @cached_property
    def sparsity(self) -> dict[str, list[dict[str, Any]]]:
        """Return the sparsity of sparse systems' vectors, with a row per target."""
        return self.each("sparsity", "system", self.config.systems)

    @cached_property
    def collections(self) -> dict[str, Corpus]:
        """Return the sizes of all collections."""
        count = partial(corpus, self.config)
        return self.each("collection", "collection", self.config.collections, count)

    @cached_property
    def encoders(self) -> dict[str, Training]:
        """Return the records of all pre-trainings."""
        return self.each("encoder", "encoder", self.config.encoders, training)

    @cached_property
    def trained(self) -> dict[str, Training]:
        """Return the records of all trained systems."""
        return self.each("trained", "system", systems.trained(self.config), training)

    @cached_property
    def masked_terms(self) -> dict[str, dict[str, Any]]:
        """Return the words that the masks of encoders cover (`cdmae.masking.terms`)."""
        return self.each("masked_terms", "encoder", systems.masked_by_importance(self.config))

    # --- systems ----------------------------------------------------------------------------------

    @cached_property
    def systems(self) -> list[str]:
        """Return the systems that have measures, in the config's order."""
        measured = {system for system, _, _ in self.values}
        return [name for name in self.config.systems if name in measured]

    def entry(self, system: str) -> System:
        """Return a system's settings."""
        return self.config.systems[system]

    def learns(self, system: str) -> bool:
        """Return whether a system depends on a training, its own or the training of a part."""
        return systems.learns(self.config, system)

    @property
    def bm25(self) -> str:
        """Return the first BM25 system; empty without BM25."""
        return next((name for name in self.systems if self.entry(name).kind == "bm25"), "")

    @property
    def baseline(self) -> str:
        """Return the system that all others are compared with; empty if it was not measured.

        If the config names no comparison, the baseline is the default of `report.compare`.
        """
        named = self.config.evaluation.baseline
        if not named and not self.config.report.compare:
            return self.bm25 or next(iter(self.systems), "")
        return named if named in self.systems else ""

    # --- what was measured ------------------------------------------------------------------------

    @cached_property
    def targets(self) -> list[Target]:
        """Return the targets with measures, in the config's order."""
        measured = {target for _, target, _ in self.values}
        named = [Target(*each) for each in systems.targets(self.config)]
        return [target for target in named if target in measured]

    @cached_property
    def deciding(self) -> Target | None:
        """Return the target that decides which system is best; None without measures."""
        if not self.targets:
            return None
        queries = {target: self.queries(target) for target in self.targets}
        return Target(*splits.deciding(self.config, queries))

    @property
    def reported(self) -> Target | None:
        """Return the target whose numbers the first screen shows; None without measures."""
        return Target(*splits.roles(self.config)[1]) if self.targets else None

    def is_made(self, target: Target) -> bool:
        """Return whether a target's queries were made from passages."""
        return self.config.collections[target.collection].source == "pseudo"

    def zero_shot(self, target: Target) -> bool:
        """Return whether systems were trained only on queries of other collections."""
        names = systems.trained(self.config)
        trained = {systems.trains_on(self.config, name)[0] for name in names}
        return bool(trained) and target.collection not in trained

    @cache  # noqa: B019 (one report, one process)
    def measures_of(self, target: Target) -> list[str]:
        """Return the measures of a target, in the config's order."""
        measured = {measure for _, where, measure in self.values if where == target}
        return [name for name in self.config.evaluation.measured(*target) if name in measured]

    def queries(self, target: Target) -> int:
        """Count the queries that were measured."""
        return max(len(values) for key, values in self.values.items() if key[1] == target)

    def choice(self, names: Sequence[str]) -> Choice:
        """Choose one of some systems on the deciding target, by their models of the first seed."""
        measure = self.measures_of(self.deciding)[0]
        values = {name: self.values[name, self.deciding, measure].iloc[:, 0] for name in names}
        complexity = {name: self.entry(name).complexity for name in names}
        return choose(pd.DataFrame(values), complexity)

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
        shared = min(counts, default=1)
        return first.iloc[:, :shared].to_numpy(), second.iloc[:, :shared].to_numpy()


def _by_system(
    measures: dict[str, pd.DataFrame], names: Mapping[str, Any], fusions: Mapping[str, Any]
) -> dict[tuple[str, Target, str], pd.DataFrame]:
    """Arrange the measures of all systems and their replicas as `Facts.values` returns them."""
    if not measures:
        return {}
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
        for system in names:
            replicas = [name for name in measures if seeds.base(name) == system]
            own = wide.columns.intersection(replicas, sort=False)
            if len(own):
                found[system, Target(*target), measure] = wide[own]
    return {key: found[key] for system in names for key in found if key[0] == system}
