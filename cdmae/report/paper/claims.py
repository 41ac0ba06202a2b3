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
from cdmae.report import columns, notation
from cdmae.report.comparisons import OBJECTIVE, Pair, planned, retrievers, tested
from cdmae.report.facts import Facts
from cdmae.report.paper import published
from cdmae.report.paper.exhibits import rows_of
from cdmae.report.recipes import differences
from cdmae.report.sections import shown_interval

FILE = Path(__file__).with_suffix(".csv")
COLUMNS = ["section", "claim", "outcome", "paper", "here", "interval", "compared"]
OUTCOMES = {"better": "true", "worse": "false", "open": "undecided"}
# smaller changes of the stop-words' share of masked word-pieces leave the claim undecided
FEWER = 0.01


def scored(facts: Facts, masks: dict[str, Any] | None) -> pd.DataFrame:
    """Tabulate the claims that the run tests; masks: of `cdmae.masking.terms`."""
    rows = []
    for claim in pd.read_csv(FILE, dtype=str, keep_default_na=False).itertuples():
        if claim.decided_by == "stop-words":
            evidence = fewer_stop_words(masks) if masks else None
        else:
            evidence = _gain(claim, facts)
        if evidence:
            rows.append({"section": claim.section, "claim": claim.statement} | evidence)
    return pd.DataFrame(rows, columns=COLUMNS)


def _gain(claim: Any, facts: Facts) -> dict[str, str] | None:
    """Judge whether the first system of a pair beats the second; None if the run lacks the pair.

    They are compared in the main measure on the reported target, or on the zero-shot collections.
    """
    table = claim.section.rpartition(", ")[2]
    column, key = columns.reported(facts), published.MAIN
    if table == "table 3":
        others = columns.zero_shot(facts)
        name = formats.plural(len(others), "collection")
        mean = columns.graded(facts, columns.together(others, name)) if others else None
        column, key = mean, published.AVERAGE
    pair = _pair(claim, table, facts)
    gap = tested(facts, column, pair) if column and pair else None
    if not gap:
        return None
    once = " (one training)" if gap.significant and gap.seeds == 1 else ""
    paper = notation.NONE
    if claim.better:
        better, worse = (published.tables()[table][row] for row in (claim.better, claim.worse))
        paper = notation.signed((better.values[key] - worse.values[key]) / 100)
    return {
        "outcome": OUTCOMES[gap.verdict] + once,
        "paper": paper,
        "here": notation.signed(gap.difference),
        "interval": shown_interval(*gap.interval),
        "compared": f"{' over '.join(pair)}: {column.head}",
    }


def _pair(claim: Any, table: str, facts: Facts) -> Pair | None:
    """Return the pair of systems that a claim compares; the better one by the paper first."""
    if not claim.decided_by:
        rows = rows_of(facts.config, table)
        named = claim.better in rows and claim.worse in rows
        return Pair(rows[claim.better], rows[claim.worse]) if named else None
    masks = planned(facts)
    if claim.decided_by == "masks" or not masks:
        return masks
    for other in retrievers(facts):  # the one that differs only in lacking pre-training
        different = differences(facts, other, masks.system)
        if list(different) == [OBJECTIVE] and different[OBJECTIVE][0] == "none":
            return Pair(masks.system, other)
    return None


def fewer_stop_words(masks: dict[str, Any]) -> dict[str, str]:
    """Judge whether importance-aware masks cover stop-words and punctuation less often."""
    shares = [masks[kind]["stop_word_share"] for kind in ("uniform", "importance")]
    more = shares[1] - shares[0]
    verdict = "worse" if more > 0 else "better"
    return {
        "outcome": OUTCOMES["open" if abs(more) < FEWER else verdict],
        "paper": "40 %",
        "here": " → ".join(map(notation.percent, shares)),
        "interval": notation.NONE,
        "compared": "uniform against importance-aware masks",
    }
