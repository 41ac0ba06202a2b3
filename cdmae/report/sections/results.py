"""Every system on every collection: an overview, the distance from the baseline, and tables with all measures.

Collections that no query was trained on have a section of their own: the table of the field, nDCG@10 and the average.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pandas as pd

from cdmae import formats
from cdmae.report.charts import Figure
from cdmae.report.columns import MOST_SETS, Column, everywhere, in_domain, together
from cdmae.report.columns import zero_shot as zero_shot_columns
from cdmae.report.comparisons import masking_pairs
from cdmae.report.facts import Facts
from cdmae.report.sections import Section, difference_figure
from cdmae.report.tables import Table, highlight

# by whether the difference is positive: beyond the noise of one seed, and within it
SURE, DOUBTFUL = {True: "▲", False: "▼"}, {True: "△", False: "▽"}
WIDE = 8  # more zero-shot columns than this are turned into rows, or cut into several tables


def section(facts: Facts) -> Section | None:
    """Show the overview with the distance from the baseline beside it, then the collections of the domain."""
    columns = everywhere(facts)
    tables = [measures_table(column) for column in in_domain(facts)]
    if not tables:
        return None
    if len(columns) > 1:
        overview = _across({column.head: column for column in columns})
        tables.insert(0, Table.of("overview", "Every system on every collection", overview))
    return Section("results", {"facts": facts}, tables, [against_baseline(column) for column in columns])


def measures_table(column: Column) -> Table:
    """Set systems down, all measures of the column's target across."""
    facts, target = column.facts, column.target
    columns = [Column.of(facts, target, measure) for measure in facts.measures_of(target)]
    frame = _across({column.unit: column for column in columns})
    known = frame.iloc[:, 1:].map(lambda cell: cell.value is not None).any(axis=1)
    caption = f"{target}, {formats.plural(facts.queries(target), 'query')}"
    return Table.of(f"results-{target.collection}-{target.split}", caption, frame[known])


def _across(columns: Mapping[str, Column]) -> pd.DataFrame:
    """Set systems down and columns across under their names, the best of each marked."""
    cells = pd.DataFrame({name: system_cells(column) for name, column in columns.items()})
    return cells.apply(highlight).reset_index(names="system")


def system_cells(column: Column) -> pd.Series:
    """Make a cell per system: its mean as points; on a single target marked where it differs from the baseline."""
    facts, cells = column.facts, {}
    single = sum(map(len, column.sets)) == 1
    gaps = column.compared(facts.systems, facts.baseline) if single else {}
    for name in facts.systems:
        mark, note, gap = "", "", gaps.get(name)
        if gap:
            note = f"{formats.signed(gap.difference)} against {facts.baseline}, {formats.probability(gap.p)}"
        if gap and gap.p < 0.05:
            mark = (SURE if abs(gap.difference) > column.noise else DOUBTFUL)[gap.difference > 0]
        cells[name] = column.cell(name, mark=mark, note=note)
    return pd.Series(cells)


def against_baseline(column: Column) -> Figure | None:
    """Draw the differences from the baseline with their intervals.

    Without BM25 and fusions, where there are others: far off, they would flatten the scale.
    """
    facts = column.facts
    others = [system for system in facts.systems if system != facts.baseline] if facts.baseline else []
    neural = [system for system in others if facts.system(system).get("kind") not in ("bm25", "fusion")]
    pairs = [(system, system, facts.baseline, column) for system in neural or others]
    file = "-".join(["baseline", *column.name.lower().replace(",", "").split()])
    return difference_figure(file, f"{column.name}: {column.unit} minus {facts.baseline}’s", pairs, beside=True)


def zero_shot(facts: Facts) -> Section | None:
    """Show one table, what there is fewer of across, and how far the systems are from the baseline on average."""
    columns, pairs, figures = zero_shot_columns(facts), masking_pairs(facts), []
    if not columns:
        return None
    tables = _zero_shot_tables(columns)
    if len(columns) > 1:
        figures.append(against_baseline(together(columns, "Zero-shot average")))
    if pairs and len(columns) > MOST_SETS:  # the first screen has not said it
        every = [(column.name, *pairs[0], column) for column in columns]
        figures.append(difference_figure("zero-shot", "Importance-aware minus uniform, zero-shot", every))
    corpora = {entry.get("collection") for entry in facts.entries("encoders").values()}
    measured = {target.collection for column in columns for some in column.sets for target in some}
    values = {"facts": facts, "seen": sorted(measured & corpora), "legend_is_above": bool(in_domain(facts))}
    return Section("zero-shot", values, tables, figures)


def _zero_shot_tables(columns: list[Column]) -> list[Table]:
    """Set systems down and collections across; with many collections the other way round, a few systems to a table."""
    first = columns[0]
    if len(columns) > 1:
        columns = [*columns, together(columns, "average")]
    frame = _across({column.name: replace(column, measure=first.measure) for column in columns})
    caption = f"{first.unit} on collections whose queries were not trained on"
    if len(columns) <= WIDE:
        return [Table.of("zero-shot", caption, frame)]
    turned, tables = frame.set_index("system").T, []
    for start in range(0, len(first.facts.systems), WIDE):
        name, more = ("zero-shot", "") if start == 0 else (f"zero-shot-{start // WIDE + 1}", ", continued")
        some = turned.iloc[:, start : start + WIDE].reset_index(names="collection")
        tables.append(Table.of(name, caption + more, some))
    return tables
