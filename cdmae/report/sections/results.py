"""Every system on every collection: an overview, the distance from the baseline, and tables with all measures."""

from __future__ import annotations

from collections.abc import Mapping

from cdmae import formats
from cdmae.report.charts import Figure
from cdmae.report.comparisons import compared, noise
from cdmae.report.facts import Facts, Target
from cdmae.report.sections import Section, Sets, columns, difference_figure, in_domain, main_measure, system_cell
from cdmae.report.tables import Cell, Table, highlight

# by whether the difference is positive: beyond the noise of one seed, and within it
SURE = {True: "\N{BLACK UP-POINTING TRIANGLE}", False: "\N{BLACK DOWN-POINTING TRIANGLE}"}
DOUBTFUL = {True: "\N{WHITE UP-POINTING TRIANGLE}", False: "\N{WHITE DOWN-POINTING TRIANGLE}"}


def section(facts: Facts) -> Section | None:
    """Show the overview with the distance from the baseline beside it, then the collections of the domain."""
    named, targets = columns(facts), in_domain(facts)
    if not targets:
        return None
    tables = [measures_table(facts, target) for target in targets]
    if len(named) > 1:
        tables.insert(0, overview(facts, named))
    figures = [figure for name, sets in named.items() if (figure := against_baseline(facts, name, sets))]
    return Section("results", {"facts": facts}, tables, figures)


def overview(facts: Facts, named: Mapping[str, Sets]) -> Table:
    """Set systems down, collections across, each in its main measure."""
    cells = highlight([set_column(facts, sets, main_measure(facts, sets)) for sets in named.values()])
    head = [f"{name}, {formats.measure_name(main_measure(facts, sets))}" for name, sets in named.items()]
    body = list(zip(facts.systems, *cells, strict=True))
    return Table("overview", "Every system on every collection", ["system", *head], body)


def measures_table(facts: Facts, target: Target) -> Table:
    """Set systems down, measures across."""
    measures = facts.measures_of(target)
    cells = highlight([measure_column(facts, target, measure) for measure in measures])
    body = [row for row in zip(facts.systems, *cells, strict=True) if any(cell.value is not None for cell in row[1:])]
    caption = f"{target}, {formats.plural(facts.queries(target), 'query')}"
    head = ["system", *map(formats.measure_name, measures)]
    return Table(f"results-{target.collection}-{target.split}", caption, head, body)


def set_column(facts: Facts, sets: Sets, measure: str) -> list[Cell]:
    """Make a cell per system for sets of targets; without marks where they are several."""
    if [len(targets) for targets in sets] == [1]:
        return measure_column(facts, sets[0][0], measure)
    return [system_cell(facts, name, sets, measure) for name in facts.systems]


def measure_column(facts: Facts, target: Target, measure: str) -> list[Cell]:
    """Make a cell per system: its mean as points, marked where it differs from the baseline."""
    gaps = compared(facts, facts.systems, facts.baseline, target, measure)
    cells = []
    for name in facts.systems:
        mark = note = ""
        if name in gaps and gaps[name].p < 0.05:
            gain = facts.value(name, target, measure) - facts.value(facts.baseline, target, measure)
            mark = (SURE if abs(gain) > noise(facts, target, measure) else DOUBTFUL)[gain > 0]
            note = f"{formats.signed(gain)} against {facts.baseline}, {formats.probability(gaps[name].p)}"
        cells.append(system_cell(facts, name, [[target]], measure, mark=mark, note=note))
    return cells


def against_baseline(facts: Facts, name: str, sets: Sets) -> Figure | None:
    """Draw the differences from the baseline with their intervals, in the main measure of sets of targets.

    Without BM25 and fusions, where there are others: far off, they would flatten the scale.
    """
    others = [system for system in facts.systems if system != facts.baseline] if facts.baseline else []
    kinds = {system: facts.entries("systems").get(system, {}).get("kind") for system in others}
    neural = [system for system, kind in kinds.items() if kind not in ("bm25", "fusion")]
    pairs = [(system, system, facts.baseline, sets) for system in neural or others]
    title = f"{name}: {formats.measure_name(main_measure(facts, sets))} minus {facts.baseline}’s"
    file = "-".join(["baseline", *name.lower().replace(",", "").split()])
    return difference_figure(facts, file, title, pairs, beside=True)
