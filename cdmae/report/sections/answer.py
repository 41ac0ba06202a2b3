"""Make the first and the last screen: the effect of masking by importance, and its limits."""

from __future__ import annotations

import math
from typing import Any

from cdmae import formats
from cdmae.report.charts import Figure, Row, rows
from cdmae.report.columns import SIGNIFICANT, Column, everywhere, main_column
from cdmae.report.comparisons import family, masking_pairs, not_pretrained, repeated
from cdmae.report.facts import Difference, Facts
from cdmae.report.sections import Section, colour, comparison_table, difference_figure
from cdmae.report.sections.masking import by_kind

SMALL_QUERIES, SMALL_STEPS = (
    30,
    300,
)  # a run below either shows that the workflow works, nothing else
COUNTING = ("ngrams", "importance")  # the rules that only masking by importance needs
PAPER_PASSAGES = 80_000 * 2048  # that the paper's pre-training sees up to the checkpoint it takes


def _basics(facts: Facts) -> dict[str, Any]:
    """Gather the facts of both screens: main target, difference, and the size of the run."""
    pairs, column = masking_pairs(facts), main_column(facts)
    queries = facts.queries(column.target) if column else 0
    steps = max((training.steps for training in facts.encoders.values()), default=0)
    return {
        "facts": facts,
        "column": column,
        "gap": column.difference(*pairs[0]) if pairs and column else None,
        "noise": column.noise if column else facts.noise,
        "repeated": repeated(facts),
        "queries": queries,
        "steps": steps,
        "small": queries < SMALL_QUERIES or 0 < steps < SMALL_STEPS,
    }


def section(facts: Facts) -> Section | None:
    """Give the answer; where the run has none, say why. Then name the best system."""
    values = {"best": "", "rerankers": []} | _basics(facts)
    column, gap = values["column"], values["gap"]
    if column:
        reached = {name: column.value(name) for name in facts.systems}
        best = max(
            reached, key=lambda name: -1 if math.isnan(reached[name]) else reached[name], default=""
        )
        over = column.difference(best, facts.bm25)
        values |= {"best": best, "value": reached.get(best), "bm25": facts.bm25, "over": over}
        values |= {"unsure": bool(over) and over.p >= SIGNIFICANT, "rerankers": _rerankers(column)}
    if not gap:
        return Section("answer", values)
    a, b = masking_pairs(facts)[0]
    ours, theirs = facts.encoder_of(a), facts.encoder_of(b)
    entry, jobs = facts.entries("encoders")[ours], facts.benchmarks
    job = f"{entry.get('importance')}/{entry.get('start')}/{entry.get('collection')}"
    counting = jobs[jobs["rule"].isin(COUNTING) & (jobs["job"] == job)]["seconds"]
    values |= {
        "a": a,
        "b": b,
        "verdict": column.verdict(gap),
        "family": len(column.compared(family(facts, b), b)),
        "counting": float(counting.sum(min_count=1)),
        "ours": facts.pretraining_seconds(ours),
        "theirs": facts.pretraining_seconds(theirs),
        "stop_words": by_kind(facts.masked_terms[ours], "stop_word_share")
        if ours in facts.masked_terms
        else None,
    }
    pairs = [(other.head, a, b, other) for other in everywhere(facts)]
    everything = difference_figure("answer-everywhere", f"{a} minus {b}, everywhere", pairs)
    table = comparison_table("answer", a, b, everywhere(facts))
    return Section("answer", values, [table], [_levels(column, a, b), everything])


def _rerankers(column: Column) -> list[tuple[str, str, Difference, str]]:
    """List (reranker, the run that it reorders, the difference, the verdict on it)."""
    facts = column.facts
    reordered = {name: facts.system(name).get("reranks", "") for name in facts.systems}
    gaps = [
        (name, other, column.difference(name, other)) for name, other in reordered.items() if other
    ]
    return [(name, other, gap, column.verdict(gap)) for name, other, gap in gaps if gap]


def limits(facts: Facts) -> Section | None:
    """Gather what decides which limits apply to this run."""
    values, entries = _basics(facts), facts.entries("encoders")
    target = values["column"] and values["column"].target
    corpus = facts.collections.get(target.collection) if target else None
    passages = [
        training.steps * entries.get(name, {}).get("batch", 0)
        for name, training in facts.encoders.items()
    ]
    trainings = {**facts.encoders, **facts.trained}
    values |= {
        "notes": [
            (name, note) for name, run in trainings.items() for note in run.about.get("notes", [])
        ],
        "judged": corpus.per_query(target.split) if corpus else 0.0,
        "passages": max(passages, default=0),
        "paper_passages": PAPER_PASSAGES,
    }
    return Section("limits", values)


def _levels(column: Column, a: str, b: str) -> Figure | None:
    labels = {
        not_pretrained(column.facts, a): "no pre-training",
        b: "uniform masking",
        a: "importance-aware masking",
        column.facts.bm25: "no training at all",
    }
    entries = []
    for name, label in labels.items():
        value = column.value(name)
        if not math.isnan(value):
            shown, hue = formats.points(value), colour(column.facts, name)
            entries.append(
                Row(f"{label} ({name})", shown, bar=100 * value, colour=hue, strong=name == a)
            )
    title = f"{column.unit} on {column.target}"
    return rows("answer-levels", title, entries, low=0, axis=f"{column.unit}, times 100")
