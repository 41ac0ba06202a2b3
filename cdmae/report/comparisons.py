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

from cdmae.config.schema import EVERY
from cdmae.evaluation.significance import Difference, corrected
from cdmae.report import columns
from cdmae.report.columns import Column
from cdmae.report.facts import Facts
from cdmae.report.recipes import differences, shown

UNIFORM = ("whole_word", "uniform")
MASKINGS = ("encoder.decoder_masking", "encoder.encoder_masking")
OBJECTIVE = "encoder.objective"
# kinds of systems that reorder or sum the runs of others, with their names in questions
ORDERING = {"reranker": "reranking", "fusion": "fusion"}
MOST_NAMED = 3  # settings that a question names
# Kinds of comparisons: the masks on all sets of queries together, the one planned test, which is
# not corrected for the others; another pair that the config names, or that differs in one setting;
# all other systems with those that the config compares every system with; all pairs on the
# reported split.
PLANNED = "planned"
QUESTION = "question"
BASELINE = "baseline"
EVERY_PAIR = "every pair"
COLUMNS = [
    "kind", "question", "system", "reference", "on", "measure", "mean", "reference_mean",
    "difference", "low", "high", "p", "tests", "verdict", "seeds", "queries",
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
    compare = facts.config.report.compare
    pairs = []
    for system, references in compare.items():
        if system != EVERY:
            pairs += [Pair(system, reference) for reference in references]
    for reference in (facts.baseline, *compare.get(EVERY, ())):
        pairs += [Pair(system, reference) for system in facts.systems]
    listed: dict[frozenset[str], Pair] = {}
    for pair in pairs:
        if pair.system != pair.reference and set(pair) <= set(facts.systems):
            listed.setdefault(frozenset(pair), pair)
    return list(listed.values())


def retrievers(facts: Facts) -> list[str]:
    """List the retrievers that were trained here and measured, in config order."""
    return [name for name in facts.systems if facts.entry(name).kind == "retriever"]


@cache
def planned(facts: Facts) -> Pair | None:
    """Return the first comparison of other masks with uniform ones; None without such a pair.

    The two systems differ in nothing else. The config may name them in either direction.
    """
    for pair in compared(facts):
        for ordered in (pair, Pair(pair.reference, pair.system)):
            if masking(facts, ordered):
                return ordered
    return None


def masking(facts: Facts, pair: Pair) -> str:
    """Return the masking of a system that replaces its reference's uniform masks.

    Empty if the two systems differ in anything else.
    """
    if not set(pair) <= set(retrievers(facts)):
        return ""
    different = differences(facts, pair.reference, pair.system)
    for setting in MASKINGS:
        if list(different) == [setting]:
            before, after = different[setting]
            return after if before in UNIFORM and after not in UNIFORM else ""
    return ""


def question(facts: Facts, pair: Pair) -> tuple[str, str]:
    """Return the kind of a pair, `QUESTION` or `BASELINE`, and its question in words."""
    is_named = pair.reference in facts.config.report.compare.get(pair.system, ())
    kind = QUESTION if is_named else BASELINE
    system = facts.entry(pair.system)
    if system.kind in ORDERING and pair.reference in system.parts():
        return QUESTION, ORDERING[system.kind]
    if pair.reference == facts.bm25:
        return kind, "against BM25"
    reference = facts.entry(pair.reference)
    if system.kind == "retriever" and reference.kind == "external":
        encoder = facts.config.encoders[system.encoder]
        if facts.config.starts[encoder.start].checkpoint == reference.model:
            return QUESTION, "training"
    if not set(pair) <= set(retrievers(facts)):
        return kind, "another kind of system"
    if system.encoder == reference.encoder and system.negatives == pair.reference:
        teacher = " and a teacher" if system.is_taught or system.in_batch_teacher else ""
        return QUESTION, f"next stage: hard negatives{teacher}"
    different = differences(facts, pair.reference, pair.system)
    if len(different) == 1:
        [(setting, (before, after))] = different.items()
        return QUESTION, masks_in_words(facts, pair) or _change(setting, before, after)
    if OBJECTIVE in different and all(key.startswith("encoder.") for key in different):
        return kind, _change(OBJECTIVE, *different[OBJECTIVE])
    names = list(dict.fromkeys(map(_plain, different)))
    if len(names) > MOST_NAMED:
        names = [*names[:MOST_NAMED], "..."]
    return kind, ", ".join(names) or "the same settings"


def masks_in_words(facts: Facts, pair: Pair) -> str:
    """Describe a change from uniform to other masks; empty for other pairs."""
    name = masking(facts, pair).replace("_", " ")
    return f"masks: {name} instead of uniform" if name else ""


def _change(setting: str, before: Any, after: Any) -> str:
    """Describe the change of one setting."""
    if setting == OBJECTIVE and before == "none":
        return "pre-training"
    if setting == OBJECTIVE and after == "none":
        return "no pre-training"
    return f"{_plain(setting)}: {shown(before)} → {shown(after)}"


def _plain(setting: str) -> str:
    """Name a setting without its section."""
    return setting.rpartition(".")[2].replace("_", " ")


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
    found = named(facts, column)
    turned = found.get(Pair(pair.reference, pair.system))
    if turned:
        return turned.reversed
    return found.get(pair) or columns.difference(facts, column, *pair)


def frame(facts: Facts) -> pd.DataFrame:
    """Test all comparisons of the report: a row per pair and column, with the columns `COLUMNS`."""
    rows: list[list[Any]] = []

    def add(kind: str, words: str, pair: Pair, column: Column, gap: Difference) -> None:
        labels = [kind, words, *pair, column.name, column.measure]
        numbers = [gap.a, gap.b, gap.difference, *gap.interval, gap.p, gap.tests]
        rows.append([*labels, *numbers, gap.verdict, gap.seeds, gap.queries])

    whole = columns.whole(facts)
    reported = columns.reported(facts)
    if whole is None or reported is None:
        return pd.DataFrame(columns=COLUMNS)
    masks = planned(facts)
    gap = columns.difference(facts, whole, *masks) if masks else None
    if masks and gap:
        add(PLANNED, masks_in_words(facts, masks), masks, whole, gap)
    for column in dict.fromkeys([whole, *columns.overview(facts)]):
        for pair, gap in named(facts, column).items():
            if not masks or column != whole or set(pair) != set(masks):
                add(*question(facts, pair), pair, column, gap)
    # BM25 is usually the first system; the differences are of later systems from it
    every = itertools.starmap(Pair, itertools.combinations(reversed(facts.systems), 2))
    for pair, gap in _tested(facts, reported, every).items():
        add(EVERY_PAIR, "", pair, reported, gap)
    return pd.DataFrame(rows, columns=COLUMNS)
