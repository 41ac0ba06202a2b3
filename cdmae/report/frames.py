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
# columns with texts, which may look like numbers
TEXTS = {*RESULTS[:4], *COSTS[:3], *TRAININGS[:2], *comparisons.COLUMNS[:6], "verdict"}
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
        by_target = rows.groupby(["collection", "split"])["value"].agg(list).to_dict()
        of_sets = []
        for targets in column.sets:
            of_targets = [by_target.get(tuple(target), []) for target in targets]
            of_sets.append(_by_seed(of_targets))
        means = _by_seed(of_sets)
        if not means:
            return Mean(math.nan, math.nan, 0)
        deviation = stdev(means) if len(means) > 1 else math.nan
        return Mean(fmean(means), deviation, len(means))

    def compared(self, kinds: Sequence[str], column: Column) -> pd.DataFrame:
        """Return the comparisons of some kinds on a column."""
        rows = self.comparisons
        chosen = rows["kind"].isin(kinds)
        chosen &= rows["on"] == column.name
        chosen &= rows["measure"] == column.measure
        return rows[chosen]

    def pair(
        self, kinds: Sequence[str], column: Column, system: str, reference: str
    ) -> dict[str, Any] | None:
        """Return the comparison of two systems in this direction; None if it was not tested."""
        for row in self.compared(kinds, column).to_dict("records"):
            names = (row["system"], row["reference"])
            if names == (system, reference):
                return row
            if names == (reference, system):
                turned = {"low": -row["high"], "high": -row["low"]}
                return row | turned | {"difference": -row["difference"]}
        return None

    def cost(self, kind: str) -> pd.DataFrame:
        """Return the costs of a kind: a row per name, and a column per quantity."""
        rows = self.costs[self.costs["kind"] == kind]
        wide = rows.pivot(index="name", columns="quantity", values="value")
        return wide.reindex(index=rows["name"].unique(), columns=rows["quantity"].unique())

    def curves(self, training: str) -> dict[str, pd.Series]:
        """Return what was recorded of a training at several steps, by quantity and step."""
        rows = self.trainings
        rows = rows[(rows["training"] == training) & rows["step"].notna()]
        found = {}
        for quantity, own in rows.groupby("quantity", sort=False):
            if len(own) > 1:
                found[str(quantity)] = own.set_index("step")["value"]
        return found

    def write(self, folder: Path) -> None:
        """Write a CSV file per frame."""
        for name, frame in self._asdict().items():
            frame.to_csv(folder / f"{name}.csv", index=False, float_format=DIGITS)


def _by_seed(values: Sequence[Sequence[float]]) -> list[float]:
    """Average several lists of values, seed by seed."""
    return [fmean(of_seed) for of_seed in zip(*values, strict=False)]


def read(folder: Path | str) -> Frames:
    """Read the files of `Frames.write`; names remain text even if they look like numbers."""
    types = dict.fromkeys(TEXTS, str)
    frames = []
    for name in Frames._fields:
        path = Path(folder, f"{name}.csv")
        frame = pd.read_csv(path, dtype=types, keep_default_na=False, na_values=[""])
        texts = [column for column in frame if column in TEXTS]
        frame[texts] = frame[texts].fillna("")
        frames.append(frame)
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
    nothing = pd.DataFrame()
    return Frames(_results(facts), nothing, nothing, nothing)


def _results(facts: Facts) -> pd.DataFrame:
    """List the mean of every system on every target in every measure, by seed."""
    rows = []
    for (system, target, measure), values in facts.values.items():
        means = values.mean().tolist()
        seeds = _seeds(facts, system, len(means))
        for seed, value in zip(seeds, means, strict=True):
            rows.append([system, *target, measure, seed, value])
    return pd.DataFrame(rows, columns=RESULTS)


def _seeds(facts: Facts, system: str, count: int) -> list[int | None]:
    """List the seeds of a system's trainings; None for a system that no training affects."""
    if not facts.learns(system):
        return [None] * count
    if count == 1 and system in facts.trained:
        own = facts.trained[system].about.get("seed", facts.seed)  # maybe its entry's own
        return [own]
    return facts.seeds[:count]


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
    rows.append(["run", "all jobs", "wall", facts.wall])
    return pd.DataFrame(rows, columns=COSTS)


def _trainings(facts: Facts) -> pd.DataFrame:
    """List losses and probes by step, facts of trainings, and the audit of teachers' scores."""
    rows: list[list[Any]] = []
    for name, training in {**facts.encoders, **facts.trained}.items():
        for quantity in OF_TRAININGS:
            if quantity in training.about:
                rows.append([name, quantity, math.nan, float(training.about[quantity])])
        for point in [*_losses(training), *_probes(training)]:
            rows.append([name, *point])
    for student, shares in audit(facts).items():
        rows.append([student, "mined negatives above", math.nan, shares.mined])
        rows.append([student, "random negatives above", math.nan, shares.random])
    return pd.DataFrame(rows, columns=TRAININGS)


def _losses(training: Training) -> list[tuple[str, float, float]]:
    """List (quantity, last step, mean) for at most `POINTS` parts of each loss curve."""
    found: list[tuple[str, float, float]] = []
    if training.curve is None:
        return found
    for quantity in LOSSES:
        if quantity in training.curve:
            columns = training.curve[["step", quantity]]
            rows = columns.apply(pd.to_numeric, errors="coerce").dropna().to_numpy(float)
            for part in np.array_split(rows, min(POINTS, len(rows)) or 1):
                if len(part):
                    found.append((quantity, part[-1, 0], part[:, 1].mean()))
    return found


def _probes(training: Training) -> list[tuple[str, float, float]]:
    """List (quantity, step, value) of the probes of a pre-training."""
    found = []
    for probe in (training.bottleneck, training.retrieval):
        if probe is not None:
            long = probe.melt(id_vars="step", var_name="quantity")
            found += list(zip(long["quantity"], long["step"], long["value"], strict=True))
    return found
