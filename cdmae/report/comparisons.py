"""List the report's comparisons, each with the question that it answers, and test them.

`evaluation.baseline` and `report.compare` of the config name the pairs of systems. The question of
a pair are the settings in which the two systems differ (see `cdmae.report.recipes`).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from functools import cache
from typing import Any, NamedTuple

import pandas as pd

from cdmae.config.kinds import TEACHERS
from cdmae.config.schema import EVERY
from cdmae.evaluation.significance import Difference, corrected
from cdmae.report import columns
from cdmae.report.columns import Column
from cdmae.report.facts import Facts
from cdmae.report.recipes import differences, shown

UNIFORM = ("whole_word", "uniform")
MASKINGS = ("encoder.decoder_masking", "encoder.encoder_masking")
OBJECTIVE = "encoder.objective"
MOST_NAMED = 3  # settings that a question names
# Kinds of comparisons: the masks on all sets of queries together, the one planned test, which is
# not corrected for the others; another named pair that varies one thing; the other named pairs; all
# pairs on the reported split.
PLANNED = "planned"
ONE_THING = "one thing"
NAMED = "named"
EVERY_PAIR = "every pair"
COLUMNS = [
    "kind", "question", "system", "reference", "on", "measure", "mean", "reference_mean",
    "difference", "low", "high", "p", "verdict", "seeds", "queries",
]  # fmt: skip


class Pair(NamedTuple):
    """A comparison of `system` with `reference`."""

    system: str
    reference: str


class Change(NamedTuple):
    """The one setting in which two systems differ, with its value in the reference and after it."""

    setting: str
    before: Any
    after: Any

    @property
    def masking(self) -> str:
        """Return the masking that replaces uniform masks; "" for another change."""
        if self.setting not in MASKINGS or self.before not in UNIFORM or self.after in UNIFORM:
            return ""
        return self.after

    @property
    def words(self) -> str:
        """Describe the change."""
        if self.masking:
            return f"masks: {self.masking.replace('_', ' ')} instead of uniform"
        if self.setting == OBJECTIVE and self.before == "none":
            return "pre-training"
        if self.setting == OBJECTIVE and self.after == "none":
            return "no pre-training"
        return f"{_plain(self.setting)}: {shown(self.before)} → {shown(self.after)}"


@cache
def compared(facts: Facts) -> list[Pair]:
    """List all comparisons, each in one direction.

    The pairs of `report.compare` come first, in its order. Then every system is compared with
    `evaluation.baseline`, and with the systems of the entry ``"*"`` of `report.compare`. p-values
    are corrected over the comparisons with the same reference. Two systems that are listed in both
    directions are compared in the first direction.
    """
    pairs = []
    for system, references in facts.report.compare.items():
        if system != EVERY:
            pairs += [Pair(system, reference) for reference in references]
    for reference in (facts.baseline, *facts.report.compare.get(EVERY, ())):
        pairs += [Pair(system, reference) for system in facts.systems]
    listed: dict[frozenset[str], Pair] = {}
    for pair in pairs:
        if pair.system != pair.reference and set(pair) <= set(facts.systems):
            listed.setdefault(frozenset(pair), pair)
    return list(listed.values())


@cache
def retrievers(facts: Facts) -> list[str]:
    """List the retrievers that were trained here and measured, in config order."""
    kinds = {name: facts.kind(name) for name in facts.systems}
    return [name for name, kind in kinds.items() if kind.trained and kind.searches]


@cache
def change(facts: Facts, pair: Pair) -> Change | None:
    """Return the one setting in which two retrievers differ; None if they differ in more."""
    if not set(pair) <= set(retrievers(facts)):
        return None
    different = differences(facts, pair.reference, pair.system)
    if len(different) != 1:
        return None
    [(setting, (before, after))] = different.items()
    return Change(setting, before, after)


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
    reference = facts.system(pair.reference)
    if entry["encoder"] == reference["encoder"] and entry.get("negatives") == pair.reference:
        teacher = " and a teacher" if any(entry.get(key) for key in TEACHERS) else ""
        return ONE_THING, f"next stage: hard negatives{teacher}"
    one = change(facts, pair)
    if one:
        return ONE_THING, one.words
    names = list(dict.fromkeys(map(_plain, differences(facts, pair.reference, pair.system))))
    if len(names) > MOST_NAMED:
        names = [*names[:MOST_NAMED], "..."]
    return NAMED, ", ".join(names) or "the same settings"


def _plain(setting: str) -> str:
    """Name a setting without its section."""
    return setting.rpartition(".")[2].replace("_", " ")


@cache
def masking_pairs(facts: Facts) -> dict[Pair, Change]:
    """List the pairs (another masking, uniform) that differ in their masking alone.

    The pairs may be named in either direction. Masks by importance come first.
    """
    found: dict[Pair, Change] = {}
    for pair in compared(facts):
        for ordered in (pair, Pair(pair.reference, pair.system)):
            one = change(facts, ordered)
            if one and one.masking:
                found[ordered] = one
    return dict(sorted(found.items(), key=lambda item: item[1].masking != "importance"))


def masked(facts: Facts) -> dict[str, Any] | None:
    """Return the words that the masks of the first encoder compared with uniform ones cover."""
    encoders = [facts.kind(pair.system).encoder for pair in masking_pairs(facts)]
    known = [facts.masked_terms.get(name) for name in [*encoders, *facts.masked_terms]]
    return next(filter(None, known), None)


# --- tests ----------------------------------------------------------------------------------------


def _tested(facts: Facts, column: Column, pairs: Iterable[Pair]) -> dict[Pair, Difference]:
    """Test pairs of systems on a column, with Holm's correction for all of them."""
    gaps = {pair: columns.difference(facts, column, *pair) for pair in pairs}
    measured = {pair: gap for pair, gap in gaps.items() if gap}
    return dict(zip(measured, corrected([*measured.values()]), strict=True))


