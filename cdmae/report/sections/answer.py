"""The first screen and the last: did masking by importance help, how sure is that, and what limits it."""

from __future__ import annotations

import math
from typing import Any

from cdmae import formats
from cdmae.report.charts import Figure, Row, rows
from cdmae.report.comparisons import masking_pairs, noise, not_pretrained, repeated
from cdmae.report.facts import Difference, Facts, Target
from cdmae.report.sections import (
    Section,
    bm25,
    colour,
    columns,
    difference_figure,
    main_measure,
    main_target,
    mean_difference,
)
from cdmae.report.sections.masking import by_kind

SMALL_QUERIES, SMALL_STEPS = 30, 300  # a run below either shows that the workflow works, nothing else
COUNTING = ("ngrams", "importance")  # the rules that only masking by importance needs
PAPER_PASSAGES = 80_000 * 2048  # that the paper's pre-training sees up to the checkpoint it takes


def _basics(facts: Facts) -> dict[str, Any]:
    """Gather what both screens speak of: the main target, the difference there, and how small the run is."""
    pairs, target = masking_pairs(facts), main_target(facts)
    measure = facts.main_measure(target) if target else ""
    queries = facts.queries(target) if target else 0
    steps = max((training.steps for training in facts.encoders.values()), default=0)
    return {
        "facts": facts,
        "target": target,
        "measure": measure,
        "gap": facts.difference(*pairs[0], target, measure) if pairs and target else None,
        "noise": noise(facts, target, measure) if target else facts.noise,
        "repeated": repeated(facts),
        "queries": queries,
        "steps": steps,
        "small": queries < SMALL_QUERIES or 0 < steps < SMALL_STEPS,
    }


def section(facts: Facts) -> Section | None:
    """Give the answer; where the run has none, say why, and which system is the best."""
    values = _basics(facts)
    target, measure, gap = values["target"], values["measure"], values["gap"]
    if not gap:
        reached = {name: facts.value(name, target, measure) for name in facts.systems if target}
        best = max(reached, key=lambda name: -1 if math.isnan(reached[name]) else reached[name], default="")
        over = facts.difference(best, bm25(facts), target, measure) if best and bm25(facts) not in ("", best) else None
        return Section("answer", values | {"best": best, "value": reached.get(best), "bm25": bm25(facts), "over": over})
    a, b = masking_pairs(facts)[0]
    ours, theirs = (facts.entries("systems")[name]["encoder"] for name in (a, b))
    entry, jobs = facts.entries("encoders")[ours], facts.benchmarks
    job = f"{entry.get('importance')}/{entry.get('start')}/{entry.get('collection')}"
    counting = jobs[jobs["rule"].isin(COUNTING) & (jobs["job"] == job)]["seconds"]
    kinds = {name: facts.entries("systems").get(name, {}) for name in facts.systems}
    reranked = {name: entry["reranks"] for name, entry in kinds.items() if entry.get("kind") == "reranker"}
    without = not_pretrained(facts, a)
    others = {name: sets for name, sets in columns(facts).items() if sets != [[target]]} if without else {}
    values |= {
        "rerankers": [
            (name, other, change)
            for name, other in reranked.items()
            if (change := facts.difference(name, other, target, measure))
        ],
        "a": a,
        "b": b,
        "verdict": verdict(gap, values["noise"]),
        "without": facts.difference(a, without, target, measure),
        "elsewhere": [
            (name, change) for name, sets in others.items() if (change := mean_difference(facts, a, without, sets))
        ],
        "counting": float(counting.sum(min_count=1)),
        "ours": pretraining_seconds(facts, ours),
        "theirs": pretraining_seconds(facts, theirs),
        "stop_words": by_kind(facts.masked_terms[ours], "stop_word_share") if ours in facts.masked_terms else None,
    }
    everywhere = [
        (f"{name}, {formats.measure_name(main_measure(facts, sets))}", a, b, sets)
        for name, sets in columns(facts).items()
    ]
    title = "Importance-aware minus uniform, everywhere"
    figures = [_levels(facts, a, b, target), difference_figure(facts, "answer-everywhere", title, everywhere)]
    return Section("answer", values, figures=figures)


def limits(facts: Facts) -> Section | None:
    """Gather what decides which limits apply to this run."""
    values, entries = _basics(facts), facts.entries("encoders")
    corpus = facts.collections.get(values["target"].collection) if values["target"] else None
    passages = [training.steps * entries.get(name, {}).get("batch", 0) for name, training in facts.encoders.items()]
    trainings = {**facts.encoders, **facts.trained}
    values |= {
        "notes": [(name, note) for name, run in trainings.items() for note in run.about.get("notes", [])],
        "judged": corpus.per_query(values["target"].split) if corpus else 0.0,
        "passages": max(passages, default=0),
        "paper_passages": PAPER_PASSAGES,
    }
    return Section("limits", values)


def verdict(difference: Difference, band: float) -> str:
    """Say ``better`` or ``worse`` where queries and the noise band of a seed leave no doubt, else ``open``."""
    if difference.p >= 0.05 or abs(difference.difference) <= band or difference.low <= 0 <= difference.high:
        return "open"
    return "better" if difference.difference > 0 else "worse"


def pretraining_seconds(facts: Facts, encoder: str) -> float:
    """Tell how long a pre-training took; nan if unknown."""
    about = facts.encoders[encoder].about.get("seconds") if encoder in facts.encoders else None
    jobs = facts.benchmarks[(facts.benchmarks["rule"] == "pretrain") & (facts.benchmarks["job"] == encoder)]
    return float(about) if about else float(jobs["seconds"].sum()) if len(jobs) else math.nan


def _levels(facts: Facts, a: str, b: str, target: Target) -> Figure:
    measure = facts.main_measure(target)
    labels = {
        not_pretrained(facts, a): "no pre-training", b: "uniform masking", a: "importance-aware masking",
        bm25(facts): "no training at all",
    }  # fmt: skip
    entries = []
    for name, label in labels.items():
        value = facts.value(name, target, measure)
        if not math.isnan(value):
            shown, hue = formats.points(value), colour(facts, name)
            entries.append(Row(f"{label} ({name})", shown, bar=100 * value, colour=hue, strong=name == a))
    title = f"{formats.measure_name(measure)} on {target}"
    return rows("answer-levels", title, entries, low=0, axis=f"{formats.measure_name(measure)}, times 100")
