"""Collections that no query was trained on: the table of the field, nDCG@10 for every system, and the average."""

from __future__ import annotations

from collections.abc import Mapping

from cdmae import formats
from cdmae.report.charts import Figure
from cdmae.report.comparisons import masking_pairs
from cdmae.report.facts import Facts
from cdmae.report.sections import MOST_SETS, Section, Sets, difference_figure, in_domain, main_measure, zero_shot_sets
from cdmae.report.sections.results import against_baseline, set_column
from cdmae.report.tables import Table, highlight

WIDE = 8  # more columns than this are turned into rows, or cut into several tables


def section(facts: Facts) -> Section | None:
    """Show one table, what there is fewer of across, and how far the systems are from the baseline on average."""
    sets = {name: [targets] for name, targets in zero_shot_sets(facts).items()}
    if not sets:
        return None
    together = [targets for [targets] in sets.values()]
    figures = [against_baseline(facts, "Zero-shot average", together)] if len(sets) > 1 else []
    figures += [importance_minus_uniform(facts, sets)]
    corpora = {entry.get("collection") for entry in facts.entries("encoders").values()}
    values = {
        "facts": facts,
        "seen": sorted({target.collection for targets in together for target in targets} & corpora),
        "legend_is_above": bool(in_domain(facts)),
    }
    tables = across(facts, {**sets, "average": together} if len(sets) > 1 else sets)
    return Section("zero-shot", values, tables, [figure for figure in figures if figure])


def across(facts: Facts, sets: Mapping[str, Sets]) -> list[Table]:
    """Set systems down and collections across; with many collections the other way round, a few systems to a table."""
    measure = main_measure(facts, next(iter(sets.values())))
    columns = highlight([set_column(facts, group, measure) for group in sets.values()])
    caption = f"{formats.measure_name(measure)} on collections whose queries were not trained on"
    if len(sets) <= WIDE:
        return [Table("zero-shot", caption, ["system", *sets], list(zip(facts.systems, *columns, strict=True)))]
    tables = []
    for start in range(0, len(facts.systems), WIDE):
        some = slice(start, start + WIDE)
        body = [[head, *cells[some]] for head, cells in zip(sets, columns, strict=True)]
        name, more = ("zero-shot", "") if start == 0 else (f"zero-shot-{start // WIDE + 1}", ", continued")
        tables.append(Table(name, caption + more, ["collection", *facts.systems[some]], body))
    return tables


def importance_minus_uniform(facts: Facts, sets: Mapping[str, Sets]) -> Figure | None:
    """Draw what masking by importance is worth on each collection, where the first screen has not said it."""
    if not masking_pairs(facts) or len(sets) <= MOST_SETS:
        return None
    a, b = masking_pairs(facts)[0]
    pairs = [(name, a, b, group) for name, group in sets.items()]
    return difference_figure(facts, "zero-shot", "Importance-aware minus uniform, zero-shot", pairs)
