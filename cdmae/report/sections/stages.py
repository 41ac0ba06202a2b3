"""What each stage of the fine-tuning added: from a retriever to the one that takes its negatives from it."""

from __future__ import annotations

from cdmae import formats
from cdmae.report.charts import Figure, Series, lines
from cdmae.report.comparisons import chains, steps
from cdmae.report.facts import Facts, Target
from cdmae.report.sections import (
    Section,
    bm25,
    colour,
    difference_cells,
    difference_figure,
    in_domain,
    system_cell,
)
from cdmae.report.tables import Table, highlight


def section(facts: Facts) -> Section | None:
    """Show a table and the gains per target, and the levels of the first."""
    targets = in_domain(facts)
    if not chains(facts) or not targets:
        return None
    figures = [added for target in targets if (added := _added(facts, target))]
    if len(chains(facts)) > 1:
        figures.insert(0, _levels(facts, targets[0]))
    return Section("stages", tables=[stage_table(facts, target) for target in targets], figures=figures)


def stage_table(facts: Facts, target: Target) -> Table:
    """Make a row per stage of each chain: its measures, and its distance from the stage before."""
    main, before = facts.main_measure(target), {after: before for before, after in steps(facts)}
    recalls = [measure for measure in facts.measures_of(target) if measure.startswith(("R@", "R("))]
    measures = list(dict.fromkeys([main, *recalls]))
    names = list(dict.fromkeys(name for chain in chains(facts) for name in chain))
    columns = highlight([[system_cell(facts, name, [[target]], measure) for name in names] for measure in measures])
    body = []
    for name, *cells in zip(names, *columns, strict=True):
        gap = facts.difference(name, before[name], target, main) if name in before else None
        body.append([name, before.get(name, formats.NONE), *cells, *difference_cells(gap)])
    head = ["system", "after", *map(formats.measure_name, measures), "added", "95 % interval", "p"]
    caption = f"From stage to stage on {target}; added: points of {formats.measure_name(main)} over the stage before"
    return Table(f"stages-{target.collection}-{target.split}", caption, head, body, texts=["after"])


def _levels(facts: Facts, target: Target) -> Figure:
    measure = facts.main_measure(target)
    series = []
    for chain in chains(facts):
        heights = [100 * facts.value(name, target, measure) for name in chain]
        series.append(Series(_chain_name(facts, chain), range(len(chain)), heights, colour(facts, chain[0])))
    base = 100 * facts.value(bm25(facts), target, measure)
    near = base < 2 * max(height for line in series for height in line.y)  # nan is not
    name = formats.measure_name(measure)
    return lines(
        f"stages-{target.collection}-{target.split}", f"{name} from stage to stage, {target}", series,
        x_axis="", y_axis=name, x_names=[f"stage {number + 1}" for number in range(max(map(len, chains(facts))))],
        markers=True, reference=(bm25(facts), base) if near else None,
    )  # fmt: skip


def _chain_name(facts: Facts, chain: list[str]) -> str:
    """Name the encoder, if it has but one chain, else the last system."""
    encoders = [facts.entries("systems")[systems[0]]["encoder"] for systems in chains(facts)]
    encoder = facts.entries("systems")[chain[0]]["encoder"]
    return encoder if encoders.count(encoder) == 1 else chain[-1]


def _added(facts: Facts, target: Target) -> Figure | None:
    pairs = [(f"{after} over {before}", after, before, [[target]]) for before, after in steps(facts)]
    title = f"Added by a stage, {formats.measure_name(facts.main_measure(target))}, {target}"
    return difference_figure(facts, f"stage-differences-{target.collection}-{target.split}", title, pairs)
