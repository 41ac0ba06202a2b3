"""Every system on every collection: an overview, the distance from the baseline, and tables with all measures.

Collections that no query was trained on have a section of their own: the table of the field, nDCG@10 and the average.
"""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from cdmae import formats
from cdmae.report.charts import Figure
from cdmae.report.comparisons import compared, masking_pairs, noise
from cdmae.report.facts import Facts, Target
from cdmae.report.sections import (
    MOST_SETS,
    Section,
    Sets,
    columns,
    difference_figure,
    in_domain,
    main_measure,
    system_cell,
    zero_shot_sets,
)
from cdmae.report.tables import Table, highlight

# by whether the difference is positive: beyond the noise of one seed, and within it
SURE, DOUBTFUL = {True: "▲", False: "▼"}, {True: "△", False: "▽"}
WIDE = 8  # more zero-shot columns than this are turned into rows, or cut into several tables


def section(facts: Facts) -> Section | None:
    """Show the overview with the distance from the baseline beside it, then the collections of the domain."""
    named, targets = columns(facts), in_domain(facts)
    if not targets:
        return None
    tables = [measures_table(facts, target) for target in targets]
    if len(named) > 1:
        mains = [(name, sets, main_measure(facts, sets)) for name, sets in named.items()]
        frame = _across(facts, {f"{name}, {formats.measure_name(main)}": (sets, main) for name, sets, main in mains})
        tables.insert(0, Table.of("overview", "Every system on every collection", frame))
    figures = [against_baseline(facts, name, sets) for name, sets in named.items()]
    return Section("results", {"facts": facts}, tables, figures)


def measures_table(facts: Facts, target: Target) -> Table:
    """Set systems down, measures across."""
    measured = {formats.measure_name(measure): ([[target]], measure) for measure in facts.measures_of(target)}
    frame = _across(facts, measured)
    known = frame[list(measured)].map(lambda cell: cell.value is not None).any(axis=1)
    caption = f"{target}, {formats.plural(facts.queries(target), 'query')}"
    return Table.of(f"results-{target.collection}-{target.split}", caption, frame[known])


def _across(facts: Facts, measured: Mapping[str, tuple[Sets, str]]) -> pd.DataFrame:
    """Set systems down, (sets of targets, measure) across under their names, the best of each marked."""
    cells = pd.DataFrame({name: system_cells(facts, *pair) for name, pair in measured.items()})
    return cells.apply(highlight).reset_index(names="system")


def system_cells(facts: Facts, sets: Sets, measure: str) -> pd.Series:
    """Make a cell per system: its mean as points; on a single target marked where it differs from the baseline."""
    target, *others = [target for targets in sets for target in targets]
    gaps = {} if others else compared(facts, facts.systems, facts.baseline, target, measure)
    cells = {}
    for name in facts.systems:
        mark, note, gap = "", "", gaps.get(name)
        if gap:
            note = f"{formats.signed(gap.difference)} against {facts.baseline}, {formats.probability(gap.p)}"
        if gap and gap.p < 0.05:
            mark = (SURE if abs(gap.difference) > noise(facts, target, measure) else DOUBTFUL)[gap.difference > 0]
        cells[name] = system_cell(facts, name, sets, measure, mark=mark, note=note)
    return pd.Series(cells)


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


def zero_shot(facts: Facts) -> Section | None:
    """Show one table, what there is fewer of across, and how far the systems are from the baseline on average."""
    sets = {name: [targets] for name, targets in zero_shot_sets(facts).items()}
    if not sets:
        return None
    together, pairs = [targets for [targets] in sets.values()], masking_pairs(facts)
    figures = [against_baseline(facts, "Zero-shot average", together)] if len(sets) > 1 else []
    if pairs and len(sets) > MOST_SETS:  # the first screen has not said it
        every = [(name, *pairs[0], group) for name, group in sets.items()]
        figures.append(difference_figure(facts, "zero-shot", "Importance-aware minus uniform, zero-shot", every))
    corpora = {entry.get("collection") for entry in facts.entries("encoders").values()}
    values = {
        "facts": facts,
        "seen": sorted({target.collection for targets in together for target in targets} & corpora),
        "legend_is_above": bool(in_domain(facts)),
    }
    tables = _zero_shot_tables(facts, {**sets, "average": together} if len(sets) > 1 else sets)
    return Section("zero-shot", values, tables, figures)


def _zero_shot_tables(facts: Facts, sets: Mapping[str, Sets]) -> list[Table]:
    """Set systems down and collections across; with many collections the other way round, a few systems to a table."""
    measure = main_measure(facts, next(iter(sets.values())))
    frame = _across(facts, {name: (group, measure) for name, group in sets.items()})
    caption = f"{formats.measure_name(measure)} on collections whose queries were not trained on"
    if len(sets) <= WIDE:
        return [Table.of("zero-shot", caption, frame)]
    turned, tables = frame.set_index("system").T, []
    for start in range(0, len(facts.systems), WIDE):
        name, more = ("zero-shot", "") if start == 0 else (f"zero-shot-{start // WIDE + 1}", ", continued")
        some = turned.iloc[:, start : start + WIDE].reset_index(names="collection")
        tables.append(Table.of(name, caption + more, some))
    return tables
