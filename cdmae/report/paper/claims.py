"""Score the paper's claims on a run: true, false, undecided, or not tested.

A claimed difference of two systems is true if it is significant, and false if the opposite
difference is. With one training each, another seed may change the outcome, which then says so.

The claims are rows of ``claims.csv``: the statement; its section; the evidence (a pair of `sides`,
or a function of `JUDGES`); the config that the evidence needs; and the paper's number. That number,
in points of the paper's measure, is taken from the section's table: the difference of two rows,
given by name and stage, or the share in one row. Otherwise it is `number`, with its `value`.
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
from cdmae.report.columns import main_column, together, zero_shot
from cdmae.report.comparisons import arms, chains, masking_pairs, not_pretrained, pairs
from cdmae.report.facts import Facts
from cdmae.report.paper import published
from cdmae.report.paper.methods import corpora, main_chain, methods
from cdmae.report.recipes import differences
from cdmae.report.sections import INTERVAL, ONCE, difference_cells
from cdmae.report.sections.masking import by_kind, shown_encoder
from cdmae.report.tables import Cell, Table

FILE = Path(__file__).with_suffix(".csv")
TRUE, FALSE, UNDECIDED, NOT_TESTED = ("true", "false", "undecided", "not tested")
OUTCOMES = (TRUE, TRUE + ONCE, FALSE, FALSE + ONCE, UNDECIDED, NOT_TESTED)
OF_VERDICT = {"better": TRUE, "worse": FALSE, "open": UNDECIDED}
DASH = Cell(formats.NONE)
# smaller changes of the stop-words' share of masked word-pieces leave the claim undecided
FEWER = 0.01
SHORT = 60  # seconds; the time of a shorter pre-training depends on the machine's other work
# Ratios of the pre-training's time to the time with uniform masks: up to the first, the cost counts
# as equal; from the second, as higher.
SAME_COST = 1.1
HIGHER_COST = 1.25


# the pair of table 5: the corpora of the better system, and of the other
CORPORA_COMPARED = ("general, then domain", "domain")


class Evidence(NamedTuple):
    """A run's evidence on a claim: outcome, number, interval, and the compared systems."""

    outcome: str
    here: Cell
    compared: str
    interval: Cell = DASH


@cache
def claims() -> list[Any]:
    """Read the paper's claims in their order, as named tuples with the columns of the file."""
    return list(
        pd.read_csv(FILE, dtype=str, keep_default_na=False).itertuples(index=False, name="Claim")
    )


def papers_number(claim: Any) -> Cell:
    """Return the paper's number: MRR@10 on MS MARCO dev, or the average of table 3.

    The number is read only when it is needed.
    """
    if not claim.row:
        return Cell(claim.number, float(claim.value)) if claim.number else DASH
    if not claim.other_row:
        [share] = published.rows(f"section {claim.section}")[
            claim.row, int(claim.stage)
        ].values.values()
        return Cell(formats.percent(share / 100), share / 100)
    key = published.AVERAGE if _zero_shot(claim) else published.MAIN
    table = published.rows(claim.section.rpartition(", ")[2])
    a = table[claim.row, int(claim.stage)].values[key]
    b = table[claim.other_row, int(claim.other_stage)].values[key]
    return Cell(formats.signed((a - b) / 100), round(a - b, 1))


def score(claim: Any, facts: Facts) -> Evidence | None:
    """Judge whether the first system of a pair beats the second in the main measure.

    They are compared on the main target, or on the zero-shot collections. The result is None if the
    run lacks the pair.
    """
    if claim.decided_by in JUDGES:
        return JUDGES[claim.decided_by](facts)
    names = sides(facts).get(claim.decided_by)
    columns = zero_shot(facts) if _zero_shot(claim) else [main_column(facts)]
    if not names or not columns:
        return None
    column = together(columns, "")
    gap = column.difference(*names)
    if not gap:
        return None
    measured_on = str(column.target)
    if len(column.sets) > 1:
        measured_on = formats.plural(len(column.sets), "collection")
    return _scored(gap, f"{' over '.join(names)}: {column.unit}, {measured_on}")


def _zero_shot(claim: Any) -> bool:
    """Return whether a claim is about collections without training queries."""
    return claim.section.endswith("table 3")


@cache
def sides(facts: Facts) -> dict[str, Sequence[str]]:
    """Return the pairs of systems that claims compare, by the name of the pair.

    The system that the paper claims to be better comes first. A pair of the paper's method and
    another method differs only in the pre-training. Claims about later stages use another encoder's
    chain if that chain is longer.
    """
    first = main_chain(facts)[:1]
    groups = arms(facts, "stage.group")
    chain = max([main_chain(facts), *chains(facts)], key=len)
    named: dict[str, Sequence[str]] = {
        "masks": next(iter(masking_pairs(facts)), ()),
        "pre-training": [*first, *(not_pretrained(facts, name) for name in first)],
        "stage 2": chain[1::-1],
        "stage 3": chain[2:0:-1],
        "BM25": [*chain[-1:], facts.bm25],
        "projection": next(iter(pairs(facts, "encoder.projection", True, False)), ()),
        "corpus": [corpora(facts).get(label, [""])[0] for label in CORPORA_COMPARED],
        "group": [groups[max(groups)], groups[min(groups)]] if groups else (),
    }
    for method, systems in methods(facts).items():
        pair = [*first, *systems[:1]]
        if len(pair) == 2 and all(key.startswith("encoder.") for key in differences(facts, *pair)):
            named[method] = pair
    return {name: pair for name, pair in named.items() if len(pair) == 2 and all(pair)}


