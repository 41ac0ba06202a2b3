"""Draw how a measure grows with the number of training queries, in a line per pre-training."""

from __future__ import annotations

import numpy as np
import pandas as pd
from markupsafe import Markup

from cdmae.evaluation.significance import pooled
from cdmae.report import figures
from cdmae.report.columns import Column
from cdmae.report.comparisons import retrievers
from cdmae.report.facts import Facts
from cdmae.report.figures import Series
from cdmae.report.frames import Frames
from cdmae.report.recipes import differences
from cdmae.report.sections import colour

# the settings in which the systems of a line may differ; many labels are read less often
VARIED = {"stage.train_queries", "stage.epochs"}
APART = 1.03  # factor between the positions of two lines, so that their intervals do not overlap


def by_labels(facts: Facts, frames: Frames, column: Column) -> Markup:
    """Draw the systems that differ in the number of their labels alone; nothing without any."""
    rows = frames.trainings[frames.trainings["quantity"] == "queries"]
    labels = rows.set_index("training")["value"]
    groups: list[list[str]] = []
    for name in retrievers(facts):
        if name not in labels or not frames.mean(name, column).seeds:
            continue
        for group in groups:
            if differences(facts, group[0], name).keys() <= VARIED:
                group.append(name)
                break
        else:
            groups.append([name])
    series = []
    for group in groups:
        if labels[group].nunique() > 1:
            names = labels[group].sort_values().index
            at = labels[names] * APART ** len(series)
            means = [100 * frames.mean(name, column).value for name in names]
            halves = pd.Series([100 * _half_width(facts, column, name) for name in names], at)
            encoder = facts.entry(group[0]).encoder
            series.append(Series(encoder, pd.Series(means, at), colour(facts, encoder), halves))
    title = f"{column.unit} by the number of training queries, {column.name}"
    return figures.lines(title, series, "training queries", "points", logarithmic=True)


def _half_width(facts: Facts, column: Column, system: str) -> float:
    """Return half the width of the 95 % interval of a mean, over queries and seeds."""
    values = [facts.values[system, each, column.measure].to_numpy() for each in column.targets]
    low, high = pooled([(own, np.zeros_like(own)) for own in values], column.weights).interval
    return (high - low) / 2
