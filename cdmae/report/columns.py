"""Name the query sets over which systems are averaged and compared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from cdmae.evaluation.significance import Difference, pooled
from cdmae.report import notation
from cdmae.report.facts import GRADED, Facts, Target

MOST_SETS = 4  # zero-shot collections that have a column each; more share one


class Column(NamedTuple):
    """The mean over targets in one measure; weights: one per target, with sum 1."""

    name: str
    targets: tuple[Target, ...]
    weights: tuple[float, ...]
    measure: str

    @property
    def unit(self) -> str:
        """Return the measure's name in tables."""
        return notation.measure_name(self.measure)

    @property
    def head(self) -> str:
        """Return the column's header: its name with the measure."""
        return f"{self.name}, {self.unit}"


def of(target: Target, measure: str) -> Column:
    """Make the column of one target."""
    return Column(str(target), (target,), (1.0,), measure)


def together(columns: Sequence[Column], name: str) -> Column:
    """Average columns with equal weight, in the measure of the first column."""
    targets: list[Target] = []
    weights: list[float] = []
    for column in columns:
        targets += column.targets
        weights += [weight / len(columns) for weight in column.weights]
    return Column(name, tuple(targets), tuple(weights), columns[0].measure)


def difference(facts: Facts, column: Column, a: str, b: str) -> Difference | None:
    """Subtract system `b` from `a`, without correction; None unless both were measured.

    seeds: 0 if no training affects either system.
    """
    values = [facts.pair(a, b, target, column.measure) for target in column.targets]
    if None in values:
        return None
    gap = pooled(values, column.weights)
    return gap if facts.learns(a) or facts.learns(b) else replace(gap, seeds=0)


def inside(facts: Facts) -> list[Column]:
    """List the targets that are not zero-shot, in the config's first measure."""
    targets = [target for target in facts.targets if not facts.zero_shot(target)]
    return [of(target, facts.measures_of(target)[0]) for target in targets]


def zero_shot(facts: Facts) -> list[Column]:
    """List the zero-shot columns in the config's first measure.

    CQADupStack is the mean of its forums, as in BEIR.
    """
    sets: dict[str, list[Column]] = {}
    targets = [target for target in facts.targets if facts.zero_shot(target)]
    one_split = len({target.split for target in targets}) == 1
    for target in targets:
        name = target.collection if one_split else str(target)
        if target.collection.startswith("cqadupstack-"):
            name = "cqadupstack"
        sets.setdefault(name, []).append(of(target, facts.measures_of(target)[0]))
    return [together(some, name) for name, some in sets.items()]


def graded(facts: Facts, column: Column) -> Column:
    """Return a column in nDCG@10, the measure of BEIR, if all of its targets have it."""
    if all(GRADED in facts.measures_of(target) for target in column.targets):
        return column._replace(measure=GRADED)
    return column


def reported(facts: Facts) -> Column | None:
    """Return the column of the first screen: a split that chose nothing, if there is one."""
    target = facts.reported
    return of(target, facts.measures_of(target)[0]) if target else None


def overview(facts: Facts) -> list[Column]:
    """List the columns of the table of all systems: the reported target first.

    If zero-shot collections are many, their mean replaces them.
    """
    main = reported(facts)
    if main is None:
        return []
    others = zero_shot(facts)
    if len(others) > MOST_SETS:
        others = [together(others, f"mean of {len(others)} collections")]
    every = [*inside(facts), *others]
    first = [column for column in every if column.targets == main.targets] or [main]
    return first + [column for column in every if column not in first]


def whole(facts: Facts) -> Column | None:
    """Average all targets that have the reported target's measure, with equal weight.

    The forums of CQADupStack count as one target.
    """
    main = reported(facts)
    every = [*inside(facts), *zero_shot(facts)]
    alike = [column for column in every if main and column.measure == main.measure]
    if len(alike) < 2:
        return main
    return together(alike, f"the mean of {len(alike)} sets of queries")
