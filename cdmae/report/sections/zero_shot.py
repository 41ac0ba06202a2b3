"""Collections that no query was trained on: the table of the field, nDCG@10 for every system, and the average."""

from __future__ import annotations

from cdmae import formats
from cdmae.report.charts import rows
from cdmae.report.comparisons import masking_pairs
from cdmae.report.facts import Facts, Target
from cdmae.report.figures import Figure
from cdmae.report.markup import Markup, tag
from cdmae.report.sections import (
    MOST_SETS,
    NOISE_AXIS,
    Section,
    colour,
    difference_row,
    in_domain,
    main_measure,
    mean_difference,
    mean_noise,
    panels,
    paragraphs,
    zero_shot_sets,
)
from cdmae.report.sections.results import against_baseline, legend, set_column
from cdmae.report.tables import Table, highlight

WIDE = 8  # more columns than this are turned into rows, or cut into several tables


def section(facts: Facts) -> Section | None:
    """One table, what there is fewer of across, and how far the systems are from the baseline on average."""
    sets = zero_shot_sets(facts)
    if not sets:
        return None
    tables = across(facts, sets)
    found = [importance_minus_uniform(facts, sets)]
    if len(sets) > 1:
        found.insert(0, against_baseline(facts, "Zero-shot average", list(sets.values())))
    figures = [figure for figure in found if figure]
    class_ = "beside" if len(tables) == 1 and figures else None
    shown = tag("div", [table.html() for table in tables], panels(figures), class_=class_)
    how = None if in_domain(facts) else tag("p", legend(facts), class_="note")  # the results above have said it
    body = Markup("".join([paragraphs(_lead(facts, sets)), how or "", shown]))
    return Section("zero-shot", "Zero-shot", "Zero-shot", body, tables=tables, figures=figures)


def across(facts: Facts, sets: dict[str, list[Target]]) -> list[Table]:
    """Systems down and collections across; with many collections the other way round, a few systems to a table."""
    groups = {name: [targets] for name, targets in sets.items()}
    if len(sets) > 1:
        groups["average"] = list(sets.values())
    measure = main_measure(facts, next(iter(groups.values())))
    columns = highlight([set_column(facts, group, measure) for group in groups.values()])
    caption = f"{formats.measure_name(measure)} on collections whose queries were not trained on"
    if len(groups) <= WIDE:
        body = [[name, *cells] for name, *cells in zip(facts.systems, *columns, strict=True)]
        return [Table("zero-shot", caption, ["system", *groups], body)]
    tables = []
    for start in range(0, len(facts.systems), WIDE):
        some = slice(start, start + WIDE)
        body = [[head, *cells[some]] for head, cells in zip(groups, columns, strict=True)]
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
        found = mean_difference(facts, *pairs[0], [targets])
        if found:
            entries.append(difference_row(name, found, colour(facts, pairs[0][0]), mean_noise(facts, [targets])))
    title = "Importance-aware minus uniform, zero-shot"
    return rows("zero-shot", title, entries, axis=NOISE_AXIS) if entries else None


def _lead(facts: Facts, sets: dict[str, list[Target]]) -> str:
    corpora = {each.get("collection") for each in facts.entries("encoders").values()}
    seen = [target.collection for targets in sets.values() for target in targets if target.collection in corpora]
    text = "Nothing was trained on queries of these collections, as in the paper's table of BEIR."
    if seen:
        return f"{text} The passages of {formats.listed(sorted(set(seen)))} were part of a pre-training."
    return f"{text} Their passages were not part of any pre-training either."
