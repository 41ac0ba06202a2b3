"""Gather a run's numbers in four frames: the page's input, and CSV files for other readers.

``results.csv``: the mean of every system, collection, split, measure and seed. ``comparisons.csv``:
every tested difference (`cdmae.report.comparisons`). ``costs.csv``: the costs of every system, rule
and of the run. ``trainings.csv``: losses and probes by step, and facts without a step. Measures
and differences are fractions, not points.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean, stdev
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from cdmae.report import comparisons, costs
from cdmae.report.columns import Column
from cdmae.report.facts import Facts
from cdmae.report.negatives import audit
from cdmae.report.records import Training

RESULTS = ["system", "collection", "split", "measure", "seed", "value"]
COSTS = ["kind", "name", "quantity", "value"]
TRAININGS = ["training", "quantity", "step", "value"]
POINTS = 120  # rows per curve; further steps are averaged
LOSSES = ("encoder_loss", "decoder_loss", "loss")
OF_TRAININGS = ("parameters", "queries", "steps", "seconds")  # of about.json
DIGITS = "%.10g"  # of a number in the files


class Mean(NamedTuple):
    """A mean, its standard deviation over the seeds (nan with one), and the number of seeds."""

    value: float
    deviation: float
    seeds: int


class Frames(NamedTuple):
    """The numbers of a run."""

    results: pd.DataFrame
    comparisons: pd.DataFrame
    costs: pd.DataFrame
    trainings: pd.DataFrame

    def mean(self, system: str, column: Column) -> Mean:
        """Average a system over a column, seed by seed; nan unless it was measured everywhere."""
        rows = self.results
        rows = rows[(rows["system"] == system) & (rows["measure"] == column.measure)]
        values = rows.groupby(["collection", "split"])["value"].agg(list).to_dict()
        of_sets = []
        for targets in column.sets:
            of_targets = [values.get(tuple(target), []) for target in targets]
            of_sets.append([fmean(each) for each in zip(*of_targets, strict=False)])
        means = [fmean(each) for each in zip(*of_sets, strict=False)]
        if not means:
            return Mean(math.nan, math.nan, 0)
        return Mean(fmean(means), stdev(means) if len(means) > 1 else math.nan, len(means))

    def compared(self, kind: str | Sequence[str], column: Column) -> pd.DataFrame:
        """Return the comparisons of some kinds on a column."""
        kinds = [kind] if isinstance(kind, str) else [*kind]
        rows = self.comparisons
        same = (rows["on"] == column.name) & (rows["measure"] == column.measure)
        return rows[same & rows["kind"].isin(kinds)]

    def pair(
        self, kinds: Sequence[str], column: Column, system: str, reference: str
    ) -> dict[str, Any] | None:
        """Return the comparison of two systems in this direction; None if it was not tested."""
        for row in self.compared(kinds, column).to_dict("records"):
            if (row["system"], row["reference"]) == (system, reference):
                return row
            if (row["system"], row["reference"]) == (reference, system):
                low, high = -row["high"], -row["low"]
                return row | {"difference": -row["difference"], "low": low, "high": high}
        return None

    def cost(self, kind: str) -> pd.DataFrame:
        """Return the costs of a kind: a row per name, and a column per quantity."""
        rows = self.costs[self.costs["kind"] == kind]
        order = list(dict.fromkeys(rows["name"]))
        wide = rows.pivot(index="name", columns="quantity", values="value")
        return wide.reindex(index=order, columns=list(dict.fromkeys(rows["quantity"])))

    def write(self, folder: Path) -> None:
        """Write a CSV file per frame."""
        for name, frame in self._asdict().items():
            frame.to_csv(folder / f"{name}.csv", index=False, float_format=DIGITS)


def read(folder: Path | str) -> Frames:
    """Read the files of `Frames.write`; names remain text even if they look like numbers."""
    names = {*RESULTS[:4], *COSTS[:3], *TRAININGS[:2], *comparisons.COLUMNS[:6], "verdict"}
    types = dict.fromkeys(names, str)
    frames = []
    for name in Frames._fields:
        path = Path(folder, f"{name}.csv")
        frame = pd.read_csv(path, dtype=types, keep_default_na=False, na_values=[""])
        frames.append(frame.fillna(dict.fromkeys(names & {*frame}, "")))
    return Frames(*frames)


def gather(facts: Facts) -> Frames:
    """Compute all numbers of the report."""
    return Frames(
        results=_results(facts),
        comparisons=comparisons.frame(facts),
        costs=_costs(facts),
        trainings=_trainings(facts),
    )


def only_means(facts: Facts) -> Frames:
    """Compute the means alone, for a table of the paper."""
    return Frames(_results(facts), *(pd.DataFrame() for _ in range(3)))


def _results(facts: Facts) -> pd.DataFrame:
    """List the mean of every system on every target in every measure, by seed."""
    rows = []
    for (system, target, measure), values in facts.values.items():
        means = values.mean().tolist()
        for seed, value in zip(_seeds(facts, system, len(means)), means, strict=True):
            rows.append([system, *target, measure, seed, value])
    return pd.DataFrame(rows, columns=RESULTS)


def _seeds(facts: Facts, system: str, count: int) -> list[int | None]:
    """List the seeds of a system's trainings; None for a system that no training affects."""
    if not facts.learns(system):
        return [None] * count
    if count == 1 and system in facts.trained:
        return [facts.trained[system].about.get("seed", facts.seed)]  # maybe its entry's own
    return facts.seeds[:count]


