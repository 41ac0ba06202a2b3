"""Score what the paper states on what was run: true, false, undecided within the noise, or not tested.

A difference of two systems is true where a paired t-test and the noise band of one seed leave no doubt, false where
they leave none about the opposite. The paper's numbers are points of the measure it used.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import NamedTuple

from cdmae import formats
from cdmae.report.comparisons import arms, differences, masking_pairs, noise, not_pretrained
from cdmae.report.facts import Difference, Facts, paired
from cdmae.report.paper import published
from cdmae.report.paper.methods import corpora, main_chain, methods, projection_pair
from cdmae.report.paper.published import DEV, Key
from cdmae.report.sections import (
    bm25,
    difference_cells,
    main_measure,
    main_target,
    mean_difference,
    mean_noise,
    zero_shot_sets,
)
from cdmae.report.sections.answer import pretraining_seconds, verdict
from cdmae.report.sections.masking import shown_encoder
from cdmae.report.tables import Cell, Table

TRUE, FALSE, UNDECIDED, NOT_TESTED = "true", "false", "undecided", "not tested"
OUTCOMES = {"better": TRUE, "worse": FALSE, "open": UNDECIDED}
FEWER = 0.01  # of the masked word-pieces: a smaller change of the stop-words' share decides nothing
SHORT = 60  # seconds: a pre-training that took less tells by its time of the machine's other work
SLOWER = (1.1, 1.25)  # times uniform masks: up to the first the pre-training costs no more, from the second on it does


class Evidence(NamedTuple):
    """What a run says to a claim: the number found, its interval, and what was compared."""

    outcome: str
    here: Cell
    interval: Cell
    compared: str


Score = Callable[[Facts], Evidence | None]


@dataclass(frozen=True)
class Claim:
    """A statement of the paper, where it stands, its number, how it is scored, and what a config must have for it.

    The number is read when it is shown, so that a damaged file is told as such.
    """

    statement: str
    section: str
    paper: Callable[[], Cell]
    score: Score
    needs: str


# --- how a claim is scored -------------------------------------------------------------------------------------------


@cache
def _pairs(facts: Facts) -> dict[str, Sequence[str]]:
    """Return the systems that claims compare: by the name of the pair, the one said to be better and the other.

    The paper's method and another one differ in the pre-training alone.
    """
    chain, groups = main_chain(facts), arms(facts, "stage.group")
    first = chain[:1]
    pairs: dict[str, Sequence[str]] = {
        "masks": next(iter(masking_pairs(facts)), ()),
        "pre-training": [*first, *(not_pretrained(facts, name) for name in first)],
        "stage 2": chain[1::-1],
        "stage 3": chain[2:0:-1],
        "BM25": [*chain[-1:], bm25(facts)],
        "projection": projection_pair(facts) or (),
        "corpus": [corpora(facts).get(label, [""])[0] for label in ("general, then domain", "domain")],
        "group": [groups[max(groups)], groups[min(groups)]] if groups else (),
    }
    for method, systems in methods(facts).items():
        pair = [*first, *systems[:1]]
        if len(pair) == 2 and all(key.startswith("encoder.") for key in differences(facts, *pair)):
            pairs[method] = pair
    return {name: pair for name, pair in pairs.items() if len(pair) == 2 and all(pair)}


def better(pair: str, *, zero_shot: bool = False) -> Score:
    """Score whether the first system of a pair beats the second, in the main measure.

    They are compared on the main target, or on the zero-shot collections.
    """

    def score(facts: Facts) -> Evidence | None:
        names, target = _pairs(facts).get(pair), main_target(facts)
        sets = list(zero_shot_sets(facts).values()) if zero_shot else [[target]] if target else []
        difference = mean_difference(facts, *names, sets) if names and sets else None
        if not names or not difference:
            return None
        place = str(sets[0][0]) if len(sets) == 1 else formats.plural(len(sets), "collection")
        measure = formats.measure_name(main_measure(facts, sets))
        return _scored(difference, mean_noise(facts, sets), f"{names[0]} over {names[1]}: {measure}, {place}")

    return score


def _scored(difference: Difference, band: float, compared: str) -> Evidence:
    here, interval, _ = difference_cells(difference)
    return Evidence(OUTCOMES[verdict(difference, band)], here, interval, compared)


def diminishing(facts: Facts) -> Evidence | None:
    """Score whether importance-aware masks gain more over uniform ones after the first stage than after the last."""
    chain, pairs, target = main_chain(facts), dict(masking_pairs(facts)), main_target(facts)
    if len(chain) < 3 or chain[0] not in pairs or chain[-1] not in pairs or not target:
        return None
    measure = facts.main_measure(target)
    gains = []
    for system in (chain[0], chain[-1]):
        a, b = (facts.values[name, target, measure] for name in (system, pairs[system]))
        gains.append(a - b.reindex(a.index))
    compared = f"{chain[0]} over {pairs[chain[0]]}, minus {chain[-1]} over {pairs[chain[-1]]}: {target}"
    return _scored(paired(*gains), noise(facts, target, measure), compared)


def fewer_stop_words(facts: Facts) -> Evidence | None:
    """Score whether stop-words and punctuation are a smaller share of what is masked by importance."""
    masked = facts.masked_terms.get(shown_encoder(facts), {}) if facts.masked_terms else {}
    uniform, aware = (masked.get(kind, {}).get("stop_word_share") for kind in ("uniform", "importance"))
    if uniform is None or aware is None:
        return None
    outcome = UNDECIDED if abs(uniform - aware) < FEWER else TRUE if aware < uniform else FALSE
    here = Cell(f"{formats.percent(uniform)} \N{RIGHTWARDS ARROW} {formats.percent(aware)}", aware - uniform)
    return Evidence(outcome, here, Cell(formats.NONE), "uniform against importance-aware masks")


def no_expense(facts: Facts) -> Evidence | None:
    """Score whether the pre-training takes no longer than with uniform masks."""
    encoders = [facts.entries("systems")[name]["encoder"] for name in _pairs(facts).get("masks", ())]
    ours, theirs = [pretraining_seconds(facts, encoder) for encoder in encoders] or (math.nan, math.nan)
    if math.isnan(ours) or not theirs > 0:
        return None
    ratio = ours / theirs
    outcome = TRUE if ratio <= SLOWER[0] else FALSE if ratio >= SLOWER[1] else UNDECIDED
    outcome = outcome if min(ours, theirs) >= SHORT else UNDECIDED
    times = f"{formats.duration(ours)} against {formats.duration(theirs)}"
    return Evidence(outcome, Cell(f"{ratio:.2f}\N{NO-BREAK SPACE}x", ratio), Cell(formats.NONE), times)


def cheaper_masks(facts: Facts) -> Evidence | None:
    """Score whether a mask by importance costs less than RetroMAE's, and than SimLM's with its generator."""
    times = facts.latency.get("batch")
    if not times:
        return None
    ours, other = times["CDMAE"], min(times["RetroMAE, ours"], times["SimLM, masks"] + times["SimLM, generator"])
    here = Cell(f"{ours:.1f} against {other:.1f}\N{NO-BREAK SPACE}ms", ours / other)
    compared = "a batch on one thread; RetroMAE's masks as they are computed here"
    return Evidence(TRUE if ours < other else FALSE, here, Cell(formats.NONE), compared)


# --- the claims ------------------------------------------------------------------------------------------------------


def _gain(table: str, first: tuple[str, int], second: tuple[str, int]) -> Callable[[], Cell]:
    """Return the paper's difference of two rows, each after a stage: MRR@10 on MS MARCO dev, in table 3 the average."""

    def paper() -> Cell:
        key = published.AVERAGE if table == "table 3" else Key(DEV, "RR@10")
        a, b = (published.rows(table)[row].values[key] for row in (first, second))
        return Cell(formats.signed((a - b) / 100), round(a - b, 1))

    return paper


