"""What the numbers cannot say."""

from __future__ import annotations

from collections.abc import Iterator

from cdmae import formats
from cdmae.report.comparisons import masking_pairs, noise, repeated
from cdmae.report.facts import Facts
from cdmae.report.markup import Markup, fill, tag
from cdmae.report.sections import Section, main_target
from cdmae.report.sections.answer import is_small

PAPER_PASSAGES = 80_000 * 2048  # that the paper's pre-training sees up to the checkpoint it takes


def section(facts: Facts) -> Section:
    """One paragraph per limit that applies to this run."""
    items = [
        tag("li", each)
        for each in [
            *_noticed(facts),
            *_seed(facts),
            *_queries(facts),
            *_judgments(facts),
            *_size(facts),
            *_general(facts),
        ]
    ]
    return Section("limits", "What this cannot say", "Limits", tag("ul", items, class_="limits"))


def _noticed(facts: Facts) -> Iterator[Markup]:
    """What trainings said of themselves: a row that collapsed is a fault, not a measurement."""
    for name, training in {**facts.encoders, **facts.trained}.items():
        for note in training.about.get("notes", []):
            yield fill("<b>Noticed while {name} was trained:</b> {note}.", name=name, note=note)


def _seed(facts: Facts) -> Iterator[Markup]:
    target = main_target(facts)
    if not facts.trained or not target:
        return
    band = noise(facts, target, facts.main_measure(target))
    if repeated(facts):
        text = (
            "<b>Few seeds.</b> The noise band of {band} points comes from recipes that were repeated with other "
            "seeds: 1.96 times the deviation of a difference, never below {least}."
        )
        if facts.repeated:
            text += (
                " It is the noise of one training; a mean over {count} seeds varies less. The tests take these means "
                "as they are and ask about other queries, not about other trainings."
            )
        yield fill(text, band=f"{100 * band:.1f}", least=f"{100 * facts.noise:.1f}", count=str(len(facts.seeds)))
        return
    yield fill(
        "<b>One seed.</b> Every system was trained once, with seed {seed}. The tests ask whether other queries would "
        "change the order, not whether another training would. The config takes a gap under {band} points to come "
        "and go with the seed (report.noise). With several seeds the page measures it: seeds: [{seed}, {next}].",
        seed=str(facts.seed), next=str(facts.seed + 1), band=f"{100 * facts.noise:.1f}",
    )  # fmt: skip


def _queries(facts: Facts) -> Iterator[Markup]:
    target = main_target(facts)
    queries = facts.queries(target) if target else 0
    if is_small(facts, queries):
        yield fill(
            "<b>Too small.</b> {queries} and {steps} of pre-training at most show that everything runs. No number on "
            "this page says anything about the method.",
            queries=formats.plural(queries, "query"),
            steps=formats.plural(max((each.steps for each in facts.encoders.values()), default=0), "step"),
        )  # fmt: skip
    for a, b in masking_pairs(facts)[:1] if target else []:
        found = facts.difference(a, b, target, facts.main_measure(target))
        if found:
            yield fill(
                "<b>The finest that can be seen.</b> With {queries} the interval of a difference is about "
                "\N{PLUS-MINUS SIGN}{half} points wide: smaller effects stay invisible.",
                queries=formats.plural(queries, "query"), half=f"{50 * (found.high - found.low):.1f}",
            )  # fmt: skip


def _judgments(facts: Facts) -> Iterator[Markup]:
    target = main_target(facts)
    corpus = facts.collections.get(target.collection) if target else None
    mean = corpus.per_query(target.split) if corpus and target else 0.0
    if 0 < mean < 1.5:
        yield fill(
            "<b>One right answer.</b> The queries of {target} have {mean} judged passages each. Other passages that "
            "would serve as well count as misses, for all systems alike.",
            target=str(target), mean=f"{mean:.1f}",
        )  # fmt: skip


def _size(facts: Facts) -> Iterator[Markup]:
    seen = max(
        (each.steps * facts.entries("encoders").get(name, {}).get("batch", 0) for name, each in facts.encoders.items()),
        default=0,
    )
    if 0 < seen < 0.5 * PAPER_PASSAGES:
        yield fill(
            "<b>A small training.</b> The longest pre-training saw {seen} passages; the paper's saw {paper}, with a "
            "model of 110 million parameters that had been pre-trained before. What a change is worth at one size "
            "need not hold at another.",
            seen=formats.short_count(seen), paper=formats.short_count(PAPER_PASSAGES),
        )  # fmt: skip


def _general(facts: Facts) -> Iterator[Markup]:
    if len(facts.systems) > 2:
        yield fill(
            "<b>Many comparisons.</b> The marks in the tables are corrected for the number of systems in a column, "
            "not for the number of columns. Of twenty independent tests without any effect one falls below p = .05."
        )
    if facts.started or not facts.benchmarks.empty:
        yield fill(
            "<b>Time</b> was taken on one machine with whatever else ran there; memory is the peak resident size that "
            "Snakemake sampled, and jobs of a second or two are hardly sampled at all."
        )
