"""What the numbers cannot say."""

from __future__ import annotations

from cdmae.report.comparisons import masking_pairs, noise, repeated
from cdmae.report.facts import Facts
from cdmae.report.sections import Section, main_target
from cdmae.report.sections.answer import is_small

PAPER_PASSAGES = 80_000 * 2048  # that the paper's pre-training sees up to the checkpoint it takes


def section(facts: Facts) -> Section:
    """Gather what decides which limits apply to this run."""
    target = main_target(facts)
    queries = facts.queries(target) if target else 0
    measure = facts.main_measure(target) if target else ""
    pairs, corpus = masking_pairs(facts), facts.collections.get(target.collection) if target else None
    trainings = {**facts.encoders, **facts.trained}
    entries = facts.entries("encoders")
    passages = [training.steps * entries.get(name, {}).get("batch", 0) for name, training in facts.encoders.items()]
    values = {
        "facts": facts,
        "notes": [(name, note) for name, run in trainings.items() for note in run.about.get("notes", [])],
        "target": target,
        "band": noise(facts, target, measure) if target else facts.noise,
        "repeated": repeated(facts),
        "queries": queries,
        "small": is_small(facts, queries),
        "steps": max((training.steps for training in facts.encoders.values()), default=0),
        "gap": facts.difference(*pairs[0], target, measure) if pairs and target else None,
        "judged": corpus.per_query(target.split) if corpus else 0.0,
        "passages": max(passages, default=0),
        "paper_passages": PAPER_PASSAGES,
    }
    return Section("limits", values)
