"""What changes are worth, each against the system that it changes: a stage, more pre-training, a setting, a seed."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pandas as pd

from cdmae import formats
from cdmae.report import comparisons
from cdmae.report.charts import Figure, Series, lines
from cdmae.report.comparisons import Change, chains, repeated
from cdmae.report.facts import Facts, Target
from cdmae.report.sections import (
    LONG,
    Section,
    bm25,
    colour,
    difference_cells,
    difference_figure,
    encoder_colour,
    in_domain,
    main_target,
    seeds,
    system_cell,
)
from cdmae.report.tables import Table, highlight

AXES = {"stage.group": "group size N (one positive, the rest hard negatives)"}  # what a figure says of a setting
OF_GROWTH = "encoder.take_step"  # has a section of its own


def distances(
    facts: Facts, target: Target, labels: dict[str, Sequence[Any]], pairs: Iterable[tuple[str, str]],
    measures: Mapping[str, str], over: str,
) -> pd.DataFrame:  # fmt: skip
    """Make a row per (system, reference): labels, `measures` by their heads, and as `over` their distance."""
    pairs, main = list(pairs), facts.main_measure(target)
    levels = {
        head: [system_cell(facts, system, [[target]], measure) for system, _ in pairs]
        for head, measure in measures.items()
    }
    gaps = [difference_cells(facts.difference(*pair, target, main)) for pair in pairs]
    return pd.DataFrame({**labels, **levels}).join(pd.DataFrame(gaps, columns=[over, "95 % interval", "p"]))


# --- stages ----------------------------------------------------------------------------------------------------------


def stages(facts: Facts) -> Section | None:
    """Show a table and the gains per target, and the levels of the first."""
    targets = in_domain(facts)
    if not chains(facts) or not targets:
        return None
    figures = [_levels(facts, targets[0])] if len(chains(facts)) > 1 else []
    for target in targets:
        pairs = [(f"{after} over {before}", after, before, [[target]]) for before, after in comparisons.steps(facts)]
        title = f"Added by a stage, {formats.measure_name(facts.main_measure(target))}, {target}"
        name = f"stage-differences-{target.collection}-{target.split}"
        figures.append(difference_figure(facts, name, title, pairs))
    return Section("stages", tables=[stage_table(facts, target) for target in targets], figures=figures)


def stage_table(facts: Facts, target: Target) -> Table:
    """Make a row per stage of each chain: its measures, and its distance from the stage before."""
    main, before = facts.main_measure(target), {after: before for before, after in comparisons.steps(facts)}
    recalls = [measure for measure in facts.measures_of(target) if measure.startswith(("R@", "R("))]
    measures = {formats.measure_name(measure): measure for measure in [main, *recalls]}
    names = list(dict.fromkeys(name for chain in chains(facts) for name in chain))
    labels = {"system": names, "after": [before.get(name, formats.NONE) for name in names]}
    pairs = [(name, before.get(name, "")) for name in names]
    frame = distances(facts, target, labels, pairs, measures, "added")
    frame[list(measures)] = frame[list(measures)].apply(highlight)
    caption = f"From stage to stage on {target}; added: points of {formats.measure_name(main)} over the stage before"
    return Table.of(f"stages-{target.collection}-{target.split}", caption, frame, texts=["after"])


def _levels(facts: Facts, target: Target) -> Figure:
    measure, systems, series = facts.main_measure(target), facts.entries("systems"), []
    encoders = [systems[chain[0]]["encoder"] for chain in chains(facts)]
    for chain, encoder in zip(chains(facts), encoders, strict=True):
        heights = [100 * facts.value(name, target, measure) for name in chain]
        label = encoder if encoders.count(encoder) == 1 else chain[-1]
        series.append(Series(label, range(len(chain)), heights, colour(facts, chain[0])))
    base = 100 * facts.value(bm25(facts), target, measure)
    near = base < 2 * max(height for line in series for height in line.y)  # nan is not
    name = formats.measure_name(measure)
    return lines(
        f"stages-{target.collection}-{target.split}", f"{name} from stage to stage, {target}", series,
        x_axis="", y_axis=name, x_names=[f"stage {number + 1}" for number in range(max(map(len, chains(facts))))],
        markers=True, reference=(bm25(facts), base) if near else None,
    )  # fmt: skip


# --- steps of pre-training -------------------------------------------------------------------------------------------


def growth(facts: Facts) -> Section | None:
    """Show what later steps of a pre-training are worth: a figure per target, and a table of the main one."""
    targets = in_domain(facts) or facts.targets[:1]
    if not targets or not comparisons.growth(facts):
        return None
    rows = [
        (encoder, step, system, points[max(at - 1, 0)][1])
        for encoder, points in comparisons.growth(facts).items()
        for at, (step, system) in enumerate(points)
    ]
    encoders, steps, *pairs = zip(*rows, strict=True)
    labels, measure = {"encoder": encoders, "steps": steps}, facts.main_measure(targets[0])
    measures = {formats.measure_name(measure): measure}
    frame = distances(facts, targets[0], labels, zip(*pairs, strict=True), measures, "over the step before")
    caption = f"{formats.measure_name(measure)} on {targets[0]} after so many steps"
    table = Table.of("steps", caption, frame, {"steps": formats.count})
    figures = [over_steps(facts, target, facts.main_measure(target)) for target in targets]
    return Section("growth", tables=[table], figures=figures)


def over_steps(facts: Facts, target: Target, measure: str) -> Figure:
    """Draw the measure over the steps, a line per pre-training."""
    series = []
    for encoder, points in comparisons.growth(facts).items():
        heights = [100 * facts.value(system, target, measure) for _, system in points]
        series.append(Series(encoder, [step for step, _ in points], heights, encoder_colour(facts, encoder)))
    name = formats.measure_name(measure)
    title, file = f"{name} after so many steps, {target}", f"steps-{target.collection}-{target.split}"
    return lines(file, title, series, x_axis="pre-training steps", y_axis=name, markers=True)


# --- settings --------------------------------------------------------------------------------------------------------


def section(facts: Facts) -> Section | None:
    """Show a table and a figure per setting with several values, a table of the others and one of repetitions."""
    shown = [change for change in comparisons.changes(facts) if change.setting != OF_GROWTH]
    target = main_target(facts)
    if not target or not (shown or repeated(facts)):
        return None
    several, single = grouped(shown)
    ladders = [ladder(facts, target, group) for group in several.values()]
    tables = [*(table for table, _ in ladders), change_table(facts, target, single), seed_table(facts, target)]
    band = comparisons.noise(facts, target, facts.main_measure(target))
    values = {"any": bool(shown), "band": band, "long": LONG}
    return Section("changes", values, tables, [figure for _, figure in ladders])


def grouped(shown: list[Change]) -> tuple[dict[tuple[str, str], list[Change]], list[Change]]:
    """Group changes by (setting, reference) where a setting has several other values, ascending; and the rest."""
    count = Counter((change.setting, change.reference) for change in shown)
    several: dict[tuple[str, str], list[Change]] = {key: [] for key, changes in count.items() if changes > 1}
    for change in sorted(shown, key=lambda change: _number(change.after)):
        several.get((change.setting, change.reference), []).append(change)
    return several, [change for change in shown if (change.setting, change.reference) not in several]


def _number(text: str) -> float:
    """Read a shown value as a number to sort by; what is none comes last, as it stood."""
    try:
        return float(text.replace("∞", "inf"))
    except ValueError:
        return math.inf


def values(group: list[Change]) -> list[tuple[str, str]]:
    """List (value, system) of a setting, the reference among them, ascending."""
    both = [(group[0].before, group[0].reference), *((change.after, change.system) for change in group)]
    return sorted(both, key=lambda pair: _number(pair[0]))


def ladder(facts: Facts, target: Target, group: list[Change]) -> tuple[Table, Figure | None]:
    """Show the values of one setting: a table, and a figure where there are three or more and all are numbers."""
    setting, reference, measure = group[0].setting, group[0].reference, facts.main_measure(target)
    (shown, systems), name = zip(*values(group), strict=True), formats.measure_name(measure)
    short, file = setting.rpartition(".")[2], f"changes-{setting.replace('.', '-')}-{reference}"
    labels, pairs = {short: shown, "system": systems}, [(system, reference) for system in systems]
    frame = distances(facts, target, labels, pairs, {name: measure}, f"over {reference}")
    caption = f"{setting}: {name} on {target}, all else as in {reference}"
    table = Table.of(file, caption, frame, texts=["system"])
    if len(shown) < 3 or not all(_number(value) < math.inf or value == "∞" for value in shown):
        return table, None
    heights = [100 * facts.value(system, target, measure) for system in systems]
    axis, series = AXES.get(setting, short.replace("_", " ")), [Series(name, range(len(shown)), heights)]
    title = f"{setting}, {name} on {target}"
    return table, lines(file, title, series, x_axis=axis, y_axis=name, x_names=shown, markers=True)


def change_table(facts: Facts, target: Target, shown: list[Change]) -> Table:
    """Tabulate the changed setting, both values, and the difference it made."""
    measure = facts.main_measure(target)
    shown = [one for one in shown if facts.difference(one.system, one.reference, target, measure)]
    labels = {
        "setting": [one.setting for one in shown],
        "change": [f"{one.before} → {one.after}" for one in shown],
        "systems": [f"{one.reference} → {one.system}" for one in shown],
        "before": [system_cell(facts, one.reference, [[target]], measure) for one in shown],
    }
    pairs = [(one.system, one.reference) for one in shown]
    frame = distances(facts, target, labels, pairs, {"after": measure}, "difference")
    caption = f"{formats.measure_name(measure)} on {target}, one setting changed"
    return Table.of("changes", caption, frame, texts=["change", "systems"])


def seed_table(facts: Facts, target: Target) -> Table:
    """Tabulate the same recipe with other seeds."""
    measure, body = facts.main_measure(target), []
    for group in repeated(facts):
        means = [mean for name in group for mean in facts.by_seed(name, target, measure)]
        body.append([formats.listed(group), ", ".join(map(formats.points, means))])
    which = seeds(facts) if facts.repeated else "other seeds"
    caption = f"The same recipe with {which}: {formats.measure_name(measure)} on {target}"
    if body:
        deviation = comparisons.seed_deviation(facts, target, measure)
        caption += f"; standard deviation {100 * deviation:.2f} points"
    return Table("seeds", caption, ["systems", "values"], body)
