"""Score the paper's claims on a run: true, false, undecided within the noise, or not tested.

A difference of two systems is true where a paired t-test and the noise band of one seed leave no
doubt, false where they leave none about the opposite.

The claims are rows of ``claims.csv``: a statement, the section where it stands, what decides it
here (a pair of `sides`, or a function of `JUDGES`), and what a config must have for that. The
paper's number is the difference of two rows of the table in the section, by name and stage, or the
share in one row; without these it is `number`, with its `value`. It is points of the measure that
the paper used.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from cdmae import formats
from cdmae.evaluation.significance import Difference, paired
from cdmae.report.columns import Column, main_column, together, zero_shot
from cdmae.report.comparisons import arms, chains, masking_pairs, not_pretrained, pairs
from cdmae.report.facts import Facts
from cdmae.report.paper import published
from cdmae.report.paper.methods import corpora, main_chain, methods
from cdmae.report.recipes import differences
from cdmae.report.sections import difference_cells
from cdmae.report.sections.masking import by_kind, shown_encoder
from cdmae.report.tables import Cell, Table

FILE = Path(__file__).with_suffix(".csv")
TRUE, FALSE, UNDECIDED, NOT_TESTED = OUTCOMES = ("true", "false", "undecided", "not tested")
OF_VERDICT = {"better": TRUE, "worse": FALSE, "noise": UNDECIDED, "open": UNDECIDED}
DASH = Cell(formats.NONE)
FEWER = 0.01  # of the masked word-pieces: a smaller change of the stop-words' share decides nothing
SHORT = 60  # seconds: a pre-training that took less tells by its time of the machine's other work
SLOWER = (
    1.1,
    1.25,
)  # times uniform masks: up to the first the pre-training costs no more, from the second on it does


class Evidence(NamedTuple):
    """What a run says to a claim: the number found, its interval, and what was compared."""

    outcome: str
    here: Cell
    compared: str
    interval: Cell = DASH


@cache
def claims() -> list[Any]:
    """Read what the paper states, in its order: named tuples with the columns of the file."""
    return list(
        pd.read_csv(FILE, dtype=str, keep_default_na=False).itertuples(index=False, name="Claim")
    )


def papers_number(claim: Any) -> Cell:
    """Return the paper's number: MRR@10 on MS MARCO dev, or the average of table 3.

    The number is read when it is shown.
    """
    if not claim.row:
        return Cell(claim.number, float(claim.value)) if claim.number else DASH
    if not claim.other_row:
        [share] = published.rows(f"section {claim.section}")[
            claim.row, int(claim.stage)
        ].values.values()
        return Cell(formats.percent(share / 100), share / 100)
    key = published.AVERAGE if _zero_shot(claim) else published.Key(published.DEV, "RR@10")
    table = published.rows(claim.section.rpartition(", ")[2])
    rows = (claim.row, int(claim.stage)), (claim.other_row, int(claim.other_stage))
    a, b = (table[row].values[key] for row in rows)
    return Cell(formats.signed((a - b) / 100), round(a - b, 1))


def score(claim: Any, facts: Facts) -> Evidence | None:
    """Score whether the first system of a pair beats the second in the main measure.

    Returns None without the pair.

    They are compared on the main target, or on the zero-shot collections.
    """
    if claim.decided_by in JUDGES:
        return JUDGES[claim.decided_by](facts)
    names, columns = (
        sides(facts).get(claim.decided_by),
        zero_shot(facts) if _zero_shot(claim) else [main_column(facts)],
    )
    column = together(columns, "") if names and columns else None
    gap = column.difference(*names) if column else None
    if not gap:
        return None
    place = (
        str(column.target)
        if len(column.sets) == 1
        else formats.plural(len(column.sets), "collection")
    )
    return _scored(gap, column, f"{' over '.join(names)}: {column.unit}, {place}")


def _zero_shot(claim: Any) -> bool:
    return claim.section.endswith("table 3")  # on collections that nothing was trained on


@cache
def sides(facts: Facts) -> dict[str, Sequence[str]]:
    """Return the systems that claims compare, by the name of the pair.

    The system that the paper claims to be better comes first.

    The paper's method and another one differ in the pre-training alone. What later stages add is
    told by another encoder's chain where that one goes further.
    """
    first, groups = main_chain(facts)[:1], arms(facts, "stage.group")
    chain = max([main_chain(facts), *chains(facts)], key=len)
    named: dict[str, Sequence[str]] = {
        "masks": next(iter(masking_pairs(facts)), ()),
        "pre-training": [*first, *(not_pretrained(facts, name) for name in first)],
        "stage 2": chain[1::-1],
        "stage 3": chain[2:0:-1],
        "BM25": [*chain[-1:], facts.bm25],
        "projection": next(iter(pairs(facts, "encoder.projection", True, False)), ()),
        "corpus": [
            corpora(facts).get(label, [""])[0] for label in ("general, then domain", "domain")
        ],
        "group": [groups[max(groups)], groups[min(groups)]] if groups else (),
    }
    for method, systems in methods(facts).items():
        pair = [*first, *systems[:1]]
        if len(pair) == 2 and all(key.startswith("encoder.") for key in differences(facts, *pair)):
            named[method] = pair
    return {name: pair for name, pair in named.items() if len(pair) == 2 and all(pair)}


def _scored(gap: Difference, column: Column, compared: str) -> Evidence:
    here, interval, _ = difference_cells(gap)
    return Evidence(OF_VERDICT[column.verdict(gap)], here, compared, interval)


def diminishing(facts: Facts) -> Evidence | None:
    """Score whether importance-aware masks gain more at the first stage than at the last.

    The gain is over uniform masks.
    """
    chain, uniform, column = main_chain(facts), dict(masking_pairs(facts)), main_column(facts)
    if len(chain) < 3 or not {chain[0], chain[-1]} <= uniform.keys():
        return None
    ends = [(name, uniform[name]) for name in (chain[0], chain[-1])]
    values = {
        name: facts.per_query(name, column.target, column.measure) for pair in ends for name in pair
    }
    first, last = (values[aware] - values[other] for aware, other in ends)
    compared = ", minus ".join(map(" over ".join, ends))
    gap = column.with_seeds(paired(first, last.reindex(first.index)))
    return _scored(gap, column, f"{compared}: {column.target}")


def fewer_stop_words(facts: Facts) -> Evidence | None:
    """Score whether stop-words and punctuation are masked less often by importance."""
    shares = (
        by_kind(facts.masked_terms[shown_encoder(facts)], "stop_word_share")
        if facts.masked_terms
        else None
    )
    if not shares:
        return None
    more = shares[1] - shares[0]
    outcome = UNDECIDED if abs(more) < FEWER else FALSE if more > 0 else TRUE
    here = Cell(" \N{RIGHTWARDS ARROW} ".join(map(formats.percent, shares)), more)
    return Evidence(outcome, here, "uniform against importance-aware masks")


def no_expense(facts: Facts) -> Evidence | None:
    """Score whether the pre-training takes no longer than with uniform masks."""
    encoders = map(facts.encoder_of, sides(facts).get("masks", ()))
    ours, theirs = [facts.pretraining_seconds(encoder) for encoder in encoders] or (
        math.nan,
        math.nan,
    )
    if math.isnan(ours) or not theirs > 0:
        return None
    ratio = ours / theirs
    outcome = TRUE if ratio <= SLOWER[0] else FALSE if ratio >= SLOWER[1] else UNDECIDED
    outcome = outcome if min(ours, theirs) >= SHORT else UNDECIDED
    times = f"{formats.duration(ours)} against {formats.duration(theirs)}"
    return Evidence(outcome, Cell(f"{ratio:.2f}\N{NO-BREAK SPACE}x", ratio), times)


def cheaper_masks(facts: Facts) -> Evidence | None:
    """Score whether a mask by importance is cheaper than RetroMAE's and SimLM's.

    SimLM's cost includes its generator.
    """
    times = facts.latency.get("batch")
    if not times:
        return None
    ours, other = (
        times["CDMAE"],
        min(times["RetroMAE, ours"], times["SimLM, masks"] + times["SimLM, generator"]),
    )
    here = Cell(f"{ours:.1f} against {other:.1f}\N{NO-BREAK SPACE}ms", ours / other)
    compared = "a batch on one thread; RetroMAE's masks as they are computed here"
    return Evidence(TRUE if ours < other else FALSE, here, compared)


JUDGES = {
    judge.__name__: judge for judge in (diminishing, fewer_stop_words, no_expense, cheaper_masks)
}


def claims_table(facts: Facts, name: str = "claims") -> Table:
    """List all claims: first the claims that the run decides, then the others with their needs."""
    scored = [(claim, score(claim, facts)) for claim in claims()]
    body = []
    for claim, evidence in sorted(scored, key=lambda pair: pair[1] is None):
        outcome, here, compared, interval = evidence or Evidence(
            NOT_TESTED, DASH, f"needs {claim.needs}"
        )
        body.append(
            [
                claim.statement,
                outcome,
                papers_number(claim),
                here,
                interval,
                claim.section,
                compared,
            ]
        )
    head = ["claim", "outcome", "paper", "here", "95 % interval", "section", "compared"]
    return Table(
        name,
        "The paper's claims, scored here",
        head,
        body,
        texts=["outcome", "section", "compared"],
    )
