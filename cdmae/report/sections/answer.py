"""The first screen: did masking by importance help here, by how much, how sure is that, at what cost."""

from __future__ import annotations

import numpy as np

from cdmae import formats
from cdmae.report.charts import Row, rows
from cdmae.report.comparisons import masking_pairs, noise, not_pretrained, repeated
from cdmae.report.facts import Difference, Facts, Target
from cdmae.report.figures import Figure
from cdmae.report.markup import Markup, fill, tag
from cdmae.report.sections import (
    NOISE_AXIS,
    Section,
    bm25,
    colour,
    columns,
    difference_row,
    main_measure,
    main_target,
    mean_difference,
    mean_noise,
    panels,
    paragraphs,
)

SMALL_QUERIES, SMALL_STEPS = 30, 300  # a run below either shows that the workflow works, nothing else
COUNTING = ("ngrams", "importance")  # the rules that only masking by importance needs


def section(facts: Facts) -> Section:
    """The answer, or why this run has none."""
    pairs, target = masking_pairs(facts), main_target(facts)
    difference = None
    if pairs and target:
        difference = facts.difference(*pairs[0], target, facts.main_measure(target))
    if not difference:
        return Section("answer", "The answer", "Answer", Markup(_warning(facts, None) + _no_answer(facts)))
    figures = [_levels(facts, *pairs[0], target), _everywhere(facts, *pairs[0])]
    body = [_warning(facts, difference), _verdict(facts, *pairs[0], target, difference)]
    body += [_tiles(facts, *pairs[0], target, difference), panels(figures)]
    return Section("answer", "The answer", "Answer", Markup("".join(body)), figures=figures)


def verdict(difference: Difference, band: float) -> str:
    """``better`` or ``worse`` where both the queries and the seed's noise band leave no doubt, else ``open``."""
    if difference.p >= 0.05 or abs(difference.difference) <= band or difference.low <= 0 <= difference.high:
        return "open"
    return "better" if difference.difference > 0 else "worse"


def is_small(facts: Facts, queries: int) -> bool:
    """Whether the run is too small for its numbers to mean anything."""
    steps = [each.steps for each in facts.encoders.values() if each.steps]
    return queries < SMALL_QUERIES or bool(steps and max(steps) < SMALL_STEPS)


def counting_seconds(facts: Facts, encoder: str) -> float:
    """What masking by importance costs before the training: counting n-grams and scoring the text; nan if unknown."""
    entry = facts.entries("encoders").get(encoder, {})
    job = f"{entry.get('importance')}/{entry.get('start')}/{entry.get('collection')}"
    frame = facts.benchmarks
    found = frame[frame["rule"].isin(COUNTING) & (frame["job"] == job)]["seconds"]
    return float(found.sum()) if found.notna().any() else np.nan


def pretraining_seconds(facts: Facts, encoder: str) -> float:
    """How long a pre-training took; nan if unknown."""
    found = facts.benchmarks[(facts.benchmarks["rule"] == "pretrain") & (facts.benchmarks["job"] == encoder)]["seconds"]
    about = facts.encoders[encoder].about.get("seconds") if encoder in facts.encoders else None
    return float(about) if about else float(found.sum()) if len(found) else np.nan


def _verdict(facts: Facts, a: str, b: str, target: Target, found: Difference) -> Markup:
    band = noise(facts, target, facts.main_measure(target))
    size = formats.signed(abs(found.difference)).lstrip("+")
    head = {
        "better": fill("Yes, by <b>{size} points</b>.", size=size),
        "worse": fill("No: it lost <b>{size} points</b>.", size=size),
        "open": fill(
            "Not measurably: {signed}&nbsp;points is within the noise.", signed=formats.signed(found.difference)
        ),
        "small": Markup("Too small a run to tell."),
    }["small" if is_small(facts, found.queries) else verdict(found, band)]
    none = not_pretrained(facts, a)
    without = facts.difference(a, none, target, facts.main_measure(target)) if none else None
    text = fill(
        "Two encoders were pre-trained alike but for the words that the decoder must restore: chosen by importance "
        "({a}) or at random ({b}). Fine-tuned alike, they reach {measure} {high} and {low} on {target}.",
        a=tag("strong", a), b=tag("strong", b), measure=formats.measure_name(facts.main_measure(target)),
        high=tag("strong", formats.points(found.a)), low=tag("strong", formats.points(found.b)), target=str(target),
    )  # fmt: skip
    if without:
        gain = {"value": formats.points(without.b), "p": formats.probability(without.p)}
        text = Markup(text + fill(" Without any pre-training it is {value} ({p}).", **gain))
    question = tag("p", "Did masking by importance help here?", class_="question")
    return Markup(question + tag("h2", head, class_="verdict") + tag("p", text, class_="lead"))


def _tiles(facts: Facts, a: str, b: str, target: Target, found: Difference) -> Markup:
    measure = formats.measure_name(facts.main_measure(target))
    sizes = f"of {measure}: {formats.points(found.a)} against {formats.points(found.b)}{_relative(found)}"
    tiles = [
        ("By how much", f"{formats.signed(found.difference)} points", sizes),
        ("How sure", formats.probability(found.p), _sureness(facts, target, found)),
        ("At what cost", *_cost(facts, a, b)),
    ]
    share = _stop_words(facts, a)
    if share:
        tiles.append(("What changed", *share))
    cells = [tag("div", tag("dt", name), tag("dd", tag("b", value), tag("span", note))) for name, value, note in tiles]
    return tag("dl", cells, class_="tiles")


