"""Score the paper's claims on a run: true, false or undecided; others are not tested.

A claimed difference of two systems is true if it is significant, and false if the opposite
difference is. With one training each, another seed may change the outcome, which then says so.

The claims are rows of ``claims.csv``: the statement; its section; the rows of the section's table
whose systems it compares (`report.methods` names them), and whose published numbers it shows; or
else `decided_by`: ``masks``, ``pre-training`` or ``stop-words``.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from cdmae import formats
from cdmae.evaluation.significance import Difference
from cdmae.report import columns
from cdmae.report.comparisons import Pair, masking_pairs, named, not_pretrained
from cdmae.report.facts import Facts
from cdmae.report.masks import shown_masks
from cdmae.report.paper import published
from cdmae.report.paper.exhibits import systems
from cdmae.report.sections import shown_interval

FILE = Path(__file__).with_suffix(".csv")
TRUE, FALSE, UNDECIDED = ("true", "false", "undecided")
ONCE = " (one training)"
STOP_WORDS = "stop-words"
OF_VERDICT = {"better": TRUE, "worse": FALSE, "open": UNDECIDED}
# smaller changes of the stop-words' share of masked word-pieces leave the claim undecided
FEWER = 0.01


class Evidence(NamedTuple):
    """A run's evidence on a claim: outcome, number, interval, and what was compared."""

    outcome: str
    here: str
    compared: str
    interval: str = formats.NONE


@cache
def claims() -> list[Any]:
    """Read the paper's claims in their order, as named tuples with the columns of the file."""
    frame = pd.read_csv(FILE, dtype=str, keep_default_na=False)
    return list(frame.itertuples(index=False, name="Claim"))


def papers_number(claim: Any) -> str:
    """Return the paper's number: MRR@10 on MS MARCO dev, or the average of table 3."""
    if not claim.better:
        return claim.value or formats.NONE
    key = published.AVERAGE if _zero_shot(claim) else published.MAIN
    rows = published.rows(_table(claim))
    return formats.signed((rows[claim.better].values[key] - rows[claim.worse].values[key]) / 100)


def _table(claim: Any) -> str:
    return claim.section.rpartition(", ")[2]


def _zero_shot(claim: Any) -> bool:
    """Return whether a claim is about collections without training queries."""
    return claim.section.endswith("table 3")


def score(claim: Any, facts: Facts) -> Evidence | None:
    """Judge whether the first system of a pair beats the second in the main measure.

    They are compared on the reported target, or on the zero-shot collections. The result is None if
    the run lacks the pair.
    """
    if claim.decided_by == STOP_WORDS:
        return fewer_stop_words(facts)
    reported = columns.reported(facts)
    others = columns.zero_shot(facts) if _zero_shot(claim) else [reported] if reported else []
    pair = _pair(claim, facts)
    if not pair or not others:
        return None
    column = columns.together(others, str(others[0].targets[0]))
    if len(others) > 1:
        column = columns.together(others, formats.plural(len(others), "collection"))
    gap = named(facts, column).get(pair) or columns.difference(facts, column, *pair)
    return _scored(gap, f"{' over '.join(pair)}: {column.head}") if gap else None


def _pair(claim: Any, facts: Facts) -> Pair | None:
    """Return the pair of systems that a claim compares; the better one by the paper first."""
    if claim.decided_by:
        ours, uniform = next(iter(masking_pairs(facts)), ("", ""))
        if claim.decided_by == "masks":
            return Pair(ours, uniform) if ours else None
        without = not_pretrained(facts, ours) if ours else ""
        return Pair(ours, without) if without else None
    rows = systems(facts, _table(claim))
    pair = Pair(rows.get(claim.better, ""), rows.get(claim.worse, ""))
    return pair if all(pair) and set(pair) <= set(facts.systems) else None


def _scored(gap: Difference, compared: str) -> Evidence:
    once = ONCE if gap.significant and gap.seeds == 1 else ""
    interval = shown_interval(gap.low, gap.high)
    return Evidence(
        OF_VERDICT[gap.verdict] + once, formats.signed(gap.difference), compared, interval
    )


def fewer_stop_words(facts: Facts) -> Evidence | None:
    """Judge whether importance-aware masks cover stop-words and punctuation less often."""
    if not facts.masked_terms:
        return None
    masked = facts.masked_terms[shown_masks(facts)]
    shares = [masked[kind]["stop_word_share"] for kind in ("uniform", "importance")]
    more = shares[1] - shares[0]
    outcome = FALSE if more > 0 else TRUE
    if abs(more) < FEWER:
        outcome = UNDECIDED
    here = " → ".join(map(formats.percent, shares))
    return Evidence(outcome, here, "uniform against importance-aware masks")


def scored(facts: Facts) -> pd.DataFrame:
    """Tabulate the claims that the run tests."""
    rows = []
    for claim in claims():
        evidence = score(claim, facts)
        if evidence:
            row = {"section": claim.section, "claim": claim.statement, "outcome": evidence.outcome}
            row |= {"paper": papers_number(claim), "here": evidence.here}
            row |= {"95 % interval": evidence.interval, "compared": evidence.compared}
            rows.append(row)
    return pd.DataFrame(rows)
