"""What the paper states, each scored on what was run: true, false, undecided within the noise, or not tested.

A difference of two systems is true where a paired t-test and the noise band of one seed leave no doubt, false where
they leave none about the opposite. The paper's numbers are points of the measure it used.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import NamedTuple

import pandas as pd

from cdmae import formats
from cdmae.evaluation import significance
from cdmae.report.comparisons import arms, differences, masking_pairs, noise, not_pretrained
from cdmae.report.facts import Difference, Facts, Target
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


Pair = tuple[str, str] | None
Sets = Sequence[Sequence[Target]]
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


def better(pair: Callable[[Facts], Pair], where: Callable[[Facts], Sets] | None = None) -> Score:
    """The first system of the pair beats the second, in the main measure on the main target or on `where`."""

    def score(facts: Facts) -> Evidence | None:
        names, sets = pair(facts), (where or _main)(facts)
        found = mean_difference(facts, *names, sets) if names and all(names) and sets else None
        if not found:
            return None
        place = str(sets[0][0]) if len(sets) == 1 else formats.plural(len(sets), "collection")
        measure = formats.measure_name(main_measure(facts, sets))
        return _scored(found, mean_noise(facts, sets), f"{names[0]} over {names[1]}: {measure}, {place}")

    return score


def _scored(found: Difference, band: float, compared: str) -> Evidence:
    here, interval, _ = difference_cells(found)
    return Evidence(OUTCOMES[verdict(found, band)], here, interval, compared)


def _main(facts: Facts) -> Sets:
    target = main_target(facts)
    return [[target]] if target else []


def _zero_shot(facts: Facts) -> Sets:
    return list(zero_shot_sets(facts).values())


def _masks(facts: Facts) -> Pair:
    return next(iter(masking_pairs(facts)), None)


def _stage(number: int) -> Callable[[Facts], Pair]:
    def pair(facts: Facts) -> Pair:
        chain = main_chain(facts)
        return (chain[number - 1], chain[number - 2]) if len(chain) >= number else None

    return pair


def _over(method: str) -> Callable[[Facts], Pair]:
    """The paper's method over another one after stage 1, where they differ in the pre-training alone."""

    def pair(facts: Facts) -> Pair:
        ours, theirs = main_chain(facts), methods(facts).get(method)
        if not ours or not theirs:
            return None
        found = differences(facts, ours[0], theirs[0])
        return (ours[0], theirs[0]) if all(key.startswith("encoder.") for key in found) else None

    return pair


def _pretraining(facts: Facts) -> Pair:
    chain = main_chain(facts)
    return (chain[0], not_pretrained(facts, chain[0])) if chain else None


def _bm25(facts: Facts) -> Pair:
    chain = main_chain(facts)
    return (chain[-1], bm25(facts)) if chain else None


def _corpus(facts: Facts) -> Pair:
    both, domain = (corpora(facts).get(label, [""])[0] for label in ("general, then domain", "domain"))
    return both, domain


def _hard(facts: Facts) -> Pair:
    found = arms(facts, "stage.group")
    return (found[max(found)], found[min(found)]) if found else None


def diminishing(facts: Facts) -> Evidence | None:
    """What importance-aware masks gain over uniform ones is more after the first stage than after the last."""
    chain, pairs, target = main_chain(facts), dict(masking_pairs(facts)), main_target(facts)
    if len(chain) < 3 or chain[0] not in pairs or chain[-1] not in pairs or not target:
        return None
    measure = facts.main_measure(target)
    gains = []
    for system in (chain[0], chain[-1]):
        a, b = (facts.values[name, target, measure] for name in (system, pairs[system]))
        gains.append(a - b.reindex(a.index))
    found = _paired(*gains)
    compared = f"{chain[0]} over {pairs[chain[0]]}, minus {chain[-1]} over {pairs[chain[-1]]}: {target}"
    return _scored(found, noise(facts, target, measure), compared)


def _paired(a: pd.Series, b: pd.Series) -> Difference:
    found = significance.paired(a.to_numpy(), b.reindex(a.index).to_numpy())
    return Difference(float(a.mean()), float(b.mean()), *(found[key] for key in Difference._fields[2:]))


def fewer_stop_words(facts: Facts) -> Evidence | None:
    """Stop-words and punctuation are a smaller share of what is masked by importance."""
    masked = facts.masked_terms.get(shown_encoder(facts), {}) if facts.masked_terms else {}
    shares = [masked.get(kind, {}).get("stop_word_share") for kind in ("uniform", "importance")]
    if None in shares:
        return None
    uniform, aware = shares
    outcome = UNDECIDED if abs(uniform - aware) < FEWER else TRUE if aware < uniform else FALSE
    here = Cell(f"{formats.percent(uniform)} \N{RIGHTWARDS ARROW} {formats.percent(aware)}", aware - uniform)
    return Evidence(outcome, here, Cell(formats.NONE), "uniform against importance-aware masks")


def no_expense(facts: Facts) -> Evidence | None:
    """The pre-training takes no longer than with uniform masks."""
    for a, b in masking_pairs(facts)[:1]:
        ours, theirs = (pretraining_seconds(facts, facts.entries("systems")[name]["encoder"]) for name in (a, b))
        if ours == ours and theirs > 0:
            ratio = ours / theirs
            outcome = TRUE if ratio <= SLOWER[0] else FALSE if ratio >= SLOWER[1] else UNDECIDED
            outcome = outcome if min(ours, theirs) >= SHORT else UNDECIDED
            times = f"{formats.duration(ours)} against {formats.duration(theirs)}"
            return Evidence(outcome, Cell(f"{ratio:.2f}\N{NO-BREAK SPACE}x", ratio), Cell(formats.NONE), times)
    return None


