"""How long to pre-train: retrievers that start from steps of one pre-training, and what the later step is worth."""

from __future__ import annotations

from cdmae import formats
from cdmae.report.charts import Series, lines
from cdmae.report.comparisons import growth
from cdmae.report.facts import Facts, Target
from cdmae.report.figures import Figure
from cdmae.report.markup import Markup
from cdmae.report.palette import assign
from cdmae.report.sections import (
    GREY,
    Section,
    difference_cells,
    in_domain,
    main_target,
    panels,
    paragraphs,
    system_cell,
)
from cdmae.report.tables import Cell, Table


def section(facts: Facts) -> Section | None:
    """A figure per target, and a table of the main one."""
    target = main_target(facts)
    if not target or not growth(facts):
        return None
    figures = [over_steps(facts, each, facts.main_measure(each)) for each in in_domain(facts) or [target]]
    table = growth_table(facts, target)
    lead = (
        "Encoders taken at several steps of one pre-training, whose learning rate goes on falling behind them, and "
        "fine-tuned alike. Step 0 is the encoder as it starts."
    )
    body = Markup("".join([paragraphs(lead), panels(figures), table.html()]))
    return Section("growth", "How long to pre-train", "Steps", body, tables=[table], figures=figures)


def over_steps(facts: Facts, target: Target, measure: str) -> Figure:
    """The measure over the steps, a line per pre-training."""
    colours = assign(facts.entries("encoders"))
    series = [
        Series(
            encoder,
            [step for step, _ in points],
            [100 * facts.value(system, target, measure) for _, system in points],
            colours.get(encoder, GREY),
        )
        for encoder, points in growth(facts).items()
    ]
    name = f"steps-{target.collection}-{target.split}"
    title = f"{formats.measure_name(measure)} after so many steps, {target}"
    return lines(name, title, series, x_axis="pre-training steps", y_axis=formats.measure_name(measure), markers=True)


def growth_table(facts: Facts, target: Target) -> Table:
    """Per step the measure, and its distance from the step before."""
    measure, body = facts.main_measure(target), []
    for encoder, points in growth(facts).items():
        for place, (step, system) in enumerate(points):
            before = points[place - 1][1] if place else system
            row = [encoder, Cell(formats.count(step), step), system_cell(facts, system, target, measure)]
            body.append([*row, *difference_cells(facts.difference(system, before, target, measure))])
    head = ["encoder", "steps", formats.measure_name(measure), "over the step before", "95 % interval", "p"]
    return Table("steps", f"{formats.measure_name(measure)} on {target} after so many steps", head, body)
