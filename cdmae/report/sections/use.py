"""Say which system to use, with the quality and the cost of all systems."""

from __future__ import annotations

import math
import string
from typing import Any

import pandas as pd

from cdmae import formats
from cdmae.config import seeds
from cdmae.config.splits import FEW
from cdmae.report import columns, notation, tables
from cdmae.report.comparisons import EVERY_PAIR, Pair, tested
from cdmae.report.facts import Facts
from cdmae.report.frames import Frames
from cdmae.report.sections import shown_mean

LETTERS = string.ascii_lowercase + string.ascii_uppercase
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
    deciding = columns.of(facts.deciding, facts.measures_of(facts.deciding)[0])
    found = facts.choice(facts.systems)
    queries = facts.queries(facts.deciding)
    gaps = [columns.difference(facts, deciding, found.best, name) for name in facts.systems]
    certain = any(gap and gap.significant for gap in gaps)
    corpus = facts.collections.get(facts.reported.collection)
    has_other = facts.bm25 not in ("", found.pick)
    over = tested(facts, reported, Pair(found.pick, facts.bm25)) if has_other else None
    return {
        "facts": facts,
        "deciding": deciding,
        "reported": reported,
        "same": facts.deciding == facts.reported,
        "choice": found,
        "mean": frames.mean(found.pick, reported),
        "over": over,
        "worse": over is not None and over.verdict == "worse",
        "systems": len(facts.systems),
        "queries": queries,
        "small": queries < FEW and not certain,
        "is_made": facts.is_made(facts.deciding),
        "asked": 0 if facts.is_made(facts.reported) else facts.queries(facts.reported),
        "fusions": {name: facts.fusions[name] for name in seeds.first(facts.fusions)},
        "judged": corpus.per_query.get(facts.reported.split, 0.0) if corpus else 0.0,
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
    reported = columns.reported(facts)
    if reported is None:
        return pd.DataFrame()
    first = [frames.mean(name, shown[0]).value for name in facts.systems]
    ranked = pd.Series(first, facts.systems).sort_values(ascending=False, kind="stable")
    names = ranked.index.tolist()
    marks = [*LETTERS, *map(str, range(len(LETTERS), len(names)))][: len(names)]
    frame = pd.DataFrame({"system": names, "#": marks})
    for column in shown:
        frame[column.name] = [shown_mean(frames.mean(name, column)) for name in names]
    exceeded: dict[str, list[str]] = {name: [] for name in names}
    for row in frames.compared([EVERY_PAIR], reported).itertuples():
        if row.verdict == "better":
            exceeded[row.system].append(row.reference)
        elif row.verdict == "worse":
            exceeded[row.reference].append(row.system)
    letters = dict(zip(names, marks, strict=True))
    frame[EXCEEDS] = [
        " ".join(letters[other] for other in names if other in exceeded[name]) for name in names
    ]
    return frame


def with_costs(facts: Facts, frames: Frames) -> pd.DataFrame:
    """Add the columns of costs that this run knows."""
    frame = overview(facts, frames)
    spent = frames.costs.set_index("system").reindex(frame["system"])
    for head, quantity, factor in COSTS:
        if spent[quantity].notna().any():
            frame[head] = [_number(factor * value) for value in spent[quantity]]
    return frame


def _number(value: float) -> str:
    """Format a cost with at least two significant digits."""
    if math.isnan(value):
        return notation.NONE
    if value >= 100 or value == 0:
        return formats.count(value)
    return f"{value:.1f}" if value >= 1 else f"{value:.2g}"
