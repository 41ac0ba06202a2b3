"""Gather a run's numbers in four frames: the page's input, and CSV files for other readers.

``results.csv``: the mean of every system, collection, split, measure and seed. ``comparisons.csv``:
every tested difference (`cdmae.report.comparisons`). ``costs.csv``: the costs of every system, rule
and of the run. ``trainings.csv``: losses and probes by step, and facts without a step. Measures
and differences are fractions, not points.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, fields
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from cdmae.config.seeds import MARK
from cdmae.report import comparisons, costs
from cdmae.report.columns import Column
from cdmae.report.facts import Facts
from cdmae.report.negatives import audit

RESULTS = ["system", "collection", "split", "measure", "seed", "value"]
COSTS = ["kind", "name", "quantity", "value"]
TRAININGS = ["training", "quantity", "step", "value"]
# columns of numbers; texts in other columns may look like numbers or gaps
NUMBERS = {"seed", "value", "step", "seeds", "queries", *comparisons.COLUMNS[6:12]}
OF_TRAININGS = ("parameters", "queries", "steps", "seconds")  # of about.json
DIGITS = "%.10g"  # of a number in the files


class Mean(NamedTuple):
    """A mean, its standard deviation over the seeds (nan with one), and the number of seeds."""

    value: float
    deviation: float
    seeds: int


@dataclass
class Frames:
    """The numbers of a run."""

    results: pd.DataFrame
    comparisons: pd.DataFrame = field(default_factory=pd.DataFrame)
    costs: pd.DataFrame = field(default_factory=pd.DataFrame)
    trainings: pd.DataFrame = field(default_factory=pd.DataFrame)

    @cached_property
    def _means(self) -> dict[tuple[str, str, str, str], list[float]]:
        """Map system, collection, split and measure to the means by seed."""
        return self.results.groupby(RESULTS[:4])["value"].agg(list).to_dict()

    def mean(self, system: str, column: Column) -> Mean:
        """Average a system over a column, seed by seed; nan unless it was measured everywhere."""
        keys = [(system, *target, column.measure) for target in column.targets]
        if not all(key in self._means for key in keys):
            return Mean(math.nan, math.nan, 0)
        by_seed = np.dot(column.weights, [self._means[key] for key in keys])
        deviation = by_seed.std(ddof=1) if len(by_seed) > 1 else math.nan
        return Mean(float(by_seed.mean()), float(deviation), len(by_seed))

    def compared(self, kinds: Sequence[str], column: Column) -> pd.DataFrame:
        """Return the comparisons of some kinds on a column."""
        rows = self.comparisons
        on = (rows["on"] == column.name) & (rows["measure"] == column.measure)
        return rows[on & rows["kind"].isin(kinds)]

    def cost(self, kind: str) -> pd.DataFrame:
        """Return the costs of a kind: a row per name, and a column per quantity."""
        rows = self.costs[self.costs["kind"] == kind]
        wide = rows.pivot(index="name", columns="quantity", values="value")
        return wide.reindex(index=rows["name"].unique(), columns=rows["quantity"].unique())

    def curves(self, training: str) -> dict[str, pd.Series]:
        """Return what was recorded of a training at several steps, by quantity and step."""
        rows = self.trainings
        rows = rows[(rows["training"] == training) & rows["step"].notna()]
        by_quantity = rows.set_index("step").groupby("quantity")["value"]
        return {quantity: values for quantity, values in by_quantity if len(values) > 1}

    def write(self, folder: Path) -> None:
        """Write a CSV file per frame."""
        for name, frame in asdict(self).items():
            frame.to_csv(folder / f"{name}.csv", index=False, float_format=DIGITS)


def read(folder: Path | str) -> Frames:
    """Read the files of `Frames.write`; names remain text even if they look like numbers."""
    types = defaultdict(lambda: str, dict.fromkeys(NUMBERS, float))
    found = {}
    for one in fields(Frames):
        path = Path(folder, f"{one.name}.csv")
        gaps = dict.fromkeys(NUMBERS, "")
        found[one.name] = pd.read_csv(path, dtype=types, keep_default_na=False, na_values=gaps)
    return Frames(**found)


def gather(facts: Facts) -> Frames:
    """Compute all numbers of the report."""
    return Frames(results(facts), comparisons.frame(facts), _costs(facts), _trainings(facts))


def results(facts: Facts) -> pd.DataFrame:
    """List the mean of every system on every target in every measure, by seed."""
    rows = []
    for (system, target, measure), values in facts.values.items():
        for name, mean in values.mean().items():
            seed = name.partition(MARK)[2] or facts.seeds[0]
            shown = int(seed) if facts.learns(system) else None
            rows.append([system, *target, measure, shown, mean])
    return pd.DataFrame(rows, columns=RESULTS)


def _costs(facts: Facts) -> pd.DataFrame:
    """List the costs of every system, the sums of every rule's jobs, and the time of the run."""
    rows: list[list[Any]] = []
    for name in facts.systems:
        for quantity, value in costs.cost(facts, name)._asdict().items():
            rows.append(["system", name, quantity, value])
    for rule, jobs in facts.benchmarks.groupby("rule", sort=False):
        rows.append(["rule", rule, "jobs", float(len(jobs))])
        rows.append(["rule", rule, "seconds", jobs["seconds"].sum()])
        rows.append(["rule", rule, "cpu", jobs["cpu"].sum(min_count=1)])
        rows.append(["rule", rule, "memory", jobs["memory"].max()])
    rows.append(["run", "all jobs", "wall", facts.given.get("wall", math.nan)])
    return pd.DataFrame(rows, columns=COSTS)


def _trainings(facts: Facts) -> pd.DataFrame:
    """List losses and probes by step, facts of trainings, and the audit of teachers' scores."""
    rows: list[list[Any]] = []
    for name, training in {**facts.encoders, **facts.trained}.items():
        for quantity in OF_TRAININGS:
            if quantity in training.about:
                rows.append([name, quantity, math.nan, float(training.about[quantity])])
        rows += [[name, *point] for point in training.points]
    for student, shares in audit(facts).items():
        rows.append([student, "mined negatives above", math.nan, shares.mined])
        rows.append([student, "random negatives above", math.nan, shares.random])
    return pd.DataFrame(rows, columns=TRAININGS)
