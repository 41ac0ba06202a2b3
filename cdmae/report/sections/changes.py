"""One change at a time: retrievers that are another one with one setting changed; how many hard negatives; seeds."""

from __future__ import annotations

from cdmae import formats
from cdmae.report.charts import Series, lines
from cdmae.report.comparisons import Change, arms, changes, repeated, seed_deviation
from cdmae.report.facts import Facts, Target
from cdmae.report.figures import Figure
from cdmae.report.markup import Markup
from cdmae.report.sections import (
    LONG,
    Section,
    difference_cells,
    folded,
    main_target,
    panels,
    paragraphs,
    seeds,
    system_cell,
)
from cdmae.report.tables import Table


def section(facts: Facts) -> Section | None:
    """A row per change; a figure where the group was varied; a table of repetitions where only the seed was."""
    target, found = main_target(facts), changes(facts)
    if not target or not (found or repeated(facts)):
        return None
    tables = [table for table in (change_table(facts, target, found), seed_table(facts, target)) if table.rows]
    figures = [figure for figure in [hard_negatives(facts, target)] if figure]
    lead = "Each row is a system that differs from its reference in one setting: what the setting is worth here."
    shown = [folded(each) if each.name == "seeds" and len(each.rows) > LONG else each.html() for each in tables]
    body = [paragraphs(lead if found else None), *shown, panels(figures)]
    return Section("changes", "One change at a time", "Changes", Markup("".join(body)), tables=tables, figures=figures)


def change_table(facts: Facts, target: Target, found: list[Change]) -> Table:
    """The changed setting, both values, and the difference it made."""
    measure, body = facts.main_measure(target), []
    for change in found:
        difference = facts.difference(change.system, change.reference, target, measure)
        if not difference:
            continue
        body.append(
            [
                change.setting,
                f"{change.before} \N{RIGHTWARDS ARROW} {change.after}",
                f"{change.reference} \N{RIGHTWARDS ARROW} {change.system}",
                system_cell(facts, change.reference, target, measure),
                system_cell(facts, change.system, target, measure),
                *difference_cells(difference),
            ]
        )
    head = ["setting", "change", "systems", "before", "after", "difference", "95 % interval", "p"]
    caption = f"{formats.measure_name(measure)} on {target}, one setting changed"
    return Table("changes", caption, head, body, texts=["change", "systems"])


def seed_table(facts: Facts, target: Target) -> Table:
    """The same recipe with other seeds."""
    measure, body = facts.main_measure(target), []
    for group in repeated(facts):
        values = [value for name in group for value in facts.by_seed(name, target, measure)]
        body.append([formats.listed(group), ", ".join(map(formats.points, values))])
    deviation = seed_deviation(facts, target, measure)
    which = seeds(facts) if facts.repeated else "other seeds"
    caption = f"The same recipe with {which}: {formats.measure_name(measure)} on {target}"
    if body:
        caption += f"; standard deviation {100 * deviation:.2f} points"
    return Table("seeds", caption, ["systems", "values"], body)


def hard_negatives(facts: Facts, target: Target) -> Figure | None:
    """The paper's figure 4: passages per query against the measure, where three sizes of group were run."""
    measure = facts.main_measure(target)
    best = arms(facts, "stage.group")
    if len(best) < 3:
        return None
    sizes = sorted(best)
    values = [100 * facts.value(best[size], target, measure) for size in sizes]
    title = f"Passages per query, {formats.measure_name(measure)} on {target}"
    return lines(
        "hard-negatives", title, [Series(formats.measure_name(measure), list(range(len(sizes))), values)],
        x_axis="group size N (one positive, the rest hard negatives)", y_axis=formats.measure_name(measure),
        x_names=[str(size) for size in sizes], markers=True,
    )  # fmt: skip