@cache
def named(facts: Facts, column: Column) -> dict[Pair, Difference]:
    """Test all named pairs on a column, with Holm's correction over each reference's pairs."""
    families: dict[str, list[Pair]] = {}
    for pair in compared(facts):
        families.setdefault(pair.reference, []).append(pair)
    found: dict[Pair, Difference] = {}
    for pairs in families.values():
        found |= _tested(facts, column, pairs)
    return {pair: found[pair] for pair in compared(facts) if pair in found}


def tested(facts: Facts, column: Column, pair: Pair) -> Difference | None:
    """Test two systems as the page does if the config names the pair, or alone."""
    return named(facts, column).get(pair) or columns.difference(facts, column, *pair)


def frame(facts: Facts) -> pd.DataFrame:
    """Test all comparisons of the report: a row per pair and column, with the columns `COLUMNS`."""
    rows: list[list[Any]] = []

    def add(kind: str, words: str, pair: Pair, column: Column, gap: Difference) -> None:
        labels = [kind, words, *pair, column.name, column.measure]
        numbers = [gap.a, gap.b, gap.difference, gap.low, gap.high, gap.p]
        rows.append([*labels, *numbers, gap.verdict, gap.seeds, gap.queries])

    whole = columns.whole(facts)
    reported = columns.reported(facts)
    if whole is None or reported is None:
        return pd.DataFrame(columns=COLUMNS)
    masks = next(iter(masking_pairs(facts)), None)
    planned = columns.difference(facts, whole, *masks) if masks else None
    if masks and planned:
        add(PLANNED, change(facts, masks).words, masks, whole, planned)
    for column in dict.fromkeys([whole, *columns.overview(facts)]):
        for pair, gap in named(facts, column).items():
            if not planned or column != whole or {*pair} != {*masks}:
                add(*question(facts, pair), pair, column, gap)
    every = itertools.starmap(Pair, itertools.combinations(facts.systems, 2))
    for pair, gap in _tested(facts, reported, every).items():
        add(EVERY_PAIR, "", pair, reported, gap)
    return pd.DataFrame(rows, columns=COLUMNS)
