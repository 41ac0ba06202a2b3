"""Gather a run's numbers in four frames: the page's input, and CSV files for other readers.

``results.csv``: the mean of every system, collection, split, measure and seed. ``comparisons.csv``:
every tested difference (`cdmae.report.comparisons`). ``costs.csv``: the costs of every system
(`cdmae.report.costs`). ``trainings.csv``: losses and probes by step, and facts without a step.
Measures and differences are fractions, not points. docs/use.md explains the columns.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from cdmae.config.seeds import MARK
from cdmae.report import comparisons
from cdmae.report.columns import Column
from cdmae.report.costs import Cost, cost
from cdmae.report.facts import Facts

RESULTS = ["system", "collection", "split", "measure", "seed", "value"]
TRAININGS = ["training", "quantity", "step", "value"]
OF_TRAININGS = ("parameters", "queries", "steps", "seconds")  # of about.json
ASCII = {"→": "->", "∞": "inf"}  # the signs of questions
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

    def curves(self, training: str) -> dict[str, pd.Series]:
        """Return what was recorded of a training at several steps, by quantity and step."""
        rows = self.trainings
        rows = rows[(rows["training"] == training) & rows["step"].notna()]
        by_quantity = rows.set_index("step").groupby("quantity")["value"]
        return {quantity: values for quantity, values in by_quantity if len(values) > 1}

    def write(self, folder: Path) -> None:
        """Write a CSV file per frame, its signs in ASCII, because Excel does not expect UTF-8."""
        for name, frame in asdict(self).items():
            frame.replace(ASCII, regex=True).to_csv(
                folder / f"{name}.csv", index=False, float_format=DIGITS
            )


def read_results(folder: Path | str) -> pd.DataFrame:
    """Read ``results.csv``; names remain text even if they look like numbers."""
    types = dict.fromkeys(RESULTS, str) | {"seed": float, "value": float}
    gaps = {"seed": "", "value": ""}
    path = Path(folder, "results.csv")
    return pd.read_csv(path, dtype=types, keep_default_na=False, na_values=gaps)


def gather(facts: Facts) -> Frames:
    """Compute all numbers of the report."""
    costs = [[name, *cost(facts, name)] for name in facts.systems]
    return Frames(
        results(facts),
        comparisons.frame(facts),
        pd.DataFrame(costs, columns=["system", *Cost._fields]),
        _trainings(facts),
    )


def results(facts: Facts) -> pd.DataFrame:
    """List the mean of every system on every target in every measure, by seed."""
    rows = []
    for (system, target, measure), values in facts.values.items():
        for name, mean in values.mean().items():
            seed = name.partition(MARK)[2] or facts.config.seed[0]
            shown = int(seed) if facts.learns(system) else None
            rows.append([system, *target, measure, shown, mean])
    return pd.DataFrame(rows, columns=RESULTS)


def _trainings(facts: Facts) -> pd.DataFrame:
    """List losses and probes by step, and facts of trainings."""
    rows: list[list[Any]] = []
    for name, training in {**facts.encoders, **facts.trained}.items():
        for quantity in OF_TRAININGS:
            if quantity in training.about:
                rows.append([name, quantity, math.nan, float(training.about[quantity])])
        rows += [[name, *point] for point in training.points]
    return pd.DataFrame(rows, columns=TRAININGS)
