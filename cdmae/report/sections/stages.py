"""What each stage of the fine-tuning added: from a retriever to the one that takes its negatives from it."""

from __future__ import annotations

from cdmae import formats
from cdmae.report.charts import Series, lines, rows
from cdmae.report.comparisons import chains, noise, steps
from cdmae.report.facts import Facts, Target
from cdmae.report.figures import Figure
from cdmae.report.markup import Markup, tag
from cdmae.report.sections import (
    NOISE_AXIS,
    Section,
    bm25,
    colour,
    difference_cells,
    difference_row,
    in_domain,
    panels,
    paragraphs,
    system_cell,
)
from cdmae.report.tables import Table, highlight


def section(facts: Facts) -> Section | None:
    """A table per target, figures of the first."""
    targets = in_domain(facts)
    if not chains(facts) or not targets:
        return None
    tables = [stage_table(facts, target) for target in targets]
    figures = [_added(facts, target) for target in targets]
    if len(chains(facts)) > 1:
        figures.insert(0, _levels(facts, targets[0]))
    body = [paragraphs(_lead(facts)), tables[0].html(), panels(figures)]
    if tables[1:]:
        others = [table.html() for table in tables[1:]]
        body.append(tag("details", tag("summary", "The same on the other collections"), others))
    return Section("stages", "What each stage added", "Stages", Markup("".join(body)), tables=tables, figures=figures)


def stage_table(facts: Facts, target: Target) -> Table:
    """One row per stage of each chain: its measures, and its distance from the stage before."""
    measure = facts.main_measure(target)
    shown = list(
        dict.fromkeys([measure, *(each for each in facts.measures_of(target) if each.startswith(("R@", "R(")))])
    )
    order, before = _order(facts), {after: before for before, after in steps(facts)}
    columns = highlight([[system_cell(facts, name, target, each) for name in order] for each in shown])
    body = []
    for index, name in enumerate(order):
        found = facts.difference(name, before[name], target, measure) if name in before else None
        values = (column[index] for column in columns)
        body.append([name, before.get(name, formats.NONE), *values, *difference_cells(found)])
    head = ["system", "after", *map(formats.measure_name, shown), "added", "95 % interval", "p"]
    caption = f"From stage to stage on {target}; added: points of {formats.measure_name(measure)} over the stage before"
    return Table(f"stages-{target.collection}-{target.split}", caption, head, body, texts=["after"])


def _order(facts: Facts) -> list[str]:
    return list(dict.fromkeys(name for chain in chains(facts) for name in chain))


def _lead(facts: Facts) -> str:
    return (
        "Every stage starts again from the same pre-trained encoder; what changes is where its hard negatives come "
        "from, and in the last one the reranker's scores as a teacher. A stage is compared with the one before by a "
        "paired t-test over the queries."
    )


def _levels(facts: Facts, target: Target) -> Figure:
    measure = facts.main_measure(target)
    longest = max(chains(facts), key=len)
    names = [f"stage {index + 1}" for index in range(len(longest))]
    series = [
        Series(
            _chain_name(facts, chain),
            list(range(len(chain))),
            [100 * facts.value(name, target, measure) for name in chain],
            colour(facts, chain[0]),
        )
        for chain in chains(facts)
    ]
    base = facts.value(bm25(facts), target, measure)
    near = base == base and 100 * base < 2 * max(value for each in series for value in each.y)
    title = f"{formats.measure_name(measure)} from stage to stage, {target}"
    return lines(
        f"stages-{target.collection}-{target.split}", title, series, x_axis="",
        y_axis=formats.measure_name(measure), x_names=names, markers=True,
        reference=(bm25(facts), 100 * base) if near else None,
    )  # fmt: skip


def _chain_name(facts: Facts, chain: list[str]) -> str:
    """The encoder's name, if it has but one chain, else that of the last system."""
    encoder = facts.entries("systems")[chain[0]]["encoder"]
    same = [each for each in chains(facts) if facts.entries("systems")[each[0]]["encoder"] == encoder]
    return encoder if len(same) == 1 else chain[-1]


def _added(facts: Facts, target: Target) -> Figure:
    measure = facts.main_measure(target)
    entries = []
    for before, after in steps(facts):
        found = facts.difference(after, before, target, measure)
        if found:
            band = noise(facts, target, measure)
            entries.append(difference_row(f"{after} over {before}", found, colour(facts, after), band))
    title = f"Added by a stage, {formats.measure_name(measure)}, {target}"
    name = f"stage-differences-{target.collection}-{target.split}"
    return rows(name, title, entries, axis=NOISE_AXIS)
