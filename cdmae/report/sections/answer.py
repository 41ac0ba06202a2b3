"""Make the first and the last section: the effect of importance-aware masks, and its limits."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from cdmae import formats
from cdmae.evaluation.significance import Difference
from cdmae.report.charts import Figure, Row, rows
from cdmae.report.columns import Column, everywhere, main_column, whole
from cdmae.report.comparisons import family, is_compared, masking_pairs, not_pretrained
from cdmae.report.facts import Facts
from cdmae.report.sections import Section, colour, comparison_table, difference_figure
from cdmae.report.sections.masking import by_kind

SMALL_QUERIES = 30  # a run with fewer queries may be too small to show a difference
COUNTING = ("ngrams", "importance")  # the Snakemake rules that only masking by importance needs
# passages of the paper's pre-training, up to the checkpoint that it uses
PAPER_PASSAGES = 80_000 * 2048


def _basics(facts: Facts) -> dict[str, Any]:
    """Gather the facts of both sections: targets, difference, and the size of the run.

    The difference, over all targets together, is the one planned comparison of the run. It is
    therefore tested alone, without a correction for the page's other comparisons.
    """
    pairs = masking_pairs(facts)
    column = main_column(facts)
    over = whole(facts)
    queries = facts.queries(column.target) if column else 0
    return {
        "facts": facts,
        "column": column,
        "whole": over,
        "gap": over.alone(*pairs[0]) if pairs and over else None,
        "once": [name for name in facts.systems if facts.system(name).get("once")],
        "queries": queries,
        "few": queries < SMALL_QUERIES,
    }


def section(facts: Facts) -> Section | None:
    """Report whether importance masks helped, or why this is unknown."""
    values = {"rerankers": []} | _basics(facts)
    column = values["column"]
    if column:
        values["rerankers"] = _rerankers(column)
    gap = values["gap"]
    if not gap:
        return Section("answer", values)
    a, b = masking_pairs(facts)[0]
    ours = facts.encoder_of(a)
    masked = facts.masked_terms.get(ours)
    values |= {
        "a": a,
        "b": b,
        "verdict": gap.verdict,
        "small": values["few"] and gap.verdict == "open",
        "single": gap.seeds == 1,
        "family": len(column.compared(family(facts, b), b)),
        "counting": _counting_seconds(facts, ours),
        "ours": facts.pretraining_seconds(ours),
        "theirs": facts.pretraining_seconds(facts.encoder_of(b)),
        "stop_words": by_kind(masked, "stop_word_share") if masked else None,
    }
    columns = everywhere(facts)
    planned = None
    if len(values["whole"].sets) > 1:
        planned = replace(values["whole"], name="the mean of all")
        columns = [planned, *columns]
    pairs = [(other.head, a, b, other) for other in columns]
    title = f"{a} minus {b}, everywhere"
    everything = difference_figure("answer-everywhere", title, pairs, planned=planned)
    table = comparison_table("answer", a, b, columns, planned)
    return Section("answer", values, [table], [_levels(column, a, b), everything])


def _counting_seconds(facts: Facts, encoder: str) -> float:
    """Return the seconds spent on counting n-grams and scoring words; nan if unknown."""
    entry = facts.entries("encoders")[encoder]
    job = f"{entry.get('importance')}/{entry.get('start')}/{entry.get('collection')}"
    jobs = facts.benchmarks
    own = jobs["rule"].isin(COUNTING) & (jobs["job"] == job)
    return float(jobs[own]["seconds"].sum(min_count=1))


def _rerankers(column: Column) -> list[tuple[str, str, Difference]]:
    """List rerankers: (reranker, the system that provides its input run, difference)."""
    facts = column.facts
    found = []
    for name in facts.systems:
        run = facts.system(name).get("reranks", "")
        gap = column.difference(name, run) if is_compared(facts, name, run) else None
        if gap:
            found.append((name, run, gap))
    return found


def limits(facts: Facts) -> Section | None:
    """Gather the facts that limit the conclusions that this run allows."""
    values = _basics(facts)
    column = values["column"]
    judged = 0.0
    if column and column.target.collection in facts.collections:
        corpus = facts.collections[column.target.collection]
        judged = corpus.per_query(column.target.split)
    encoders = facts.entries("encoders")
    passages = [
        training.steps * encoders.get(name, {}).get("batch", 0)
        for name, training in facts.encoders.items()
    ]
    values |= {
        "unjudged": _unjudged(facts),
        "judged": judged,
        "disguised": [target for target in facts.targets if facts.disguised(target)],
        "passages": max(passages, default=0),
        "paper_passages": PAPER_PASSAGES,
    }
    return Section("limits", values)


def _unjudged(facts: Facts) -> list[dict[str, Any]]:
    """Return each system's share of judged passages, for each target with a measure Judged@k."""
    found = []
    for target in facts.targets:
        corpus = facts.collections.get(target.collection)
        for measure in facts.measures_of(target):
            shares = {name: facts.value(name, target, measure) for name in facts.systems}
            shares = {name: share for name, share in shares.items() if not math.isnan(share)}
            if not measure.startswith("Judged@") or not shares:
                continue
            found.append(
                {
                    "target": target,
                    "measure": measure,
                    "least": min(shares, key=shares.__getitem__),
                    "most": max(shares, key=shares.__getitem__),
                    "shares": shares,
                    "queries": facts.queries(target),
                    "judgments": corpus.judgments.get(target.split, 0) if corpus else 0,
                }
            )
    return found


def _levels(column: Column, a: str, b: str) -> Figure | None:
    """Draw the means for two kinds of masking, compared with no pre-training and BM25."""
    labels = {
        not_pretrained(column.facts, a): "no pre-training",
        b: "uniform masking",
        a: "importance-aware masking",
        column.facts.bm25: "no training at all",
    }
    entries = []
    for name, label in labels.items():
        value = column.value(name)
        if math.isnan(value):
            continue
        entries.append(
            Row(
                f"{label} ({name})",
                formats.points(value),
                bar=100 * value,
                colour=colour(column.facts, name),
                strong=name == a,
            )
        )
    title = f"{column.unit} on {column.target}"
    return rows("answer-levels", title, entries, low=0, axis=f"{column.unit}, times 100")
