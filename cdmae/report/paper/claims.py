"""Score the paper's claims on a run: true, false or undecided; others are not tested.

A claimed difference of two systems is true if it is significant, and false if the opposite
difference is. With one training each, another seed may change the outcome, which then says so.

The claims are rows of ``claims.csv``: the statement; its section; the rows of the section's table
whose systems it compares (`report.methods` names them), and whose published numbers it shows; or
else `decided_by`: ``masks``, ``pre-training`` or ``stop-words``.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd

from cdmae import formats
from cdmae.report import columns
from cdmae.report.comparisons import OBJECTIVE, Pair, change, masked, masking_pairs, tested
from cdmae.report.facts import Facts
from cdmae.report.paper import published
from cdmae.report.paper.exhibits import systems
from cdmae.report.sections import shown_interval

FILE = Path(__file__).with_suffix(".csv")
OUTCOMES = {"better": "true", "worse": "false", "open": "undecided"}
# smaller changes of the stop-words' share of masked word-pieces leave the claim undecided
FEWER = 0.01


def scored(facts: Facts) -> pd.DataFrame:
    """Tabulate the claims that the run tests."""
    rows = []
    for claim in pd.read_csv(FILE, dtype=str, keep_default_na=False).itertuples():
        stop_words = claim.decided_by == "stop-words"
        evidence = fewer_stop_words(facts) if stop_words else _gain(claim, facts)
        if evidence:
            rows.append({"section": claim.section, "claim": claim.statement} | evidence)
    order = ["section", "claim", "outcome", "paper", "here", "95 % interval", "compared"]
    return pd.DataFrame(rows, columns=order)


def _gain(claim: Any, facts: Facts) -> dict[str, str] | None:
    """Judge whether the first system of a pair beats the second; None if the run lacks the pair.

    They are compared in the main measure on the reported target, or on the zero-shot collections.
    """
    table = claim.section.rpartition(", ")[2]
    column = columns.reported(facts)
    if table == "table 3":
        others = columns.zero_shot(facts)
        name = formats.plural(len(others), "collection")
        column = columns.together(others, name) if others else None
    pair = _pair(claim, systems(facts, table), facts)
    if not column or not pair or not set(pair) <= set(facts.systems):
        return None
    gap = tested(facts, column, pair)
    if not gap:
        return None
    once = " (one training)" if gap.significant and gap.seeds == 1 else ""
    paper = formats.NONE
    if claim.better:
        key = published.AVERAGE if table == "table 3" else published.MAIN
        rows = published.tables()[table]
        gained = rows[claim.better].values[key] - rows[claim.worse].values[key]
        paper = formats.signed(gained / 100)
    return {
        "outcome": OUTCOMES[gap.verdict] + once,
        "paper": paper,
        "here": formats.signed(gap.difference),
        "95 % interval": shown_interval(gap.low, gap.high),
        "compared": f"{' over '.join(pair)}: {column.head}",
    }


def _pair(claim: Any, rows: dict[str, str], facts: Facts) -> Pair | None:
    """Return the pair of systems that a claim compares; the better one by the paper first."""
    if not claim.decided_by:
        named = claim.better in rows and claim.worse in rows
        return Pair(rows[claim.better], rows[claim.worse]) if named else None
    masks = next(iter(masking_pairs(facts)), None)
    if claim.decided_by == "masks" or not masks:
        return masks
    for other in facts.systems:  # the system that differs only in lacking pre-training
        pair = Pair(masks.system, other)
        one = change(facts, pair)
        if one and one.setting == OBJECTIVE and one.before == "none":
            return pair
    return None


def fewer_stop_words(facts: Facts) -> dict[str, str] | None:
    """Judge whether importance-aware masks cover stop-words and punctuation less often."""
    masks = masked(facts)
    if not masks:
        return None
    shares = [masks[kind]["stop_word_share"] for kind in ("uniform", "importance")]
    more = shares[1] - shares[0]
    verdict = "worse" if more > 0 else "better"
    return {
        "outcome": OUTCOMES["open" if abs(more) < FEWER else verdict],
        "paper": "40 %",
        "here": " → ".join(map(formats.percent, shares)),
        "95 % interval": formats.NONE,
        "compared": "uniform against importance-aware masks",
    }
