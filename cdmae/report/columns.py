"""Name the query sets over which systems are averaged and compared."""

from __future__ import annotations

from dataclasses import dataclass, replace

from cdmae import formats
from cdmae.evaluation.significance import Difference, pooled
from cdmae.report.facts import Facts, Target

MOST_SETS = 4  # zero-shot collections that have a column each; more share one


@dataclass(frozen=True)
class Column:
    """The mean over `sets` of the means over each set's targets, in one measure.

    The forums of CQADupStack are one set. key: the corresponding column of the paper, if any.
    """

    name: str
    sets: tuple[tuple[Target, ...], ...]
    measure: str
    key: object = None

    @property
    def unit(self) -> str:
        """Return the measure's name in tables."""
        return formats.measure_name(self.measure)

    @property
    def head(self) -> str:
        """Return the column's header: its name with the measure."""
        return f"{self.name}, {self.unit}"

    @property
    def targets(self) -> list[Target]:
        """List the targets of all sets."""
        return [target for targets in self.sets for target in targets]


def of(target: Target, measure: str) -> Column:
    """Make the column of one target."""
    return Column(str(target), ((target,),), measure)


def difference(facts: Facts, column: Column, a: str, b: str) -> Difference | None:
    """Subtract system `b` from `a`, without correction; None unless both were measured.

    seeds: 0 if no training affects either system.
    """
    values = []
    weights = []
    for targets in column.sets:
        for target in targets:
            pair = facts.pair(a, b, target, column.measure)
            if pair is None:
                return None
            values.append(pair)
            weights.append(1 / (len(column.sets) * len(targets)))
    gap = pooled(values, weights)
    return gap if facts.learns(a) or facts.learns(b) else replace(gap, seeds=0)


def in_domain(facts: Facts) -> list[Column]:
    """List the targets that are not zero-shot, in their main measure."""
    return [
        of(target, facts.main_measure(target))
        for target in facts.targets
        if not facts.zero_shot(target)
    ]


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
    return [Column(name, (tuple(some),), measure(some[0])) for name, some in sets.items()]


def together(columns: list[Column], name: str) -> Column:
    """Average columns with equal weight, in the measure of the first column."""
    sets = tuple(targets for column in columns for targets in column.sets)
    return Column(name, sets, columns[0].measure)


def reported(facts: Facts) -> Column | None:
    """Return the column of the first screen: a split that chose nothing, if there is one."""
    target = facts.reported
    return of(target, facts.first_measure(target)) if target else None


def overview(facts: Facts) -> list[Column]:
    """List the columns of the table of all systems: the reported target first.

    If zero-shot collections are many, their mean replaces them.
    """
    if not facts.reported:
        return []
    inside = [of(target, facts.first_measure(target)) for target in facts.targets]
    inside = [column for column in inside if not facts.zero_shot(column.targets[0])]
    others = zero_shot(facts, first=True)
    if len(others) > MOST_SETS:
        others = [together(others, f"mean of {len(others)} collections")]
    first = [column for column in [*inside, *others] if column.targets == [facts.reported]]
    first = first or [of(facts.reported, facts.first_measure(facts.reported))]
    return first + [column for column in [*inside, *others] if column not in first]


def whole(facts: Facts) -> Column | None:
    """Average all targets that have the reported target's measure, with equal weight.

    The forums of CQADupStack count as one target.
    """
    main = reported(facts)
    inside = [of(target, facts.first_measure(target)) for target in facts.targets]
    inside = [column for column in inside if not facts.zero_shot(column.targets[0])]
    alike = [
        column
        for column in [*inside, *zero_shot(facts, first=True)]
        if main and column.measure == main.measure
    ]
    if len(alike) < 2:
        return main
    return together(alike, f"the mean of {len(alike)} sets of queries")
