"""One change at a time: what each setting is worth, those with several values as a row of them; seeds."""

from __future__ import annotations

import math

from cdmae import formats
from cdmae.report.charts import Figure, Series, lines
from cdmae.report.comparisons import Change, changes, noise, repeated, seed_deviation
from cdmae.report.facts import Facts, Target
from cdmae.report.sections import LONG, Section, difference_cells, main_target, seeds, system_cell
from cdmae.report.tables import Table

AXES = {"stage.group": "group size N (one positive, the rest hard negatives)"}  # what a figure says of a setting
OF_GROWTH = "encoder.take_step"  # has a section of its own


def section(facts: Facts) -> Section | None:
    """Show a table and a figure per setting with several values, a table of the others and one of repetitions."""
    target, shown = main_target(facts), [change for change in changes(facts) if change.setting != OF_GROWTH]
    if not target or not (shown or repeated(facts)):
        return None
    several, single = grouped(shown)
    tables = [ladder_table(facts, target, group) for group in several.values()]
    tables += [table for table in (change_table(facts, target, single), seed_table(facts, target)) if table.rows]
    figures = [figure for group in several.values() if (figure := ladder(facts, target, group))]
    band = noise(facts, target, facts.main_measure(target))
    return Section("changes", {"any": bool(shown), "band": band, "long": LONG}, tables, figures)


def grouped(shown: list[Change]) -> tuple[dict[tuple[str, str], list[Change]], list[Change]]:
    """Group changes by (setting, reference) where a setting has several other values, ascending; and the rest."""
    groups: dict[tuple[str, str], list[Change]] = {}
    for change in shown:
        groups.setdefault((change.setting, change.reference), []).append(change)
    several = {key: sorted(group, key=lambda change: _number(change.after)) for key, group in groups.items()}
    several = {key: group for key, group in several.items() if len(group) > 1}
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


def ladder_table(facts: Facts, target: Target, group: list[Change]) -> Table:
    """Tabulate the values of one setting, each with its distance from the reference."""
    setting, reference, measure = group[0].setting, group[0].reference, facts.main_measure(target)
    body = []
    for value, system in values(group):
        gap = facts.difference(system, reference, target, measure)
        body.append([value, system, system_cell(facts, system, [[target]], measure), *difference_cells(gap)])
    name = formats.measure_name(measure)
    head = [setting.rpartition(".")[2], "system", name, f"over {reference}", "95 % interval", "p"]
    return Table(
        _name(group), f"{setting}: {name} on {target}, all else as in {reference}", head, body, texts=["system"]
    )


def ladder(facts: Facts, target: Target, group: list[Change]) -> Figure | None:
    """Draw the measure over the values of a setting, where there are three or more and all are numbers."""
    points, measure, setting = values(group), facts.main_measure(target), group[0].setting
    if len(points) < 3 or not all(_number(value) < math.inf or value == "∞" for value, _ in points):
        return None
    name = formats.measure_name(measure)
    heights = [100 * facts.value(system, target, measure) for _, system in points]
    return lines(
        _name(group), f"{setting}, {name} on {target}", [Series(name, range(len(points)), heights)],
        x_axis=AXES.get(setting, setting.rpartition(".")[2].replace("_", " ")), y_axis=name,
        x_names=[value for value, _ in points], markers=True,
    )  # fmt: skip


def _name(group: list[Change]) -> str:
    return f"changes-{group[0].setting.replace('.', '-')}-{group[0].reference}"


def change_table(facts: Facts, target: Target, shown: list[Change]) -> Table:
    """Tabulate the changed setting, both values, and the difference it made."""
    measure, body = facts.main_measure(target), []
    for change in shown:
        gap = facts.difference(change.system, change.reference, target, measure)
        if gap:
            levels = [system_cell(facts, name, [[target]], measure) for name in (change.reference, change.system)]
            both = [f"{change.before} → {change.after}", f"{change.reference} → {change.system}"]
            body.append([change.setting, *both, *levels, *difference_cells(gap)])
    head = ["setting", "change", "systems", "before", "after", "difference", "95 % interval", "p"]
    caption = f"{formats.measure_name(measure)} on {target}, one setting changed"
    return Table("changes", caption, head, body, texts=["change", "systems"])


def seed_table(facts: Facts, target: Target) -> Table:
    """Tabulate the same recipe with other seeds."""
    measure, body = facts.main_measure(target), []
    for group in repeated(facts):
        means = [mean for name in group for mean in facts.by_seed(name, target, measure)]
        body.append([formats.listed(group), ", ".join(map(formats.points, means))])
    which = seeds(facts) if facts.repeated else "other seeds"
    caption = f"The same recipe with {which}: {formats.measure_name(measure)} on {target}"
    if body:
        caption += f"; standard deviation {100 * seed_deviation(facts, target, measure):.2f} points"
    return Table("seeds", caption, ["systems", "values"], body)