def _stop_words() -> Cell:
    [share] = published.rows("section 3.2")["BERT", 0].values.values()
    return Cell(formats.percent(share / 100), share / 100)


_SAME = "two retrievers that differ in the decoder's masking alone"
CLAIMS = [
    Claim(
        "Importance-aware decoder masks beat uniform ones after stage 1 (paper: over RetroMAE)", "4.2, table 2",
        _gain("table 2", ("CDMAE", 1), ("RetroMAE", 1)), better("masks"), _SAME,
    ),
    Claim(
        "They do so on collections that nothing was trained on (paper: over RetroMAE)", "4.2, table 3",
        _gain("table 3", ("CDMAE", 0), ("RetroMAE", 0)), better("masks", zero_shot=True),
        f"{_SAME}, and zero-shot collections",
    ),
    Claim(
        "Pre-training on the collection brings substantial improvements", "4.2", partial(Cell, formats.NONE),
        better("pre-training"), "a retriever whose encoder has objective: none",
    ),
    *(
        Claim(
            f"The method beats {method} after stage 1", "4.2, table 2",
            _gain("table 2", ("CDMAE", 1), (method, 1)), better(method), "config/objectives.yaml",
        )
        for method in ("RetroMAE", "SimLM", "CoT-MAE", "coCondenser")
    ),
    Claim(
        "Hard negatives: stage 2 beats stage 1", "4.2, table 2", _gain("table 2", ("CDMAE", 2), ("CDMAE", 1)),
        better("stage 2"), "a retriever with the negatives of another one",
    ),
    Claim(
        "Distillation: stage 3 beats stage 2", "4.2, table 2", _gain("table 2", ("CDMAE", 3), ("CDMAE", 2)),
        better("stage 3"), "a third retriever with the negatives of the second",
    ),
    Claim(
        "The improvement diminishes with distillation (paper: over RetroMAE)", "4.2, table 2",
        partial(Cell, "1.1 \N{RIGHTWARDS ARROW} 0.1", 1.0), diminishing, "all stages for uniform masks too",
    ),
    Claim(
        "The dense retriever beats BM25", "table 1", _gain("table 1", ("CDMAE", 0), ("BM25", 0)), better("BM25"),
        "BM25 and a retriever",
    ),
    Claim(
        "A projection of the bottleneck helps", "4.3, table 4",
        _gain("table 4", ("w/ projection", 0), ("w/o projection", 0)), better("projection"),
        "config/ablations.yaml",
    ),
    Claim(
        "Pre-training on a general corpus first helps", "4.3, table 5",
        _gain("table 5", ("general, then domain", 0), ("domain", 0)), better("corpus"),
        "a start that was pre-trained for retrieval, and one that was not",
    ),
    Claim(
        "More hard negatives help, at the same number of passages a step", "4.3, figure 4",
        _gain("figure 4", ("64", 0), ("2", 0)), better("group"), "config/ablations.yaml",
    ),
    Claim(
        "Uniform masks often fall on stop-words and punctuation (paper: 40 %), masks by importance on fewer", "3.2",
        _stop_words, fewer_stop_words, "masked_terms",
    ),
    Claim(
        "It adds no expense to the pre-training", "abstract", partial(Cell, formats.NONE), no_expense, _SAME,
    ),
    Claim(
        "Masking by importance costs less than RetroMAE's and SimLM's masking", "4.3, table 6",
        partial(Cell, "1.1 against 3.2\N{NO-BREAK SPACE}ms", 1.1 / 3.2), cheaper_masks,
        "./run table_claims, which measures it",
    ),
]  # fmt: skip


