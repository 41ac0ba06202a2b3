"""Compare every system on every collection: overview, difference from the baseline, all measures.

Collections without training queries have a section of their own, with the customary table: nDCG@10
per collection and the average.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

import pandas as pd

from cdmae import formats
from cdmae.evaluation.significance import corrected
from cdmae.report.charts import Figure
from cdmae.report.columns import (
    MOST_SETS,
    Column,
    everywhere,
    in_domain,
    together,
    zero_shot_measures,
)
from cdmae.report.comparisons import masking_pairs
from cdmae.report.facts import Facts
from cdmae.report.sections import Section, difference_figure
from cdmae.report.tables import Table, highlight

# marks of a significant difference by its sign, and the marks where each system has one training
SURE = {True: "▲", False: "▼"}
ONE_TRAINING = {True: "△", False: "▽"}
EXCEEDS = "exceeds"  # the column with the numbers of the systems that a system exceeds
WIDE = 8  # above this number, zero-shot columns become rows, or are divided among several tables


def section(facts: Facts) -> Section | None:
    """Show the overview with the difference from the baseline, then the in-domain collections."""
    columns = everywhere(facts)
    tables = [measures_table(column) for column in in_domain(facts)]
    if not tables:
        return None
    if len(columns) > 1:
        overview = _across({column.head: column for column in columns})
        tables.insert(0, Table.of("overview", "Every system on every collection", overview))
    figures = [against_baseline(column) for column in columns]
    return Section("results", {"facts": facts}, tables, figures)


def measures_table(column: Column) -> Table:
    """Tabulate all measures of the column's target, with a row per system."""
    facts = column.facts
    target = column.target
    columns = [Column.of(facts, target, measure) for measure in facts.measures_of(target)]
    frame = _across({column.unit: column for column in columns})
    measured = frame.iloc[:, 1:].map(lambda cell: cell.value is not None).any(axis=1)
    frame = frame[measured]
    frame.insert(1, "#", [str(number) for number in range(1, len(frame) + 1)])
    frame[EXCEEDS] = exceeded(column, list(frame["system"]))
    caption = f"{target}, {formats.plural(facts.queries(target), 'query')}"
    file = f"results-{target.collection}-{target.split}"
    return Table.of(file, caption, frame, texts=[EXCEEDS])


def exceeded(column: Column, systems: Sequence[str]) -> list[str]:
    """List, for each system, the numbers of the systems that it significantly exceeds.

    The numbers are positions in `systems`, from 1. Holm's correction covers all pairs.
    """
    numbers = {name: str(number) for number, name in enumerate(systems, 1)}
    gaps = {}
    for pair in itertools.combinations(systems, 2):
        gap = column.alone(*pair)
        if gap:
            gaps[pair] = gap
    below: dict[str, list[str]] = {name: [] for name in systems}
    for (a, b), gap in zip(gaps, corrected([*gaps.values()]), strict=True):
        if gap.verdict == "better":
            below[a].append(numbers[b])
        elif gap.verdict == "worse":
            below[b].append(numbers[a])
    return [" ".join(sorted(found, key=int)) for found in below.values()]


def _across(columns: Mapping[str, Column]) -> pd.DataFrame:
    """Make a row per system and a column per name, and mark the best value of each column."""
    cells = pd.DataFrame({name: system_cells(column) for name, column in columns.items()})
    return cells.apply(highlight).reset_index(names="system")


def system_cells(column: Column) -> pd.Series:
    """Make a cell per system: its mean in points.

    On a single target a mark shows a significant difference from the baseline.
    """
    facts = column.facts
    single = sum(map(len, column.sets)) == 1
    gaps = column.compared(facts.systems, facts.baseline) if single else {}
    cells = {}
    for name in facts.systems:
        mark = ""
        note = ""
        gap = gaps.get(name)
        if gap:
            p = formats.probability(gap.p)
            note = f"against {facts.baseline}: {formats.signed(gap.difference)}, {p}"
        if gap and gap.significant:
            marks = ONE_TRAINING if gap.seeds == 1 else SURE
            mark = marks[gap.difference > 0]
        cells[name] = column.cell(name, mark=mark, note=note)
    return pd.Series(cells)


def against_baseline(column: Column) -> Figure | None:
    """Draw the differences from the baseline with their intervals.

    BM25 and fusions are omitted if there are other systems, because their differences are so large
    that the others would be too short to compare.
    """
    facts = column.facts
    if not facts.baseline:
        return None
    others = [system for system in facts.systems if system != facts.baseline]
    neural = [name for name in others if facts.kind(name).neural]
    pairs = [(name, name, facts.baseline, column) for name in neural or others]
    file = _file_name(f"baseline {column.head}")
    title = f"{column.name}: {column.unit} minus {facts.baseline}’s"
    return difference_figure(file, title, pairs, beside=True)


def _file_name(text: str) -> str:
    """Turn a text into a file name in lower case, with hyphens."""
    return re.sub(r"[^\w.]+", "-", text.lower())


def zero_shot(facts: Facts) -> Section | None:
    """Show a table for each measure, and the average difference from the baseline."""
    measured = zero_shot_measures(facts)
    if not measured:
        return None
    tables = [table for columns in measured for table in _zero_shot_tables(columns)]
    columns = measured[-1]
    others = [table for each in _further(measured) for table in _zero_shot_tables(each)]
    figures = []
    if len(columns) > 1:
        figures.append(against_baseline(together(columns, "Zero-shot average")))
    pairs = masking_pairs(facts)
    if pairs and len(columns) > MOST_SETS:  # the first screen shows only their mean
        every = [(column.name, *pairs[0], column) for column in columns]
        title = "{} minus {}, zero-shot".format(*pairs[0])
        figures.append(difference_figure("zero-shot", title, every))
    pretrained_on = {entry.get("collection") for entry in facts.entries("encoders").values()}
    targets = [target for column in columns for some in column.sets for target in some]
    values = {
        "facts": facts,
        "seen": sorted(pretrained_on & {target.collection for target in targets}),
        "legend_is_above": bool(in_domain(facts)),
        "wide": len(tables) > 2,
        "shown": tables,
        "others": others,
    }
    return Section("zero-shot", values, [*tables, *others], figures)


def _further(measured: list[list[Column]]) -> list[list[Column]]:
    """List the zero-shot columns in the measures without a table so far, if all sets have them."""
    columns = measured[0]
    facts = columns[0].facts
    targets = [target for column in columns for some in column.sets for target in some]
    done = {column.measure for some in measured for column in some}
    return [
        [replace(column, measure=measure) for column in columns]
        for measure in facts.measures_of(targets[0])
        if measure not in done and all(measure in facts.measures_of(target) for target in targets)
    ]


def _zero_shot_tables(columns: list[Column]) -> list[Table]:
    """Tabulate systems by collection, with the average.

    If there are many collections, they become the rows of several tables with a few systems each.
    """
    first = columns[0]
    shown = [*columns, together(columns, "average")] if len(columns) > 1 else columns
    frame = _across({column.name: replace(column, measure=first.measure) for column in shown})
    caption = f"{first.unit} on collections whose queries were not trained on"
    file = _file_name(f"zero-shot {first.unit}")
    if len(shown) <= WIDE:
        return [Table.of(file, caption, frame)]
    turned = frame.set_index("system").T
    tables = []
    for start in range(0, turned.shape[1], WIDE):
        number = f"-{start // WIDE + 1}" if start else ""
        more = ", continued" if start else ""
        some = turned.iloc[:, start : start + WIDE].reset_index(names="collection")
        tables.append(Table.of(file + number, caption + more, some))
    return tables
