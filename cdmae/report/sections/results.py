"""Every system on every collection of its domain: a table with all measures, and the distance from the baseline."""

from __future__ import annotations

from cdmae import formats, significance
from cdmae.report.charts import rows
from cdmae.report.comparisons import noise
from cdmae.report.facts import Facts, Target
from cdmae.report.figures import Figure
from cdmae.report.markup import Markup, fill, tag
from cdmae.report.sections import DOWN, NOISE_AXIS, UP, Section, colour, difference_row, in_domain, panels, paragraphs
from cdmae.report.tables import Cell, Table, highlight


def section(facts: Facts) -> Section | None:
    """One table per target, with the differences from the baseline beside it."""
    targets = in_domain(facts)
    if not targets:
        return None
    tables = [measures_table(facts, target) for target in targets]
    figures = [figure for target in targets if (figure := against_baseline(facts, target))]
    by_name = {figure.name: figure for figure in figures}
    body = [paragraphs(legend(facts))]
    for target, table in zip(targets, tables, strict=True):
        figure = by_name.get(f"baseline-{target.collection}-{target.split}")
        body.append(tag("div", table.html(), panels([figure]) if figure else None, class_="beside"))
    return Section("results", "Results", "Results", Markup("".join(body)), tables=tables, figures=figures)


def legend(facts: Facts) -> Markup:
    """How to read the tables."""
    text = (
        "All measures are means over the queries, times 100. MRR@10 is the mean of RR@10, one over the rank of the "
        "first relevant passage within ten. The best of a column is <b>bold</b>, the second <u>underlined</u>."
    )
    if facts.baseline and len(facts.systems) > 1:
        text += (
            f" {UP}\N{NO-BREAK SPACE}and {DOWN}\N{NO-BREAK SPACE}mark systems above and below {{baseline}}, the "
            "baseline: a paired test over the queries with p < .05, corrected (Holm) for the number of systems in the "
            "column."
        )
    return fill(text.replace("p < .05", "p&nbsp;&lt;&nbsp;.05"), baseline=tag("strong", facts.baseline))


def measures_table(facts: Facts, target: Target) -> Table:
    """Systems down, measures across."""
    columns = highlight([measure_column(facts, target, measure) for measure in facts.measures])
    body = [[name, *cells] for name, *cells in zip(facts.systems, *columns, strict=True)]
    body = [row for row in body if any(isinstance(cell, Cell) and cell.value is not None for cell in row)]
    caption = f"{target}, {formats.plural(facts.queries(target), 'query')}"
    head = ["system", *map(formats.measure_name, facts.measures)]
    return Table(f"results-{target.collection}-{target.split}", caption, head, body)


def measure_column(facts: Facts, target: Target, measure: str) -> list[Cell]:
    """A cell per system: its mean as points, marked where it differs from the baseline."""
    tested = {name: facts.p_value(name, facts.baseline, target, measure) for name in facts.systems}
    tested = {name: p for name, p in tested.items() if p is not None}
    corrected = dict(zip(tested, significance.holm(list(tested.values())), strict=True))
    cells = []
    for name in facts.systems:
        value, mark, note = facts.value(name, target, measure), "", ""
        if corrected.get(name, 1.0) < 0.05:
            gain = value - facts.value(facts.baseline, target, measure)
            mark = UP if gain > 0 else DOWN
            note = f"{formats.signed(gain)} against {facts.baseline}, {formats.probability(corrected[name])}"
        cells.append(Cell(formats.points(value), 100 * value if value == value else None, mark=mark, note=note))
    return cells


def against_baseline(facts: Facts, target: Target) -> Figure | None:
    """The differences from the baseline with their intervals, in the target's main measure."""
    measure = facts.main_measure(target)
    entries = []
    for name in facts.systems:
        found = facts.difference(name, facts.baseline, target, measure) if facts.baseline else None
        if found:
            entries.append(difference_row(name, found, colour(facts, name), noise(facts, target, measure)))
    if not entries:
        return None
    title = f"{target}: {formats.measure_name(measure)} minus {facts.baseline}\N{RIGHT SINGLE QUOTATION MARK}s"
    name = f"baseline-{target.collection}-{target.split}"
    return rows(name, title, entries, axis=NOISE_AXIS)
