"""List the report's comparisons, each with the question that it answers, and test them.

`evaluation.baseline` and `report.compare` of the config name the pairs of systems. The question of
a pair are the settings in which the two systems differ (see `cdmae.report.recipes`).
"""

from __future__ import annotations

import itertools
from functools import cache
from typing import Any, NamedTuple

import pandas as pd

from cdmae.config.kinds import TEACHERS
from cdmae.config.schema import EVERY
from cdmae.evaluation.significance import Difference, corrected, paired
from cdmae.report import columns
from cdmae.report.columns import Column
from cdmae.report.facts import Facts, Target
from cdmae.report.recipes import differences, shown

UNIFORM = ("whole_word", "uniform")
MASKINGS = ("encoder.decoder_masking", "encoder.encoder_masking")
MOST_NAMED = 3  # settings that a question names
# kinds of comparisons: the masks on all sets of queries together, the one planned test, which is
# not corrected for the others; another named pair that varies one thing; the other named pairs; all
# pairs on the reported split; queries as they are and misspelt
PLANNED, ONE_THING, NAMED, EVERY_PAIR, MISSPELT = KINDS = (
    "planned", "one thing", "named", "every pair", "misspelt",
)  # fmt: skip
COLUMNS = [
    "kind", "question", "system", "reference", "on", "measure", "mean", "reference_mean",
    "difference", "low", "high", "p", "verdict", "seeds", "queries",
]  # fmt: skip


class Pair(NamedTuple):
    """A comparison of `system` with `reference`."""

    system: str
    reference: str


@cache
def compared(facts: Facts) -> list[Pair]:
    """List all comparisons, each in one direction.

    The pairs of `report.compare` come first, in its order. Then every system is compared with
    `evaluation.baseline`, and with the systems of the entry ``"*"`` of `report.compare`. p-values
    are corrected over the comparisons with the same reference. Two systems that are listed in both
    directions are compared in the first direction.
    """
    named = [
        Pair(system, reference)
        for system, references in facts.report.compare.items()
        for reference in references
        if system != EVERY
    ]
    of_all = [
        Pair(system, reference)
        for reference in (facts.baseline, *facts.report.compare.get(EVERY, ()))
        for system in facts.systems
    ]
    listed: dict[frozenset[str], Pair] = {}
    for pair in [*named, *of_all]:
        if pair.system != pair.reference and set(pair) <= set(facts.systems):
            listed.setdefault(frozenset(pair), pair)
    return list(listed.values())


@cache
def retrievers(facts: Facts) -> list[str]:
    """List the retrievers that were trained here and measured, in config order."""
    kinds = {name: facts.kind(name) for name in facts.systems}
    return [name for name, kind in kinds.items() if kind.trained and kind.searches]


@cache
def single_change(facts: Facts, pair: Pair) -> tuple[str, Any, Any] | None:
    """Return the one setting in which two retrievers differ: (setting, reference's, system's)."""
    if not set(pair) <= set(retrievers(facts)):
        return None
    different = differences(facts, pair.reference, pair.system)
    if len(different) != 1:
        return None
    [(setting, (before, after))] = different.items()
    return setting, before, after


@cache
def question(facts: Facts, pair: Pair) -> tuple[str, str]:
    """Return the kind of a named pair, `ONE_THING` or `NAMED`, and its question in words."""
    entry = facts.system(pair.system)
    if entry.get("reranks") == pair.reference:
        return ONE_THING, "reranking"
    if pair.reference in (entry.get("of") or ()):
        return ONE_THING, "fusion"
    if pair.reference == facts.bm25:
        return NAMED, "against BM25"
    if not set(pair) <= set(retrievers(facts)):
        return NAMED, "another kind of system"
    same = facts.encoder_of(pair.system) == facts.encoder_of(pair.reference)
    if entry.get("negatives") == pair.reference and same:
        taught = any(entry.get(key) for key in TEACHERS)
        return ONE_THING, f"next stage: hard negatives{' and a teacher' if taught else ''}"
    change = single_change(facts, pair)
    if change:
        return ONE_THING, _change_in_words(*change)
    keys = [key.rpartition(".")[2] for key in differences(facts, pair.reference, pair.system)]
    words = [key.replace("_", " ") for key in dict.fromkeys(keys)]
    more = ", ..." if len(words) > MOST_NAMED else ""
    return NAMED, f"{', '.join(words[:MOST_NAMED])}{more}" if words else "another seed"