@cache
def scores(facts: Facts) -> list[tuple[Claim, Evidence | None]]:
    """Return every claim with what the run says to it; None where it says nothing."""
    return [(claim, claim.score(facts)) for claim in CLAIMS]


def claims_table(facts: Facts, name: str = "claims") -> Table:
    """List all claims: first those that the run speaks to, then the others with what it would take."""
    none = Cell(formats.NONE)
    body = []
    for claim, evidence in sorted(scores(facts), key=lambda scored: scored[1] is None):
        outcome, *numbers, compared = evidence or (NOT_TESTED, none, none, f"needs {claim.needs}")
        body.append([claim.statement, outcome, claim.paper(), *numbers, claim.section, compared])
    head = ["claim", "outcome", "paper", "here", "95 % interval", "section", "compared"]
    return Table(name, "The paper's claims, scored here", head, body, texts=["outcome", "section", "compared"])


def tally(facts: Facts) -> str:
    """Count how many claims came out how, such as ``5 true, 1 undecided, 11 not tested``."""
    counts = Counter(evidence.outcome if evidence else NOT_TESTED for _, evidence in scores(facts))
    outcomes = (TRUE, FALSE, UNDECIDED, NOT_TESTED)
    return ", ".join(f"{counts[outcome]} {outcome}" for outcome in outcomes if counts[outcome])
