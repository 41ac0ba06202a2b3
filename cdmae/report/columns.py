"""Compute the columns of tables: means over collections, and differences."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, stdev
from typing import Any

from cdmae import formats
from cdmae.evaluation.significance import Difference, corrected, pooled
from cdmae.report.comparisons import Pair, family
from cdmae.report.comparisons import compared as compared_pairs
from cdmae.report.facts import Facts, Target
from cdmae.report.tables import Cell, Spread

MOST_SETS = 4  # zero-shot collections that are listed one by one next to the others


@dataclass(frozen=True, eq=False)
class Column:
    """A column: the mean over `sets` of the means over each set's targets, in one measure.

    The forums of CQADupStack are one set. key: the corresponding column of the paper, if any.
    """

    facts: Facts
    name: str
    sets: Sequence[Sequence[Target]]
    measure: str
    key: Any = None

    @classmethod
    def of(cls, facts: Facts, target: Target, measure: str = "") -> Column:
        """Make the column of one target, for the target's main measure or the given `measure`."""
        return cls(facts, str(target), [[target]], measure or facts.main_measure(target))

    @property
    def target(self) -> Target:
        """Return the column's target; the first if there are several."""
        return self.sets[0][0]

    @property
    def unit(self) -> str:
        """Return the measure's name in tables."""
        return formats.measure_name(self.measure)

    @property
    def head(self) -> str:
        """Return the column's header: its name with the measure."""
        return f"{self.name}, {self.unit}"

    def value(self, system: str) -> float:
        """Return a system's mean, from 0 to 1; nan unless it was measured on all targets."""
        means = []
        for targets in self.sets:
            values = [self.facts.value(system, target, self.measure) for target in targets]
            means.append(fmean(values))
        return fmean(means)

    def cell(self, system: str, *, mark: str = "", note: str = "") -> Cell:
        """Show a system's mean in points with its spread over seeds; a dash for nan."""
        value = self.value(system)
        means = self._by_seed(system)
        spread = Spread(100 * stdev(means), len(means)) if len(means) > 1 else None
        number = None if math.isnan(value) else 100 * value
        return Cell(formats.points(value), number, mark=mark, note=note, spread=spread)

    def _by_seed(self, system: str) -> list[float]:
        """Return a system's mean for each training; an empty list if a target has no measures."""
        of_sets = []
        for some in self.sets:
            of_targets = [self.facts.by_seed(system, target, self.measure) for target in some]
            of_sets.append([fmean(values) for values in zip(*of_targets, strict=False)])
        return [fmean(values) for values in zip(*of_sets, strict=False)]

    def difference(self, a: str, b: str) -> Difference | None:
        """Subtract system `b` from `a`, as `compared` does; None unless both were measured."""
        return self.compared([a], b).get(a)

    def compared(self, systems: Iterable[str], reference: str) -> dict[str, Difference]:
        """Subtract `reference` from every other system, with Holm's correction.

        The correction covers `systems` and all systems that the report compares with the reference.
        A comparison therefore has the same p and interval everywhere, in both directions.
        """
        wanted = list(systems)
        listed = compared_pairs(self.facts)
        turned = [name for name in wanted if Pair(reference, name) in listed]
        gaps = {}
        for name in dict.fromkeys([*family(self.facts, reference), *wanted]):
            gap = self.alone(name, reference)
            if gap:
                gaps[name] = gap
        together = [name for name in gaps if name not in turned]
        tested = corrected([gaps[name] for name in together])
        gaps |= dict(zip(together, tested, strict=True))
        for name in turned:
            if name in gaps:
                other = self.compared([reference], name)[reference]
                gaps[name] = replace(gaps[name], tests=other.tests)
        return {name: gaps[name] for name in wanted if name in gaps}

    def alone(self, a: str, b: str) -> Difference | None:
        """Subtract system `b` from `a` as the only comparison, without Holm's correction."""
        values = []
        weights = []
        for some in self.sets:
            for target in some:
                pair = self.facts.pair(a, b, target, self.measure)
                if pair is None:
                    return None
                values.append(pair)
                weights.append(1 / (len(self.sets) * len(some)))
        gap = pooled(values, weights)
        return gap if self.facts.learns(a) or self.facts.learns(b) else replace(gap, seeds=0)


def in_domain(facts: Facts) -> list[Column]:
    """List the targets that are not zero-shot."""
    return [Column.of(facts, target) for target in facts.targets if not facts.zero_shot(target)]


def zero_shot(facts: Facts, *, first: bool = False) -> list[Column]:
    """List the zero-shot columns in their main measure, or with `first` in the config's first.

    CQADupStack is the mean of its forums, as in BEIR.
    """
    sets: dict[str, list[Target]] = {}
    targets = [target for target in facts.targets if facts.zero_shot(target)]
    one_split = len({target.split for target in targets}) == 1
    for target in targets:
        name = target.collection if one_split else str(target)
        if target.collection.startswith("cqadupstack-"):
            name = "cqadupstack"
        sets.setdefault(name, []).append(target)
    measure = facts.first_measure if first else facts.main_measure
    return [Column(facts, name, [some], measure(some[0])) for name, some in sets.items()]


def zero_shot_measures(facts: Facts) -> list[list[Column]]:
    """List the zero-shot columns twice: in the config's first measure, and in the main measure."""
    both = [zero_shot(facts, first=True), zero_shot(facts)]
    same = [column.measure for column in both[0]] == [column.measure for column in both[1]]
    return [columns for columns in (both[:1] if same else both) if columns]


def together(columns: Sequence[Column], name: str) -> Column:
    """Average columns with equal weight, in the measure of the first column."""
    return Column(
        columns[0].facts,
        name,
        [some for column in columns for some in column.sets],
        columns[0].measure,
    )


def everywhere(facts: Facts) -> list[Column]:
    """List a column per target; if zero-shot collections are many, their mean replaces them."""
    columns = in_domain(facts)
    for others in zero_shot_measures(facts):
        if len(others) > MOST_SETS:
            columns.append(together(others, f"mean of {len(others)} collections, zero-shot"))
        else:
            columns += [together([column], f"{column.name}, zero-shot") for column in others]
    return columns


def whole(facts: Facts) -> Column | None:
    """Average all targets that have the main target's measure, with equal weight.

    The forums of CQADupStack count as one target.
    """
    main = main_column(facts)
    columns = [*in_domain(facts), *zero_shot(facts, first=True)]
    alike = [column for column in columns if column.measure == main.measure] if main else []
    if len(alike) < 2:
        return main
    names = [column.name for column in alike]
    return together(
        alike, formats.listed(names) if len(names) <= MOST_SETS else f"{len(names)} sets of queries"
    )


def main_column(facts: Facts) -> Column | None:
    """Return the column of the target that decides which system is best."""
    return Column.of(facts, facts.deciding) if facts.deciding else None
