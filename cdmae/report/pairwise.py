"""Compare all pairs of systems on a collection, and the systems' ranks over several collections."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from cdmae.evaluation.significance import Difference, holm
from cdmae.report.columns import SIGNIFICANT, Column, in_domain, zero_shot
from cdmae.report.facts import Facts

LEAST_SETS = 4  # collections below which average ranks say little (Demsar 2006 needs more still)
LEAST_SYSTEMS = 3  # of a Friedman test


def every_pair(column: Column) -> dict[tuple[str, str], Difference]:
    """Compare every pair of systems, in the config's order, with Holm's correction for all pairs.

    A pair has the same p whichever system is the baseline. It is larger than the p of a comparison
    that the config lists, because that p is corrected for fewer comparisons.
    """
    measured = [name for name in column.facts.systems if not math.isnan(column.value(name))]
    gaps = {}
    for pair in itertools.combinations(measured, 2):
        gap = column.alone(*pair)
        if gap:
            gaps[pair] = gap
    p = holm([gap.p for gap in gaps.values()])
    with_seeds = holm([gap.p_with_seeds for gap in gaps.values()])
    return {
        pair: gap._replace(p=p[index], p_with_seeds=with_seeds[index])
        for index, (pair, gap) in enumerate(gaps.items())
    }


class Ranks(NamedTuple):
    """Average ranks of systems over collections, best first, with their tests (Demsar 2006).

    groups: the first and the last index of each group of systems between which the Nemenyi test
    finds no difference. If the Friedman test finds no difference, one group contains all systems.
    """

    systems: list[str]
    ranks: list[float]
    sets: int
    p: float  # of the Friedman test
    critical: float  # difference of the Nemenyi test at .05
    groups: list[tuple[int, int]]


def average_ranks(facts: Facts) -> Ranks | None:
    """Rank the systems on each collection, and test the average ranks; None with too little data.

    A collection with several splits counts once, with its test split if it has one.
    """
    from scipy.stats import friedmanchisquare, rankdata, studentized_range

    columns = _one_per_collection(facts)
    values = {name: [column.value(name) for column in columns] for name in facts.systems}
    values = {name: row for name, row in values.items() if not any(map(math.isnan, row))}
    if len(columns) < LEAST_SETS or len(values) < LEAST_SYSTEMS:
        return None
    table = np.array(list(values.values()))  # [systems, collections]
    ranks = rankdata(-table, axis=0).mean(axis=1)
    order = np.argsort(ranks, kind="stable")
    systems = len(values)
    sets = len(columns)
    quantile = studentized_range.ppf(1 - SIGNIFICANT, systems, np.inf) / math.sqrt(2)
    critical = float(quantile * math.sqrt(systems * (systems + 1) / (6 * sets)))
    p = float(friedmanchisquare(*table).pvalue) if np.ptp(table, axis=0).any() else 1.0
    ordered = ranks[order].tolist()
    found = groups(ordered, critical) if p < SIGNIFICANT else [(0, systems - 1)]
    names = list(values)
    return Ranks([names[at] for at in order], ordered, sets, p, critical, found)


def groups(ranks: Sequence[float], critical: float) -> list[tuple[int, int]]:
    """Return the largest groups of neighbouring ranks that differ by less than `critical`."""
    found: list[tuple[int, int]] = []
    for first in range(len(ranks)):
        last = max(at for at in range(first, len(ranks)) if ranks[at] - ranks[first] < critical)
        if last > first and (not found or last > found[-1][1]):
            found.append((first, last))
    return found


def _one_per_collection(facts: Facts) -> list[Column]:
    chosen: dict[str, Column] = {}
    for column in in_domain(facts):
        known = chosen.get(column.target.collection)
        if known is None or column.target.split == "test":
            chosen[column.target.collection] = column
    others = zero_shot(facts)
    for column in others:
        chosen.setdefault(column.name.partition(" ")[0], column)
    return list(chosen.values())
