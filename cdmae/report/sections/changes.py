"""One change at a time: what each setting is worth, those with several values as a row of them; seeds."""

from __future__ import annotations

import math

from cdmae import formats
from cdmae.report.charts import Series, lines
from cdmae.report.comparisons import Change, changes, noise, repeated, seed_deviation
from cdmae.report.facts import Facts, Target
from cdmae.report.figures import Figure
from cdmae.report.markup import Markup
from cdmae.report.sections import (
    LONG,
    Section,
    difference_cells,
    folded,
    main_target,
    panels,
    paragraphs,
    seeds,
    system_cell,
)
from cdmae.report.tables import Table

AXES = {"stage.group": "group size N (one positive, the rest hard negatives)"}  # what a picture says of a setting
OF_GROWTH = "encoder.take_step"  # has a section of its own


def section(facts: Facts) -> Section | None:
    """A table and a picture per setting with several values, a table of the others and one of repetitions."""
    target, found = main_target(facts), [each for each in changes(facts) if each.setting != OF_GROWTH]
    if not target or not (found or repeated(facts)):
        return None
    several, single = grouped(found)
    ladders = {key: ladder_table(facts, target, several[key]) for key in several}
    pictures = [picture for each in several.values() if (picture := ladder(facts, target, each))]
    others = [table for table in (change_table(facts, target, single), seed_table(facts, target)) if table.rows]
    band = 100 * noise(facts, target, facts.main_measure(target))
    lead = (
        "Systems that differ from their reference in one setting: what the setting is worth here. config/README.md "
        f"says what each means. The noise of one seed is {band:.1f} points."
    )
    body = [paragraphs(lead if found else None), panels(pictures), *(table.html() for table in ladders.values())]
    body += [folded(each) if each.name == "seeds" and len(each.rows) > LONG else each.html() for each in others]
    tables = [*ladders.values(), *others]
    return Section("changes", "One change at a time", "Changes", Markup("".join(body)), tables=tables, figures=pictures)


def grouped(found: list[Change]) -> tuple[dict[tuple[str, str], list[Change]], list[Change]]:
    """Changes by (setting, reference) where a setting has several other values, in their order; and the rest."""
    groups: dict[tuple[str, str], list[Change]] = {}
    for change in found:
        groups.setdefault((change.setting, change.reference), []).append(change)
    several = {key: sorted(group, key=lambda each: _number(each.after)) for key, group in groups.items()}
    several = {key: group for key, group in several.items() if len(group) > 1}
    return several, [change for change in found if (change.setting, change.reference) not in several]


def _number(text: str) -> float:
    """A shown value as a number to sort by; what is none comes last, as it stood."""
    try:
        return float(text.replace("\N{INFINITY}", "inf"))
    except ValueError:
        return math.inf


def values(group: list[Change]) -> list[tuple[str, str]]:
    """(Value, system) of a setting, the reference among them, ascending."""
    both = [(group[0].before, group[0].reference), *((each.after, each.system) for each in group)]
    return sorted(both, key=lambda pair: _number(pair[0]))


def ladder_table(facts: Facts, target: Target, group: list[Change]) -> Table:
    """The values of one setting, each with its distance from the reference."""
    measure, body, reference = facts.main_measure(target), [], group[0].reference
    for value, system in values(group):
        difference = facts.difference(system, reference, target, measure)
        body.append([value, system, system_cell(facts, system, target, measure), *difference_cells(difference)])
    setting = group[0].setting
    shown = setting.rpartition(".")[2], "system", formats.measure_name(measure)
    head = [*shown, f"over {reference}", "95 % interval", "p"]
    caption = f"{setting}: {formats.measure_name(measure)} on {target}, all else as in {reference}"
    return Table(_name(group), caption, head, body, texts=["system"])


def ladder(facts: Facts, target: Target, group: list[Change]) -> Figure | None:
    """The measure over the values of a setting, where there are three or more and all are numbers."""
    points, measure, setting = values(group), facts.main_measure(target), group[0].setting
    if len(points) < 3 or not all(_number(value) < math.inf or value == "\N{INFINITY}" for value, _ in points):
        return None
    found = [100 * facts.value(system, target, measure) for _, system in points]
    series = [Series(formats.measure_name(measure), list(range(len(points))), found)]
    return lines(
        _name(group), f"{setting}, {formats.measure_name(measure)} on {target}", series,
        x_axis=AXES.get(setting, setting.rpartition(".")[2].replace("_", " ")), y_axis=formats.measure_name(measure),
        x_names=[value for value, _ in points], markers=True,
    )  # fmt: skip


def _name(group: list[Change]) -> str:
    return f"changes-{group[0].setting.replace('.', '-')}-{group[0].reference}"


def change_table(facts: Facts, target: Target, found: list[Change]) -> Table:
    """The changed setting, both values, and the difference it made."""
    measure, body = facts.main_measure(target), []
    for change in found:
        difference = facts.difference(change.system, change.reference, target, measure)
        if not difference:
            continue
        body.append(
            [
                change.setting,
                f"{change.before} \N{RIGHTWARDS ARROW} {change.after}",
                f"{change.reference} \N{RIGHTWARDS ARROW} {change.system}",
                system_cell(facts, change.reference, target, measure),
                system_cell(facts, change.system, target, measure),
                *difference_cells(difference),
            ]
        )
    head = ["setting", "change", "systems", "before", "after", "difference", "95 % interval", "p"]
    caption = f"{formats.measure_name(measure)} on {target}, one setting changed"
    return Table("changes", caption, head, body, texts=["change", "systems"])


def seed_table(facts: Facts, target: Target) -> Table:
    """The same recipe with other seeds."""
    measure, body = facts.main_measure(target), []
    for group in repeated(facts):
        found = [value for name in group for value in facts.by_seed(name, target, measure)]
        body.append([formats.listed(group), ", ".join(map(formats.points, found))])
    deviation = seed_deviation(facts, target, measure)
    which = seeds(facts) if facts.repeated else "other seeds"
    caption = f"The same recipe with {which}: {formats.measure_name(measure)} on {target}"
    if body:
        caption += f"; standard deviation {100 * deviation:.2f} points"
    return Table("seeds", caption, ["systems", "values"], body)