def _scored(gap: Difference, compared: str) -> Evidence:
    here, interval, _ = difference_cells(gap)
    outcome = OF_VERDICT[gap.verdict]
    if gap.significant and gap.seeds == 1:
        outcome += ONCE
    return Evidence(outcome, here, compared, interval)


def diminishing(facts: Facts) -> Evidence | None:
    """Judge whether importance-aware masks gain more at the first stage than at the last.

    The gain is measured against uniform masks.
    """
    chain = main_chain(facts)
    uniform = dict(masking_pairs(facts))
    column = main_column(facts)
    if len(chain) < 3 or not {chain[0], chain[-1]} <= uniform.keys():
        return None
    ends = (chain[0], chain[-1])
    seeds = facts.trainings(*ends, *(uniform[name] for name in ends))
    queries = facts.values[chain[0], column.target, column.measure].index
    gains = []  # of each stage, [Q, S]
    compared = []
    for aware in ends:
        frames = [
            facts.values[name, column.target, column.measure] for name in (aware, uniform[aware])
        ]
        ours, theirs = (frame.reindex(queries).iloc[:, :seeds].to_numpy() for frame in frames)
        gains.append(ours - theirs)
        compared.append(f"{aware} over {uniform[aware]}")
    gap = paired(*gains)
    return _scored(gap, f"{', minus '.join(compared)}: {column.target}")


def fewer_stop_words(facts: Facts) -> Evidence | None:
    """Judge whether importance-aware masks cover stop-words and punctuation less often."""
    if not facts.masked_terms:
        return None
    shares = by_kind(facts.masked_terms[shown_encoder(facts)], "stop_word_share")
    more = shares[1] - shares[0]
    outcome = FALSE if more > 0 else TRUE
    if abs(more) < FEWER:
        outcome = UNDECIDED
    here = Cell(" \N{RIGHTWARDS ARROW} ".join(map(formats.percent, shares)), more)
    return Evidence(outcome, here, "uniform against importance-aware masks")


def no_expense(facts: Facts) -> Evidence | None:
    """Judge whether the pre-training takes no longer than with uniform masks."""
    systems = sides(facts).get("masks")
    if not systems:
        return None
    ours, theirs = (facts.pretraining_seconds(facts.encoder_of(name)) for name in systems)
    if math.isnan(ours) or not theirs > 0:
        return None
    ratio = ours / theirs
    outcome = UNDECIDED
    if min(ours, theirs) >= SHORT and ratio <= SAME_COST:
        outcome = TRUE
    elif min(ours, theirs) >= SHORT and ratio >= HIGHER_COST:
        outcome = FALSE
    times = f"{formats.duration(ours)} against {formats.duration(theirs)}"
    return Evidence(outcome, Cell(f"{ratio:.2f}\N{NO-BREAK SPACE}x", ratio), times)


def cheaper_masks(facts: Facts) -> Evidence | None:
    """Judge whether a mask by importance is cheaper than RetroMAE's and SimLM's masks.

    SimLM's cost includes its generator.
    """
    times = facts.latency.get("batch")
    if not times:
        return None
    ours = times["CDMAE"]
    simlm = times["SimLM, masks"] + times["SimLM, generator"]
    other = min(times["RetroMAE, ours"], simlm)
    here = Cell(f"{ours:.1f} against {other:.1f}\N{NO-BREAK SPACE}ms", ours / other)
    compared = "a batch on one thread; RetroMAE's masks as they are computed here"
    return Evidence(TRUE if ours < other else FALSE, here, compared)


JUDGES = {
    judge.__name__: judge for judge in (diminishing, fewer_stop_words, no_expense, cheaper_masks)
}


def claims_table(facts: Facts, name: str = "claims") -> Table:
    """List all claims: the tested claims first, then the others with their requirements."""
    scored = [(claim, score(claim, facts)) for claim in claims()]
    rows = []
    for claim, evidence in sorted(scored, key=lambda pair: pair[1] is None):
        if evidence is None:
            evidence = Evidence(NOT_TESTED, DASH, f"needs {claim.needs}")
        row = {
            "claim": claim.statement,
            "outcome": evidence.outcome,
            "paper": papers_number(claim),
            "here": evidence.here,
            INTERVAL: evidence.interval,
            "section": claim.section,
            "compared": evidence.compared,
        }
        rows.append(row)
    caption = "The paper's claims, scored here"
    body = [list(row.values()) for row in rows]
    return Table(name, caption, list(rows[0]), body, texts=["outcome", "section", "compared"])
