"""Against the paper: its claims beside what was found here, and its tables where the same queries were measured."""

from __future__ import annotations

from collections.abc import Iterator

from cdmae import formats
from cdmae.report import published
from cdmae.report.comparisons import chains, differences, masking_pairs, noise, steps
from cdmae.report.facts import GRADED, Difference, Facts
from cdmae.report.markup import Markup
from cdmae.report.sections import (
    Section,
    bm25,
    difference_cells,
    main_measure,
    main_target,
    mean_difference,
    mean_noise,
    mean_value,
    paragraphs,
    value_cell,
    zero_shot_sets,
)
from cdmae.report.sections.answer import verdict
from cdmae.report.sections.masking import shown_encoder
from cdmae.report.tables import Cell, Table


def section(facts: Facts) -> Section | None:
    """The claims, and the tables that there are numbers for."""
    tables = [table for table in (claims(facts), measured(facts), beir(facts)) if table.rows]
    if not tables:
        return None
    lead = None if any(table.name != "claims" for table in tables) else (
        "Nothing of the paper's own collections was measured here, so the heights do not compare; the directions may."
    )  # fmt: skip
    body = Markup("".join([paragraphs(lead), *(table.html() for table in tables)]))
    return Section("paper", "Against the paper", "Against the paper", body, tables=tables)


def claims(facts: Facts) -> Table:
    """A row per claim that this run can speak to."""
    rows = [*_over_uniform(facts), *_zero_shot(facts), *_stages(facts), *_projection(facts), *_stop_words(facts)]
    head = ["what the paper finds", "paper", "here", "95 % interval", "reading"]
    return Table("claims", "The paper's claims", head, rows, texts=["reading"])


def measured(facts: Facts) -> Table:
    """Tables 1 and 2: paper, ours and difference for BM25 and each stage."""
    rows = []
    for target in facts.targets:
        name = published.dataset(facts, target)
        for measure in facts.measures if name else []:
            for system, row, value in _published(facts, name, measure):
                ours = facts.value(system, target, measure)
                if ours == ours:
                    rows.append([str(target), formats.measure_name(measure), row, system, *_beside(value, ours)])
    head = ["collection", "measure", "row of the paper", "system", "paper", "ours", "difference"]
    return Table(
        "paper-stages", "The paper's tables 1 and 2", head, rows, texts=["measure", "row of the paper", "system"]
    )


def beir(facts: Facts) -> Table:
    """Table 3: paper, ours and difference on BEIR, for BM25 and the last stage."""
    chain, rows = _chain(facts), []
    systems = [(bm25(facts), "BM25", 0), (chain[-1] if chain else "", "CDMAE", 2)]
    systems = [each for each in systems if each[0]]
    sets = {name: targets for name, targets in zero_shot_sets(facts).items() if name in published.BEIR}
    groups = {name: [targets] for name, targets in sets.items()}
    if len(sets) == len(published.BEIR):
        groups["mean"] = list(sets.values())
    for name, group in groups.items():
        values = published.BEIR.get(name, published.BEIR_MEAN)
        ours = [(values[place], mean_value(facts, system, group, GRADED)) for system, _, place in systems]
        rows.append([name, *(cell for pair in ours for cell in _beside(*pair))])
    head = ["dataset", *(f"{row}, {what}" for _, row, _ in systems for what in ("paper", "ours", "difference"))]
    return Table("paper-beir", "The paper's table 3, nDCG@10", head, rows if systems else [])


def _beside(value: float, ours: float) -> list[Cell]:
    difference = Cell(formats.signed(ours - value / 100), 100 * ours - value if ours == ours else None)
    return [Cell(f"{value:.1f}", value), value_cell(ours), difference]


