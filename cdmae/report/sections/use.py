"""Say which system to use, with the quality and the cost of all systems."""

from __future__ import annotations

import math
import string
from typing import Any

import pandas as pd

from cdmae import formats
from cdmae.config.kinds import AnySystem
from cdmae.evaluation.best import choose
from cdmae.fields import parse
from cdmae.report import columns, costs, tables
from cdmae.report.comparisons import EVERY_PAIR
from cdmae.report.facts import Facts, Target
from cdmae.report.frames import Frames
from cdmae.report.sections import shown_mean

SMALL_QUERIES = 30  # a run with fewer queries may be too small to show a difference
LETTERS = string.ascii_lowercase + string.ascii_uppercase
MADE = "pseudo"  # the source whose queries are made from passages
# columns of costs: the heading with the unit, the quantity, and its factor
COSTS = (
    ("parameters, M", "parameters", 1e-6),
    ("index, MB", "megabytes", 1.0),
    ("a query, ms", "milliseconds", 1.0),
    ("training, min", "minutes", 1.0),
    ("entries", "entries", 1.0),
    ("FLOPS", "flops", 1.0),
)
EXCEEDS = "exceeds"


def use(facts: Facts, frames: Frames) -> dict[str, Any] | None:
    """Recommend the simplest system that no other system significantly exceeds.

    The queries of one split decide, over the models on disk (`cdmae.evaluation.best`, as in
    `./run search`). The numbers of another split are shown, if there is one.
    """
    reported = columns.reported(facts)
    if not reported or not facts.deciding:
        return None
    deciding = columns.of(facts.deciding, facts.first_measure(facts.deciding))
    values = {}
    complexity = {}
    for name in facts.systems:
        own = facts.disk.per_query(name, facts.deciding, deciding.measure)
        if own is not None:
            values[name] = own
            entry = formats.without_folders(facts.system(name))
            complexity[name] = parse(AnySystem, entry).complexity
    found = choose(pd.DataFrame(values), complexity)
    queries = facts.queries(facts.deciding)
    gaps = [columns.difference(facts, deciding, found.best, name) for name in values]
    certain = any(gap and gap.significant for gap in gaps)
    return {
        "facts": facts,
        "deciding": deciding,
        "reported": reported,
        "same": facts.deciding == facts.reported,
        "choice": found,
        "mean": frames.mean(found.pick, reported),
        "simpler": any(level < complexity[found.pick] for level in complexity.values()),
        "bm25": facts.bm25 if facts.bm25 != found.pick else "",
        "over": frames.pair([EVERY_PAIR], reported, found.pick, facts.bm25),
        "systems": len(values),
        "queries": queries,
        "small": queries < SMALL_QUERIES and not certain,
        "made": sorted({each.collection for each in facts.targets if _is_made(facts, each)}),
        "mixes": {name: mix for name in values if (mix := _mix(facts, name))},
        "tuned": [" ".join(each["on"]) for each in facts.fusions.values() if each.get("on")],
        "inside": [name for name in values if _tuned_inside(facts, name)],
        "judged": _judged(facts, reported.targets[0]),
        "unjudged": _unjudged(facts),
        "disguised": [str(target) for target in facts.targets if facts.disguised(target)],
        "table": tables.html(
            with_costs(facts, frames),
            f"Every system, best first: {reported.unit}",
            texts=[EXCEEDS],
            best=[column.name for column in columns.overview(facts)],
            marked=found.pick,
        ),
    }


def overview(facts: Facts, frames: Frames) -> pd.DataFrame:
    """Make a row per system, best first: its means, and the systems that it exceeds, by letter."""
    shown = columns.overview(facts)
    if not shown:
        return pd.DataFrame()
    first = {name: frames.mean(name, shown[0]).value for name in facts.systems}
    names = sorted(first, key=lambda name: -first[name] if first[name] == first[name] else 0)
    letters = dict(zip(names, map(_letter, range(len(names))), strict=True))
    frame = pd.DataFrame({"system": names, "#": [letters[name] for name in names]})
    for column in shown:
        frame[column.name] = [shown_mean(frames.mean(name, column)) for name in names]
    below: dict[str, list[str]] = {name: [] for name in names}
    for row in frames.compared([EVERY_PAIR], shown[0]).itertuples():
        if row.verdict == "better":
            below[row.system].append(letters[row.reference])
        elif row.verdict == "worse":
            below[row.reference].append(letters[row.system])
    order = [*letters.values()]
    frame[EXCEEDS] = [" ".join(sorted(below[name], key=order.index)) for name in names]
    return frame


def with_costs(facts: Facts, frames: Frames) -> pd.DataFrame:
    """Add the columns of costs that this run knows."""
    frame = overview(facts, frames)
    spent = frames.cost("system").reindex(frame["system"])
    for head, quantity, factor in COSTS:
        if spent[quantity].notna().any():
            frame[head] = [_number(factor * value) for value in spent[quantity]]
    return frame


def _number(value: float) -> str:
    """Format a cost with at least two significant digits."""
    if math.isnan(value):
        return formats.NONE
    if value >= 100 or value == 0:
        return formats.count(value)
    return f"{value:.1f}" if value >= 1 else f"{value:.2g}"


def _letter(number: int) -> str:
    return LETTERS[number] if number < len(LETTERS) else str(number)


def _is_made(facts: Facts, target: Target) -> bool:
    """Return whether the queries of a target were made from passages."""
    return facts.entries("collections").get(target.collection, {}).get("source") == MADE


def _mix(facts: Facts, name: str) -> str:
    """Return the weights of a fusion in words; "" for other systems."""
    about = facts.fusions.get(name)
    if not about:
        return ""
    weighted = zip(about["weights"], about["systems"], strict=True)
    return " + ".join(f"{weight:g} × {part}" for weight, part in weighted)


def _tuned_inside(facts: Facts, name: str) -> bool:
    """Return whether a part of a system has weights that the deciding queries chose."""
    inside = [part for part in costs.members(facts, name) if part != name]
    on = list(facts.deciding)
    return any(facts.fusions.get(part, {}).get("on") == on for part in inside)


def _judged(facts: Facts, target: Target) -> float:
    """Return the judged passages per query of a target; 0 if they are unknown."""
    corpus = facts.collections.get(target.collection)
    return corpus.per_query(target.split) if corpus else 0.0


def _unjudged(facts: Facts) -> list[dict[str, Any]]:
    """Return the systems with the least and the most judged passages, by target and Judged@k."""
    found = []
    for target in facts.targets:
        for measure in facts.measures_of(target):
            if not measure.startswith("Judged@"):
                continue
            shares = {name: facts.value(name, target, measure) for name in facts.systems}
            shares = {name: share for name, share in shares.items() if share == share}
            least, most = (pick(shares, key=shares.__getitem__) for pick in (min, max))
            extremes = {name: shares[name] for name in (least, most)}
            found.append({"target": target, "measure": measure, "shares": extremes})
    return found