def _costs(facts: Facts) -> pd.DataFrame:
    """List what every system costs, what the jobs of every rule took, and the time of the run."""
    rows: list[list[Any]] = []
    for name in facts.systems:
        spent = costs.cost(facts, name)
        rows += [["system", name, quantity, value] for quantity, value in spent._asdict().items()]
    sums = facts.benchmarks.groupby("rule", sort=False).agg(
        jobs=("seconds", "size"),
        seconds=("seconds", "sum"),
        cpu=("cpu", lambda times: times.sum(min_count=1)),
        memory=("memory", "max"),
    )
    for rule, spent in sums.iterrows():
        rows += [["rule", rule, quantity, float(value)] for quantity, value in spent.items()]
    rows.append(["run", "all jobs", "wall", facts.wall])
    return pd.DataFrame(rows, columns=COSTS)


def _trainings(facts: Facts) -> pd.DataFrame:
    """List losses and probes by step, facts of trainings, and the audit of teachers' scores."""
    rows: list[list[Any]] = []
    for name, training in {**facts.encoders, **facts.trained}.items():
        for quantity in OF_TRAININGS:
            if quantity in training.about:
                rows.append([name, quantity, math.nan, float(training.about[quantity])])
        for quantity, step, value in _curves(training):
            rows.append([name, quantity, step, value])
    for student, shares in audit(facts).items():
        for quantity, share in shares._asdict().items():
            rows.append([student, f"{quantity} negatives above", math.nan, share])
    return pd.DataFrame(rows, columns=TRAININGS)


def _curves(training: Training) -> list[tuple[str, float, float]]:
    """List (quantity, step, value) of a training: at most `POINTS` means per loss, and probes."""
    found = []
    for quantity in LOSSES if training.curve is not None else ():
        if quantity not in training.curve:
            continue
        frame = training.curve[["step", quantity]].apply(pd.to_numeric, errors="coerce").dropna()
        parts = np.array_split(frame.to_numpy(float), min(POINTS, len(frame)) or 1)
        found += [(quantity, part[-1, 0], part[:, 1].mean()) for part in parts if len(part)]
    for probe in (training.bottleneck, training.retrieval):
        for row in [] if probe is None else probe.to_dict("records"):
            step = float(row.pop("step"))
            found += [(str(quantity), step, float(value)) for quantity, value in row.items()]
    return found