def _published(facts: Facts, name: str, measure: str) -> Iterator[tuple[str, str, float]]:
    """(Our system, the paper's row, its value) of tables 1 and 2."""
    if bm25(facts) and (name, measure) in published.BM25:
        yield bm25(facts), "BM25", published.BM25[name, measure]
    values = published.STAGES.get((name, measure), ())
    for place, (system, value) in enumerate(zip(_chain(facts), values, strict=False)):
        if value is not None:
            yield system, f"CDMAE, stage {place + 1}", value


def _chain(facts: Facts) -> list[str]:
    """The systems of stages 1, 2, 3 of the encoder that masks by importance."""
    encoders, systems = facts.entries("encoders"), facts.entries("systems")
    found = [
        chain
        for chain in chains(facts)
        if encoders.get(systems[chain[0]]["encoder"], {}).get("decoder_masking") == "importance"
    ]
    if found:
        return max(found, key=len)
    return [pair[0] for pair in masking_pairs(facts)[:1]]


def _row(claim: str, paper: float, found: Difference, band: float) -> list[Cell | str]:
    readings = {"better": "found here too", "worse": "the opposite here", "open": "within the noise"}
    return [
        claim, Cell(formats.signed(paper / 100), paper), *difference_cells(found)[:2], readings[verdict(found, band)]
    ]  # fmt: skip


def _over_uniform(facts: Facts) -> Iterator[list[Cell | str]]:
    target = main_target(facts)
    for a, b in masking_pairs(facts)[:1] if target else []:
        measure = facts.main_measure(target)
        found = facts.difference(a, b, target, measure)
        if found:
            claim = (
                f"importance-aware over uniform masks, {formats.measure_name(measure)} (paper: over RetroMAE, stage 1)"
            )
            yield _row(claim, published.OVER_UNIFORM, found, noise(facts, target, measure))


def _stages(facts: Facts) -> Iterator[list[Cell | str]]:
    target, chain = main_target(facts), _chain(facts)
    for place, paper in enumerate(published.STAGE_GAINS):
        if target and len(chain) > place + 1 and (chain[place], chain[place + 1]) in steps(facts):
            measure = facts.main_measure(target)
            found = facts.difference(chain[place + 1], chain[place], target, measure)
            if found:
                claim = f"stage {place + 2} over stage {place + 1}, {formats.measure_name(measure)}"
                yield _row(claim, paper, found, noise(facts, target, measure))


def _zero_shot(facts: Facts) -> Iterator[list[Cell | str]]:
    """The mean over the zero-shot collections."""
    sets = zero_shot_sets(facts)
    for a, b in masking_pairs(facts)[:1]:
        found = mean_difference(facts, a, b, list(sets.values()))
        if found:
            measure = formats.measure_name(main_measure(facts, list(sets.values())))
            claim = f"the same, zero-shot, {measure}, {formats.plural(len(sets), 'collection')} (paper: 14)"
            yield _row(claim, published.ZERO_SHOT, found, mean_noise(facts, list(sets.values())))


def _projection(facts: Facts) -> Iterator[list[Cell | str]]:
    target = main_target(facts)
    names = facts.systems if target else []
    pairs = ((a, b) for a in names for b in names if differences(facts, a, b) == {"encoder.projection": (True, False)})
    for a, b in list(pairs)[:1]:
        measure = facts.main_measure(target)
        found = facts.difference(a, b, target, measure)
        if found:
            claim = f"a projection of the bottleneck, {formats.measure_name(measure)}"
            yield _row(claim, published.PROJECTION, found, noise(facts, target, measure))


def _stop_words(facts: Facts) -> Iterator[list[Cell | str]]:
    found = facts.masked_terms.get(shown_encoder(facts), {}) if facts.masked_terms else {}
    share = found.get("uniform", {}).get("stop_word_share")
    if share is not None:
        yield [
            "stop-words and punctuation among what uniform masks hide",
            Cell(formats.percent(published.STOP_WORDS), published.STOP_WORDS),
            Cell(formats.percent(share), share),
            formats.NONE,
            "the problem exists here too" if share > 0.2 else "less of a problem here",
        ]
