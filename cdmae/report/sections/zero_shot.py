"""Collections that no query was trained on: the table of the field, nDCG@10 for every system, and the average."""

from __future__ import annotations

import math

from cdmae import formats
from cdmae.report.charts import rows
from cdmae.report.comparisons import masking_pairs
from cdmae.report.facts import Facts, Target
from cdmae.report.figures import Figure
from cdmae.report.markup import Markup
from cdmae.report.sections import (
    NOISE_AXIS,
    Section,
    colour,
    difference_row,
    panels,
    paragraphs,
    set_difference,
    set_noise,
    zero_shot_sets,
)
from cdmae.report.sections.answer import MOST_SETS
from cdmae.report.sections.results import measure_column
from cdmae.report.tables import Cell, Table, highlight

WIDE = 8  # more columns than this are turned into rows, or cut into several tables


def section(facts: Facts) -> Section | None:
    """One table: what there is fewer of stands across."""
    sets = zero_shot_sets(facts)
    if not sets:
        return None
    tables = across(facts, sets)
    figures = [figure for figure in [importance_minus_uniform(facts, sets)] if figure]
    body = [paragraphs(_lead(facts, sets)), *(table.html() for table in tables), panels(figures)]
    return Section("zero-shot", "Zero-shot", "Zero-shot", Markup("".join(body)), tables=tables, figures=figures)


def across(facts: Facts, sets: dict[str, list[Target]]) -> list[Table]:
    """Systems down and collections across; with many collections the other way round, a few systems to a table."""
    measure = facts.main_measure(next(iter(sets.values()))[0])
    columns = highlight(
        [*(_column(facts, targets, measure) for targets in sets.values()), *_average(facts, sets, measure)]
    )
    heads = [*sets, *(["average"] if len(sets) > 1 else [])]
    caption = f"{formats.measure_name(measure)} on collections whose queries were not trained on"
    if len(heads) <= WIDE:
        body = [[name, *cells] for name, *cells in zip(facts.systems, *columns, strict=True)]
        return [Table("zero-shot", caption, ["system", *heads], body)]
    tables = []
    for start in range(0, len(facts.systems), WIDE):
        some = slice(start, start + WIDE)
        body = [[head, *cells[some]] for head, cells in zip(heads, columns, strict=True)]
        name, more = ("zero-shot", "") if start == 0 else (f"zero-shot-{start // WIDE + 1}", ", continued")
        tables.append(Table(name, caption + more, ["collection", *facts.systems[some]], body))
    return tables


def importance_minus_uniform(facts: Facts, sets: dict[str, list[Target]]) -> Figure | None:
    """What masking by importance is worth on each collection, where the first screen has not said it."""
    pairs = masking_pairs(facts)
    if not pairs or len(sets) <= MOST_SETS:
        return None
    entries = []
    for name, targets in sets.items():
        found = set_difference(facts, *pairs[0], targets)
        if found:
            entries.append(difference_row(name, found, colour(facts, pairs[0][0]), set_noise(facts, targets)))
    title = "Importance-aware minus uniform, zero-shot"
    return rows("zero-shot", title, entries, axis=NOISE_AXIS) if entries else None


def set_value(facts: Facts, system: str, targets: list[Target], measure: str) -> float:
    """The mean over the targets of a set; nan unless all were measured."""
    return math.fsum(facts.value(system, target, measure) for target in targets) / len(targets)


def _column(facts: Facts, targets: list[Target], measure: str) -> list[Cell]:
    if len(targets) == 1:
        return measure_column(facts, targets[0], measure)
    return [_plain(set_value(facts, name, targets, measure)) for name in facts.systems]


def _average(facts: Facts, sets: dict[str, list[Target]], measure: str) -> list[list[Cell]]:
    """The mean over the collections, for systems that have them all."""
    if len(sets) < 2:
        return []
    values = [[set_value(facts, name, targets, measure) for targets in sets.values()] for name in facts.systems]
    return [[_plain(math.fsum(each) / len(each)) for each in values]]


def _plain(value: float) -> Cell:
    return Cell(formats.points(value), 100 * value if value == value else None)


def _lead(facts: Facts, sets: dict[str, list[Target]]) -> str:
    corpora = {each.get("collection") for each in facts.entries("encoders").values()}
    seen = [target.collection for targets in sets.values() for target in targets if target.collection in corpora]
    text = "Nothing was trained on queries of these collections, as in the paper's table of BEIR."
    if seen:
        return f"{text} The passages of {formats.listed(sorted(set(seen)))} were part of a pre-training."
    return f"{text} Their passages were not part of any pre-training either."