def cheaper_masks(facts: Facts) -> Evidence | None:
    """A mask by importance costs less than RetroMAE's, and than SimLM's with its generator."""
    found = facts.latency.get("batch")
    if not found:
        return None
    ours, other = found["CDMAE"], min(found["RetroMAE, ours"], found["SimLM, masks"] + found["SimLM, generator"])
    here = Cell(f"{ours:.1f} against {other:.1f}\N{NO-BREAK SPACE}ms", ours / other)
    compared = "a batch on one thread; RetroMAE's masks as they are computed here"
    return Evidence(TRUE if ours < other else FALSE, here, Cell(formats.NONE), compared)


# --- the claims ------------------------------------------------------------------------------------------------------


def _gain(table: str, first: tuple[str, int], second: tuple[str, int]) -> Callable[[], Cell]:
    """The paper's difference of two rows, each after a stage: MRR@10 on MS MARCO dev, in table 3 the average."""

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
        _gain("table 2", ("CDMAE", 1), ("RetroMAE", 1)), better(_masks), _SAME,
    ),
    Claim(
        "They do so on collections that nothing was trained on (paper: over RetroMAE)", "4.2, table 3",
        _gain("table 3", ("CDMAE", 0), ("RetroMAE", 0)), better(_masks, _zero_shot),
        f"{_SAME}, and zero-shot collections",
    ),
    Claim(
        "Pre-training on the collection brings substantial improvements", "4.2", partial(Cell, formats.NONE),
        better(_pretraining), "a retriever whose encoder has objective: none",
    ),
    Claim(
        "The method beats RetroMAE after stage 1", "4.2, table 2",
        _gain("table 2", ("CDMAE", 1), ("RetroMAE", 1)), better(_over("RetroMAE")), "config/objectives.yaml",
    ),
    Claim(
        "The method beats SimLM after stage 1", "4.2, table 2", _gain("table 2", ("CDMAE", 1), ("SimLM", 1)),
        better(_over("SimLM")), "config/objectives.yaml",
    ),
    Claim(
        "The method beats CoT-MAE after stage 1", "4.2, table 2",
        _gain("table 2", ("CDMAE", 1), ("CoT-MAE", 1)), better(_over("CoT-MAE")), "config/objectives.yaml",
    ),
    Claim(
        "The method beats coCondenser after stage 1", "4.2, table 2",
        _gain("table 2", ("CDMAE", 1), ("coCondenser", 1)), better(_over("coCondenser")),
        "config/objectives.yaml",
    ),
    Claim(
        "Hard negatives: stage 2 beats stage 1", "4.2, table 2", _gain("table 2", ("CDMAE", 2), ("CDMAE", 1)),
        better(_stage(2)), "a retriever with the negatives of another one",
    ),
    Claim(
        "Distillation: stage 3 beats stage 2", "4.2, table 2", _gain("table 2", ("CDMAE", 3), ("CDMAE", 2)),
        better(_stage(3)), "a third retriever with the negatives of the second",
    ),
    Claim(
        "The improvement diminishes with distillation (paper: over RetroMAE)", "4.2, table 2",
        partial(Cell, "1.1 \N{RIGHTWARDS ARROW} 0.1", 1.0), diminishing, "all stages for uniform masks too",
    ),
    Claim(
        "The dense retriever beats BM25", "table 1", _gain("table 1", ("CDMAE", 0), ("BM25", 0)), better(_bm25),
        "BM25 and a retriever",
    ),
    Claim(
        "A projection of the bottleneck helps", "4.3, table 4",
        _gain("table 4", ("w/ projection", 0), ("w/o projection", 0)), better(projection_pair),
        "config/ablations.yaml",
    ),
    Claim(
        "Pre-training on a general corpus first helps", "4.3, table 5",
        _gain("table 5", ("general, then domain", 0), ("domain", 0)), better(_corpus),
        "a start that was pre-trained for retrieval, and one that was not",
    ),
    Claim(
        "More hard negatives help, at the same number of passages a step", "4.3, figure 4",
        _gain("figure 4", ("64", 0), ("2", 0)), better(_hard), "config/ablations.yaml",
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
    """Every claim with what the run says to it; None where it says nothing."""
    return [(claim, claim.score(facts)) for claim in CLAIMS]


def claims_table(facts: Facts, name: str = "claims") -> Table:
    """All claims: first those that the run speaks to, then the others with what it would take."""
    none = Cell(formats.NONE)
    body = []
    for claim, found in sorted(scores(facts), key=lambda each: each[1] is None):
        outcome, *numbers, compared = found or (NOT_TESTED, none, none, f"needs {claim.needs}")
        body.append([claim.statement, outcome, claim.paper(), *numbers, claim.section, compared])
    return Table(name, "The paper's claims, scored here", _HEAD, body, texts=["outcome", "section", "compared"])


def tally(facts: Facts) -> str:
    """How many claims came out how, such as ``5 true, 1 undecided, 11 not tested``."""
    found = [evidence.outcome if evidence else NOT_TESTED for _, evidence in scores(facts)]
    counts = {outcome: found.count(outcome) for outcome in (TRUE, FALSE, UNDECIDED, NOT_TESTED)}
    return ", ".join(f"{count} {outcome}" for outcome, count in counts.items() if count)


_HEAD = ["claim", "outcome", "paper", "here", "95 % interval", "section", "compared"]
