"""Show the effect of one change on a system: a stage, steps, a setting, or a seed."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from statistics import stdev
from typing import Any

import pandas as pd

from cdmae import formats
from cdmae.report import comparisons
from cdmae.report.charts import Figure, Series, lines
from cdmae.report.columns import Column, in_domain, main_column
from cdmae.report.comparisons import Change, chains, repeated
from cdmae.report.facts import Facts
from cdmae.report.sections import (
    INTERVAL,
    LONG,
    Section,
    difference_cells,
    difference_figure,
    encoder_colour,
)
from cdmae.report.tables import Table, highlight, number_cell

# the axis titles of settings in figures
AXES = {"stage.group": "group size N (one positive, the rest hard negatives)"}
OF_GROWTH = "encoder.take_step"  # the setting with a separate section


def distances(
    column: Column,
    labels: dict[str, Sequence[Any]],
    pairs: Iterable[tuple[str, str]],
    over: str,
    shown: Mapping[str, Column] | None = None,
) -> pd.DataFrame:
    """Make a row per (system, reference): labels, means, and the difference in the column `over`.

    shown: the columns with means to show, by name; by default only `column`. Pairs that the report
    does not compare have no difference.
    """
    pairs = list(pairs)
    shown = shown or {column.unit: column}
    levels = {head: [one.cell(system) for system, _ in pairs] for head, one in shown.items()}
    gaps = []
    for system, reference in pairs:
        compared = comparisons.is_compared(column.facts, system, reference)
        gaps.append(difference_cells(column.difference(system, reference) if compared else None))
    differences = pd.DataFrame(gaps, columns=[over, INTERVAL, "p, Holm"])
    return pd.DataFrame({**labels, **levels}).join(differences)


# --- stages ---------------------------------------------------------------------------------------


def stages(facts: Facts) -> Section | None:
    """Show a table and the gains for each target, and the means for the first target."""
    columns = in_domain(facts)
    if not chains(facts) or not columns:
        return None
    figures = [_levels(columns[0])] if len(chains(facts)) > 1 else []
    for column in columns:
        pairs = [
            (f"{after} over {before}", after, before, column)
            for after, before in comparisons.steps(facts).items()
            if comparisons.is_compared(facts, after, before)
        ]
        name = f"stage-differences-{column.target.collection}-{column.target.split}"
        figures.append(
            difference_figure(name, f"Added by a stage, {column.unit}, {column.target}", pairs)
        )
    after = [name for chain in chains(facts) for name in chain if facts.system(name).get("after")]
    tables = [stage_table(column) for column in columns]
    return Section("stages", {"after": after}, tables, figures)


def stage_table(column: Column) -> Table:
    """Make a row per stage of each chain: its means, and its gain over the previous stage."""
    facts = column.facts
    target = column.target
    before = comparisons.steps(facts)
    recalls = [measure for measure in facts.measures_of(target) if measure.startswith(("R@", "R("))]
    columns = [column, *(Column.of(facts, target, measure) for measure in recalls)]
    shown = {one.unit: one for one in columns}
    names = list(dict.fromkeys(name for chain in chains(facts) for name in chain))
    labels = {"system": names, "after": [before.get(name, formats.NONE) for name in names]}
    pairs = [(name, before.get(name, "")) for name in names]
    frame = distances(column, labels, pairs, "added", shown)
    frame[list(shown)] = frame[list(shown)].apply(highlight)
    caption = (
        f"From stage to stage on {target}; added: points of {column.unit} over the stage before"
    )
    return Table.of(f"stages-{target.collection}-{target.split}", caption, frame, texts=["after"])


def _levels(column: Column) -> Figure | None:
    """Draw a line per chain over its stages, and BM25 if it is not far above them."""
    facts = column.facts
    target = column.target
    encoders = [facts.encoder_of(chain[0]) for chain in chains(facts)]
    series = []
    for chain, encoder in zip(chains(facts), encoders, strict=True):
        label = encoder if encoders.count(encoder) == 1 else chain[-1]
        heights = _heights(column, chain)
        series.append(Series(label, range(len(chain)), heights, encoder_colour(facts, encoder)))
    [base] = _heights(column, [facts.bm25])
    highest = max(max(line.y) for line in series)
    stages = max(len(chain) for chain in chains(facts))
    return lines(
        f"stages-{target.collection}-{target.split}",
        f"{column.unit} from stage to stage, {target}",
        series,
        x_axis="",
        y_axis=column.unit,
        x_names=[f"stage {index + 1}" for index in range(stages)],
        markers=True,
        reference=(facts.bm25, base) if base < 2 * highest else None,  # false if base is nan
    )


def _heights(column: Column, systems: Iterable[str]) -> list[float]:
    """Return the means of systems in points."""
    return [100 * column.value(system) for system in systems]


# --- steps of pre-training ------------------------------------------------------------------------


def growth(facts: Facts) -> Section | None:
    """Show the gain from more pre-training steps: a figure per target, and one table."""
    columns = in_domain(facts) or [Column.of(facts, target) for target in facts.targets[:1]]
    labels: dict[str, list[Any]] = {"encoder": [], "steps": []}
    pairs = []
    for encoder, points in comparisons.growth(facts).items():
        before = points[0][1]
        for step, system in points:
            labels["encoder"].append(encoder)
            labels["steps"].append(step)
            pairs.append((system, before))
            before = system
    if not columns or not pairs:
        return None
    frame = distances(columns[0], labels, pairs, "over the step before")
    caption = f"{columns[0].unit} on {columns[0].target} by steps of pre-training"
    table = Table.of("steps", caption, frame, {"steps": formats.count})
    return Section("growth", tables=[table], figures=[over_steps(column) for column in columns])


def over_steps(column: Column) -> Figure | None:
    """Draw the measure over the pre-training steps, one line per pre-training."""
    series = []
    for encoder, points in comparisons.growth(column.facts).items():
        steps = [step for step, _ in points]
        heights = _heights(column, [system for _, system in points])
        series.append(Series(encoder, steps, heights, encoder_colour(column.facts, encoder)))
    target = column.target
    title = f"{column.unit} by steps of pre-training, {target}"
    file = f"steps-{target.collection}-{target.split}"
    return lines(file, title, series, x_axis="pre-training steps", y_axis=column.unit, markers=True)


# --- settings -------------------------------------------------------------------------------------


def section(facts: Facts) -> Section | None:
    """Show each setting with several values, then the other changes, then the seeds."""
    shown = [change for change in comparisons.changes(facts) if change.setting != OF_GROWTH]
    column = main_column(facts)
    if not column or not (shown or repeated(facts)):
        return None
    several, single = grouped(shown)
    ladders = [ladder(column, group) for group in several.values()]
    tables = [*(table for table, _ in ladders), change_table(column, single), seed_table(column)]
    values = {"any": bool(shown), "long": LONG}
    return Section("changes", values, tables, [figure for _, figure in ladders])


def grouped(shown: list[Change]) -> tuple[dict[tuple[str, str], list[Change]], list[Change]]:
    """Group changes by (setting, reference); return groups with several values, and the rest."""
    groups: dict[tuple[str, str], list[Change]] = {}
    for change in shown:
        groups.setdefault((change.setting, change.reference), []).append(change)
    several = {key: group for key, group in groups.items() if len(group) > 1}
    return several, [group[0] for group in groups.values() if len(group) == 1]


def _number(text: str) -> float:
    """Parse the value of a setting for sorting; texts that are not numbers become infinite."""
    try:
        return float(text.replace("∞", "inf"))
    except ValueError:
        return math.inf


def values(group: list[Change]) -> list[tuple[str, str]]:
    """List (value, system) for a setting in ascending order, including the reference."""
    both = [
        (group[0].before, group[0].reference),
        *((change.after, change.system) for change in group),
    ]
    return sorted(both, key=lambda pair: _number(pair[0]))


def ladder(column: Column, group: list[Change]) -> tuple[Table, Figure | None]:
    """Show the values of one setting: a table, and a figure for at least three numbers."""
    setting = group[0].setting
    reference = group[0].reference
    shown = [value for value, _ in values(group)]
    systems = [system for _, system in values(group)]
    short = setting.rpartition(".")[2]
    file = f"changes-{setting.replace('.', '-')}-{reference}"
    pairs = [(system, reference) for system in systems]
    frame = distances(column, {short: shown, "system": systems}, pairs, f"over {reference}")
    caption = f"{setting}: {column.unit} on {column.target}, all else as in {reference}"
    table = Table.of(file, caption, frame, texts=["system"])
    numbers = all(_number(value) < math.inf or value == "∞" for value in shown)
    if len(shown) < 3 or not numbers:
        return table, None
    figure = lines(
        file,
        f"{setting}, {column.unit} on {column.target}",
        [Series(column.unit, range(len(shown)), _heights(column, systems))],
        x_axis=AXES.get(setting, short.replace("_", " ")),
        y_axis=column.unit,
        x_names=shown,
        markers=True,
    )
    return table, figure


def change_table(column: Column, shown: list[Change]) -> Table:
    """Tabulate changes of settings: both values, and the difference of the means."""
    shown = [one for one in shown if column.difference(one.system, one.reference)]
    labels = {
        "setting": [one.setting for one in shown],
        "change": [f"{one.before} → {one.after}" for one in shown],
        "systems": [f"{one.reference} → {one.system}" for one in shown],
        "before": [column.cell(one.reference) for one in shown],
    }
    pairs = [(one.system, one.reference) for one in shown]
    frame = distances(column, labels, pairs, "difference", {"after": column})
    caption = f"{column.unit} on {column.target}, one setting changed"
    return Table.of("changes", caption, frame, texts=["change", "systems"])


def seed_table(column: Column) -> Table:
    """Tabulate the means of each recipe with different seeds, and their deviation."""
    facts = column.facts
    target = column.target
    body = []
    for group in repeated(facts):
        means = [mean for name in group for mean in facts.by_seed(name, target, column.measure)]
        deviation = 100 * stdev(means) if len(means) > 1 else math.nan
        shown = ", ".join(map(formats.points, means))
        body.append([formats.listed(group), shown, number_cell(deviation, "{:.2f}".format)])
    seeds = facts.named_seeds if facts.repeated else "other seeds"
    caption = f"The same recipe with {seeds}: {column.unit} on {target}"
    columns = ["systems", "values", "standard deviation"]
    return Table("seeds", caption, columns, body, texts=["values"])