def _change_in_words(setting: str, before: Any, after: Any) -> str:
    if setting == "encoder.objective" and "none" in (before, after):
        return "pre-training" if before == "none" else "no pre-training"
    if setting in MASKINGS and before in UNIFORM and after not in UNIFORM:
        return f"masks: {after.replace('_', ' ')} instead of uniform"
    name = setting.rpartition(".")[2].replace("_", " ")
    return f"{name}: {shown(before)} → {shown(after)}"


@cache
def masking_pairs(facts: Facts) -> dict[Pair, str]:
    """List the pairs (another masking, uniform) that differ in their masking alone, with its name.

    The pairs may be named in either direction. Masks by importance come first.
    """
    found = {}
    for pair in compared(facts):
        setting, before, after = single_change(facts, pair) or ("", "", "")
        if setting in MASKINGS and before in UNIFORM and after not in UNIFORM:
            found[pair] = after
        elif setting in MASKINGS and after in UNIFORM and before not in UNIFORM:
            found[Pair(pair.reference, pair.system)] = before
    return dict(sorted(found.items(), key=lambda item: item[1] != "importance"))


def not_pretrained(facts: Facts, system: str) -> str:
    """Return the compared system that differs only in lacking pre-training; "" if none exists."""
    for pair in compared(facts):
        setting, before, after = single_change(facts, pair) or ("", "", "")
        if setting == "encoder.objective" and system in pair and "none" in (before, after):
            return pair.reference if before == "none" else pair.system
    return ""


# --- tests ----------------------------------------------------------------------------------------


def named(facts: Facts, column: Column) -> dict[Pair, Difference]:
    """Test all named pairs on a column, with Holm's correction over each reference's pairs."""
    found: dict[Pair, Difference] = {}
    families: dict[str, list[Pair]] = {}
    for pair in compared(facts):
        families.setdefault(pair.reference, []).append(pair)
    for pairs in families.values():
        gaps = {pair: columns.difference(facts, column, *pair) for pair in pairs}
        known = {pair: gap for pair, gap in gaps.items() if gap}
        found |= dict(zip(known, corrected([*known.values()]), strict=True))
    return {pair: found[pair] for pair in compared(facts) if pair in found}


def every_pair(facts: Facts, column: Column) -> dict[Pair, Difference]:
    """Test all pairs of systems on a column, with Holm's correction over all pairs."""
    gaps = {}
    for names in itertools.combinations(facts.systems, 2):
        gap = columns.difference(facts, column, *names)
        if gap:
            gaps[Pair(*names)] = gap
    return dict(zip(gaps, corrected([*gaps.values()]), strict=True))


def misspelt_losses(facts: Facts, clean: Target) -> dict[str, Difference]:
    """Subtract each system's values of queries as they are from those of the misspelt ones."""
    typos = Target(clean.collection, clean.split + columns.SUFFIX)
    measure = facts.main_measure(clean)
    gaps = {}
    for system in facts.systems:
        before = facts.values.get((system, clean, measure))
        after = facts.values.get((system, typos, measure))
        if before is not None and after is not None:
            gaps[system] = paired(after.to_numpy(), before.reindex(after.index).to_numpy())
    return dict(zip(gaps, corrected([*gaps.values()]), strict=True))


def frame(facts: Facts) -> pd.DataFrame:
    """Test all comparisons of the report: a row per pair and column, with the columns `COLUMNS`."""
    rows: list[list[Any]] = []

    def add(kind: str, words: str, pair: Pair, column: Column, gap: Difference) -> None:
        numbers = [gap.a, gap.b, gap.difference, gap.low, gap.high, gap.p]
        labels = [kind, words, *pair, column.name, column.measure]
        rows.append([*labels, *numbers, gap.verdict, gap.seeds, gap.queries])

    whole = columns.whole(facts)
    reported = columns.reported(facts)
    on = [column for column in dict.fromkeys([whole, *columns.overview(facts)]) if column]
    masks, masking = next(iter(masking_pairs(facts).items()), (None, ""))
    for column in on:
        planned = columns.difference(facts, column, *masks) if masks and column is whole else None
        if planned:
            words = _change_in_words(MASKINGS[0], UNIFORM[0], masking)
            add(PLANNED, words, masks, column, planned)
        for pair, gap in named(facts, column).items():
            if not planned or {*pair} != {*masks}:
                add(*question(facts, pair), pair, column, gap)
    for pair, gap in (every_pair(facts, reported) if reported else {}).items():
        add(EVERY_PAIR, "", pair, reported, gap)
    for target in facts.targets:
        for name, gap in misspelt_losses(facts, target).items():
            column = columns.of(target, facts.main_measure(target))
            add(MISSPELT, "misspelt queries", Pair(name, name), column, gap)
    return pd.DataFrame(rows, columns=COLUMNS)