def _relative(found: Difference) -> str:
    if not found.b:
        return ""
    change = formats.minus(f"{100 * found.difference / found.b:+.0f}")
    return f", {change}\N{NO-BREAK SPACE}%"


def _sureness(facts: Facts, target: Target, found: Difference) -> str:
    band = 100 * noise(facts, target, facts.main_measure(target))
    trained = f"one training each (seed {facts.seed})"
    if repeated(facts):
        trained = f"means over {len(facts.seeds)} seeds" if facts.repeated else "several seeds"
    return (
        f"95\N{NO-BREAK SPACE}% interval {formats.interval(found.low, found.high)} over "
        f"{formats.plural(found.queries, 'query')}; {trained}: gaps under {band:.1f} are noise"
    )


def _cost(facts: Facts, a: str, b: str) -> tuple[str, str]:
    encoders = [facts.entries("systems")[name]["encoder"] for name in (a, b)]
    counting = counting_seconds(facts, encoders[0])
    ours, theirs = (pretraining_seconds(facts, name) for name in encoders)
    if np.isnan(counting):
        return "not recorded", "no benchmark files of the counting; searching costs the same"
    note = "once, to count n-grams and score every word"
    if not np.isnan(ours) and ours > 0:
        note += f"; the pre-training takes {formats.duration(ours)}"
        note += f" (uniform: {formats.duration(theirs)})" if not np.isnan(theirs) else ""
    return formats.duration(counting), note + "; searching costs the same"


def _stop_words(facts: Facts, a: str) -> tuple[str, str] | None:
    found = facts.masked_terms.get(facts.entries("systems")[a]["encoder"], {})
    shares = [found.get(kind, {}).get("stop_word_share") for kind in ("uniform", "importance")]
    if None in shares:
        return None
    shown = " \N{RIGHTWARDS ARROW} ".join(formats.percent(share) for share in shares)
    note = "stop-words and punctuation among what the decoder must restore"
    return shown, note + (": more of it is content" if shares[1] < shares[0] else ", no fewer than before")


def _levels(facts: Facts, a: str, b: str, target: Target) -> Figure:
    measure = facts.main_measure(target)
    lexical = bm25(facts)
    names = [name for name in (not_pretrained(facts, a), b, a, lexical) if name]
    labels = {a: "importance-aware masking", b: "uniform masking", lexical: "no training at all"}
    entries = [
        Row(
            f"{labels.get(name, 'no pre-training')} ({name})",
            formats.points(facts.value(name, target, measure)),
            bar=100 * facts.value(name, target, measure),
            colour=colour(facts, name),
            strong=name == a,
        )
        for name in dict.fromkeys(names)
        if facts.value(name, target, measure) == facts.value(name, target, measure)
    ]
    title = f"{formats.measure_name(measure)} on {target}"
    return rows("answer-levels", title, entries, low=0, axis=f"{formats.measure_name(measure)}, times 100")


def _everywhere(facts: Facts, a: str, b: str) -> Figure:
    entries = []
    for name, sets in columns(facts).items():
        found = mean_difference(facts, a, b, sets)
        if found:
            label = f"{name}, {formats.measure_name(main_measure(facts, sets))}"
            entries.append(difference_row(label, found, colour(facts, a), mean_noise(facts, sets)))
    title = "Importance-aware minus uniform, everywhere"
    return rows("answer-everywhere", title, entries, axis=NOISE_AXIS)


def _no_answer(facts: Facts) -> Markup:
    """What to say where no two systems differ in the masking alone."""
    question = tag("p", "Did masking by importance help here?", class_="question")
    head = tag("h2", "This run cannot tell.", class_="verdict")
    text = (
        "No two of its systems differ in the decoder's masking alone. It takes two entries of encoders: that are "
        "alike but for decoder_masking, and a system for each with the same stage."
    )
    target = main_target(facts)
    best = None
    if target and facts.systems:
        measure = facts.main_measure(target)
        name = max(facts.systems, key=lambda each: np.nan_to_num(facts.value(each, target, measure), nan=-1))
        text_of_best = "The best of {systems} on {target} is {name}: {measure} {value}."
        if len(facts.systems) == 1:
            text_of_best = "The only system, {name}, reaches {measure} {value} on {target}."
        best = fill(
            text_of_best,
            systems=formats.plural(len(facts.systems), "system"), target=str(target), name=tag("strong", name),
            measure=formats.measure_name(measure), value=formats.points(facts.value(name, target, measure)),
        )  # fmt: skip
    return Markup(question + head + paragraphs(text, best))


def _warning(facts: Facts, found: Difference | None) -> Markup:
    target = main_target(facts)
    queries = found.queries if found else facts.queries(target) if target else 0
    if not is_small(facts, queries):
        return Markup("")
    steps = max((each.steps for each in facts.encoders.values()), default=0)
    trained = f" and {formats.plural(steps, 'step')} of pre-training" if steps else ""
    text = f"{formats.plural(queries, 'query')}{trained} show that the workflow works. The numbers below mean nothing."
    return tag("p", tag("strong", "A run this small is a test. "), text, class_="warning", role="note")
