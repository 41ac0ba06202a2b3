"""How long to pre-train: retrievers that start from steps of one pre-training, and what the later step is worth."""

from __future__ import annotations

from cdmae import formats
from cdmae.report.charts import Figure, Series, lines
from cdmae.report.comparisons import growth
from cdmae.report.facts import Facts, Target
from cdmae.report.sections import Section, difference_cells, encoder_colour, in_domain, number_cell, system_cell
from cdmae.report.tables import Table


def section(facts: Facts) -> Section | None:
    """Show a figure per target, and a table of the main one."""
    targets = in_domain(facts) or facts.targets[:1]
    if not targets or not growth(facts):
        return None
    figures = [over_steps(facts, target, facts.main_measure(target)) for target in targets]
    return Section("growth", tables=[growth_table(facts, targets[0])], figures=figures)


def over_steps(facts: Facts, target: Target, measure: str) -> Figure:
    """Draw the measure over the steps, a line per pre-training."""
    series = []
    for encoder, points in growth(facts).items():
        heights = [100 * facts.value(system, target, measure) for _, system in points]
        series.append(Series(encoder, [step for step, _ in points], heights, encoder_colour(facts, encoder)))
    name = formats.measure_name(measure)
    title = f"{name} after so many steps, {target}"
    file = f"steps-{target.collection}-{target.split}"
    return lines(file, title, series, x_axis="pre-training steps", y_axis=name, markers=True)


def growth_table(facts: Facts, target: Target) -> Table:
    """Tabulate per step the measure, and its distance from the step before."""
    measure, body = facts.main_measure(target), []
    for encoder, points in growth(facts).items():
        before = points[0][1]
        for step, system in points:
            row = [encoder, number_cell(step, formats.count), system_cell(facts, system, [[target]], measure)]
            body.append([*row, *difference_cells(facts.difference(system, before, target, measure))])
            before = system
    head = ["encoder", "steps", formats.measure_name(measure), "over the step before", "95 % interval", "p"]
    return Table("steps", f"{formats.measure_name(measure)} on {target} after so many steps", head, body)
