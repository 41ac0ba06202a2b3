"""Show what misspelt queries cost each system: both means, and their paired difference."""

from __future__ import annotations

from cdmae import formats
from cdmae.collections.sources.misspelt import SUFFIX
from cdmae.evaluation.significance import Difference, corrected, paired
from cdmae.report.charts import Row, rows
from cdmae.report.facts import Facts, Target
from cdmae.report.sections import INTERVAL, Section, colour, difference_cells
from cdmae.report.tables import Cell, Table


def section(facts: Facts) -> Section | None:
    """Compare the measures of misspelt queries with those of the same queries as they were."""
    tables = []
    figures = []
    for clean, typos in measured_twice(facts):
        measure = facts.main_measure(clean)
        gaps = losses(facts, clean, typos, measure)
        name = f"typos-{clean.collection}-{clean.split}"
        caption = f"{formats.measure_name(measure)} on {clean}: queries as they are, and misspelt"
        head = ["system", "as they are", "misspelt", "difference", INTERVAL, "p, Holm"]
        body = [
            [system, _points(gap.b), _points(gap.a), *difference_cells(gap)]
            for system, gap in gaps.items()
        ]
        tables.append(Table(name, caption, head, body))
        entries = [
            Row(
                system,
                formats.signed(gap.difference),
                interval=(100 * gap.low, 100 * gap.difference, 100 * gap.high),
                colour=colour(facts, system),
            )
            for system, gap in gaps.items()
            if gap.has_interval
        ]
        axis = "points, with the interval"
        figures.append(rows(name, f"What a typo costs on {clean}", entries, axis=axis))
    found = Section("typos", {"facts": facts}, tables, figures)
    return found if found.tables else None


def measured_twice(facts: Facts) -> list[tuple[Target, Target]]:
    """List the targets that were also measured with misspelt queries, with that second target."""
    named = {target: Target(target.collection, target.split + SUFFIX) for target in facts.targets}
    return [(clean, typos) for clean, typos in named.items() if typos in facts.targets]


def losses(facts: Facts, clean: Target, typos: Target, measure: str) -> dict[str, Difference]:
    """Subtract each system's values of the queries as they are from those of the misspelt ones.

    The differences have Holm's correction over the systems.
    """
    gaps = {}
    for system in facts.systems:
        before = facts.values.get((system, clean, measure))
        after = facts.values.get((system, typos, measure))
        if before is not None and after is not None:
            gaps[system] = paired(after.to_numpy(), before.reindex(after.index).to_numpy())
    return dict(zip(gaps, corrected([*gaps.values()]), strict=True))


def _points(mean: float) -> Cell:
    return Cell(formats.points(mean), 100 * mean)
