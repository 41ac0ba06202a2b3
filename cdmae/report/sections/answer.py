"""The first screen: did masking by importance help here, by how much, how sure is that, at what cost."""

from __future__ import annotations

import math

from cdmae import formats
from cdmae.report.charts import Figure, Row, rows
from cdmae.report.comparisons import masking_pairs, noise, not_pretrained, repeated
from cdmae.report.facts import Difference, Facts, Target
from cdmae.report.sections import Section, bm25, colour, columns, difference_figure, main_measure, main_target
from cdmae.report.sections.masking import by_kind

SMALL_QUERIES, SMALL_STEPS = 30, 300  # a run below either shows that the workflow works, nothing else
COUNTING = ("ngrams", "importance")  # the rules that only masking by importance needs


def section(facts: Facts) -> Section:
    """Give the answer, or say why this run has none."""
    pairs, target = masking_pairs(facts), main_target(facts)
    measure = facts.main_measure(target) if target else ""
    gap = facts.difference(*pairs[0], target, measure) if pairs and target else None
    queries = gap.queries if gap else facts.queries(target) if target else 0
    steps = max((training.steps for training in facts.encoders.values()), default=0)
    values = {
        "facts": facts, "target": target, "measure": measure, "gap": gap, "queries": queries, "steps": steps,
        "small": is_small(facts, queries),
    }  # fmt: skip
    if not gap:
        reached = {name: facts.value(name, target, measure) for name in facts.systems if target}
        best = max(reached, key=lambda name: -1 if math.isnan(reached[name]) else reached[name], default="")
        return Section("answer", values | {"best": best, "value": reached.get(best)})
    a, b = pairs[0]
    ours, theirs = (facts.entries("systems")[name]["encoder"] for name in (a, b))
    none, band = not_pretrained(facts, a), noise(facts, target, measure)
    values |= {
        "a": a,
        "b": b,
        "verdict": verdict(gap, band),
        "without": facts.difference(a, none, target, measure) if none else None,
        "noise": band,
        "repeated": repeated(facts),
        "counting": counting_seconds(facts, ours),
        "ours": pretraining_seconds(facts, ours),
        "theirs": pretraining_seconds(facts, theirs),
        "stop_words": by_kind(facts.masked_terms.get(ours, {}), "stop_word_share"),
    }
    figures = [_levels(facts, a, b, target), _everywhere(facts, a, b)]
    return Section("answer", values, figures=[figure for figure in figures if figure])


def verdict(difference: Difference, band: float) -> str:
    """Say ``better`` or ``worse`` where queries and the noise band of a seed leave no doubt, else ``open``."""
    if difference.p >= 0.05 or abs(difference.difference) <= band or difference.low <= 0 <= difference.high:
        return "open"
    return "better" if difference.difference > 0 else "worse"


def is_small(facts: Facts, queries: int) -> bool:
    """Tell whether the run is too small for its numbers to mean anything."""
    steps = [training.steps for training in facts.encoders.values() if training.steps]
    return queries < SMALL_QUERIES or bool(steps and max(steps) < SMALL_STEPS)


def counting_seconds(facts: Facts, encoder: str) -> float:
    """Add up what masking by importance costs before the training: counting and scoring; nan if unknown."""
    entry = facts.entries("encoders").get(encoder, {})
    job = f"{entry.get('importance')}/{entry.get('start')}/{entry.get('collection')}"
    jobs = facts.benchmarks
    seconds = jobs[jobs["rule"].isin(COUNTING) & (jobs["job"] == job)]["seconds"]
    return float(seconds.sum(min_count=1))


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


def _everywhere(facts: Facts, a: str, b: str) -> Figure | None:
    pairs = [
        (f"{name}, {formats.measure_name(main_measure(facts, sets))}", a, b, sets)
        for name, sets in columns(facts).items()
    ]
    return difference_figure(facts, "answer-everywhere", "Importance-aware minus uniform, everywhere", pairs)
