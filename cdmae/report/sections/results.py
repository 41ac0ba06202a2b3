"""Every system on every collection: an overview, the distance from the baseline, and tables with all measures."""

from __future__ import annotations

from collections.abc import Sequence

from cdmae import formats
from cdmae.evaluation import significance
from cdmae.report.charts import rows
from cdmae.report.comparisons import noise
from cdmae.report.facts import Facts, Target
from cdmae.report.figures import Figure
from cdmae.report.markup import Markup, fill, tag
from cdmae.report.sections import (
    NOISE_AXIS,
    Section,
    colour,
    columns,
    difference_row,
    in_domain,
    main_measure,
    mean_difference,
    mean_noise,
    mean_spread,
    mean_value,
    panels,
    system_cell,
    value_cell,
)
from cdmae.report.tables import Cell, Table, highlight

# by whether the difference is positive: beyond the noise of one seed, and within it
SURE = {True: "\N{BLACK UP-POINTING TRIANGLE}", False: "\N{BLACK DOWN-POINTING TRIANGLE}"}
DOUBTFUL = {True: "\N{WHITE UP-POINTING TRIANGLE}", False: "\N{WHITE DOWN-POINTING TRIANGLE}"}


def section(facts: Facts) -> Section | None:
    """The overview with the distance from the baseline beside it, then the collections of the domain one by one."""
    found, targets = columns(facts), in_domain(facts)
    if not targets:
        return None
    tables = [measures_table(facts, target) for target in targets]
    figures = [figure for name, sets in found.items() if (figure := against_baseline(facts, name, sets))]
    body = [tag("p", legend(facts), class_="note")]
    if len(found) > 1:
        tables.insert(0, overview(facts, found))
    beside, rest = tables[0], tables[1:]
    body.append(tag("div", beside.html(), panels(figures[:1]), class_="beside" if figures else None))
    beside_each_other = None if facts.repeated else "pair"  # spreads take the room of as many columns
    body.append(tag("div", [table.html() for table in rest], class_=beside_each_other) if rest else None)
    if figures[1:]:
        body.append(tag("details", tag("summary", "The other differences from the baseline"), panels(figures[1:])))
    return Section("results", "Results", "Results", Markup("".join(filter(None, body))), tables=tables, figures=figures)


def legend(facts: Facts) -> Markup:
    """How to read the tables."""
    text = (
        "Means over the queries, times 100; MRR@10 is the mean of RR@10. The best of a column is <b>bold</b>, the "
        "second <u>underlined</u>."
    )
    if facts.repeated:
        text += (
            " \N{PLUS-MINUS SIGN}: the standard deviation over {seeds} seeds, of which the number is the mean. Tests "
            "compare the queries by their means over the seeds."
        )
    if facts.baseline and len(facts.systems) > 1:
        text += (
            " {up}\N{NO-BREAK SPACE}{down}: above and below the baseline {baseline} in a paired t-test over the "
            "queries, p&nbsp;&lt;&nbsp;.05 after Holm\N{RIGHT SINGLE QUOTATION MARK}s correction for the systems of "
            "the column. {maybe_up}\N{NO-BREAK SPACE}{maybe_down}: the same, but by no more than the noise of one seed."
        )
    return fill(
        text, baseline=tag("strong", facts.baseline), up=SURE[True], down=SURE[False], maybe_up=DOUBTFUL[True],
        maybe_down=DOUBTFUL[False], seeds=len(facts.seeds),
    )  # fmt: skip


def overview(facts: Facts, found: dict[str, list[list[Target]]]) -> Table:
    """Systems down, collections across, each in its main measure."""
    cells = highlight([set_column(facts, sets, main_measure(facts, sets)) for sets in found.values()])
    head = [f"{name}, {formats.measure_name(main_measure(facts, sets))}" for name, sets in found.items()]
    body = [[name, *row] for name, *row in zip(facts.systems, *cells, strict=True)]
    return Table("overview", "Every system on every collection", ["system", *head], body)


def measures_table(facts: Facts, target: Target) -> Table:
    """Systems down, measures across."""
    measures = facts.measures_of(target)
    cells = highlight([measure_column(facts, target, measure) for measure in measures])
    body = [[name, *row] for name, *row in zip(facts.systems, *cells, strict=True)]
    body = [row for row in body if any(isinstance(cell, Cell) and cell.value is not None for cell in row)]
    caption = f"{target}, {formats.plural(facts.queries(target), 'query')}"
    head = ["system", *map(formats.measure_name, measures)]
    return Table(f"results-{target.collection}-{target.split}", caption, head, body)


def set_column(facts: Facts, sets: Sequence[Sequence[Target]], measure: str) -> list[Cell]:
    """A cell per system for sets of targets; without marks where they are several."""
    if [len(each) for each in sets] == [1]:
        return measure_column(facts, sets[0][0], measure)
    return [
        value_cell(mean_value(facts, name, sets, measure), spread=mean_spread(facts, name, sets, measure))
        for name in facts.systems
    ]


def measure_column(facts: Facts, target: Target, measure: str) -> list[Cell]:
    """A cell per system: its mean as points, marked where it differs from the baseline."""
    differences = {name: facts.difference(name, facts.baseline, target, measure) for name in facts.systems}
    tested = {name: difference.p for name, difference in differences.items() if difference}
    corrected = dict(zip(tested, significance.holm(list(tested.values())), strict=True))
    cells = []
    for name in facts.systems:
        value, mark, note = facts.value(name, target, measure), "", ""
        if corrected.get(name, 1.0) < 0.05:
            gain = value - facts.value(facts.baseline, target, measure)
            mark = (SURE if abs(gain) > noise(facts, target, measure) else DOUBTFUL)[gain > 0]
            note = f"{formats.signed(gain)} against {facts.baseline}, {formats.probability(corrected[name])}"
        cells.append(system_cell(facts, name, target, measure, mark=mark, note=note))
    return cells


def against_baseline(facts: Facts, name: str, sets: Sequence[Sequence[Target]]) -> Figure | None:
    """The differences from the baseline with their intervals, in the main measure of sets of targets.

    Without BM25 and fusions, where there are others: far off, they would flatten the scale.
    """
    others = [name for name in facts.systems if name != facts.baseline] if facts.baseline else []
    kinds = {name: facts.entries("systems").get(name, {}).get("kind") for name in others}
    neural = [name for name, kind in kinds.items() if kind not in ("bm25", "fusion")]
    entries = []
    for system in neural or others:
        found = mean_difference(facts, system, facts.baseline, sets)
        if found:
            entries.append(difference_row(system, found, colour(facts, system), mean_noise(facts, sets)))
    if not entries:
        return None
    measure = formats.measure_name(main_measure(facts, sets))
    title = f"{name}: {measure} minus {facts.baseline}\N{RIGHT SINGLE QUOTATION MARK}s"
    file = "-".join(name.lower().replace(",", "").split())
    return rows(f"baseline-{file}", title, entries, axis=NOISE_AXIS, beside=True)
