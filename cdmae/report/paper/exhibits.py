"""The paper's tables and figures as targets: what each selects of a run, declared.

``./run table_stages`` trains what `wanted` finds in the config and writes what `table` and `figure` make of its
measures.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from cdmae.errors import InputError
from cdmae.report.charts import Figure, stacked
from cdmae.report.comparisons import arms, growth, masking_pairs
from cdmae.report.facts import Facts
from cdmae.report.paper import grids, published
from cdmae.report.paper.claims import claims_table
from cdmae.report.paper.grids import Column, Entry, Grid
from cdmae.report.paper.latency import latency_table
from cdmae.report.paper.methods import CORPORA, corpora, methods, others, projection_pair
from cdmae.report.paper.published import Key
from cdmae.report.sections import bm25, in_domain, main_measure, zero_shot_sets
from cdmae.report.sections.growth import over_steps
from cdmae.report.sections.masking import example_table, masked_figures, sampling, shown_encoder, terms_table
from cdmae.report.tables import Table


class Wanted(NamedTuple):
    """What an exhibit is made from; `everything` is all that the report reads."""

    everything: bool = False
    systems: list[str] = []
    encoders: list[str] = []
    latency: bool = False


# --- entries ---------------------------------------------------------------------------------------------------------


def _main(facts: Facts) -> list[Entry]:
    """Table 1: every published method, and the last stage of those that are trained here.

    A system stands beside the paper's line only after as many stages.
    """
    found, entries = methods(facts), []
    collections = {each.collection for each in facts.targets if published.dataset(facts, each)}
    titled = any(facts.entries("collections")[each].get("titles") for each in collections)
    for row in published.rows("table 1").values():
        chain = [bm25(facts)] if row.name == "BM25" else found.pop(row.name, [])
        ours = chain[-1] if len(chain) == published.STAGE_OF.get(row.name, 1) else ""
        kind = "ours reads the titles, the paper\N{RIGHT SINGLE QUOTATION MARK}s did not" * (
            titled and row.name == "BM25"
        )
        entries.append(Entry((row.name, kind or published.kind(row.name)), ours, row))
        if chain and not ours and row.name in published.STAGE_OF:
            entries.append(_stage_entry(row.name, chain))
    return entries + [_stage_entry(label, chain) for label, chain in {**found, **others(facts)}.items()]


def _stage_entry(label: str, chain: list[str]) -> Entry:
    return Entry((label, f"after stage {len(chain)}"), chain[-1])


def _stages(facts: Facts) -> list[Entry]:
    """Table 2: a method after stage 1, 2 and 3."""
    found, rows = methods(facts), published.rows("table 2")
    entries = []
    for name in dict.fromkeys([*(name for name, _ in rows), *found]):
        chain = found.get(name, [])
        for stage in range(1, max(len(chain), 3 if (name, 3) in rows else 0) + 1):
            system = chain[stage - 1] if stage <= len(chain) else ""
            entries.append(Entry((name, f"stage {stage}"), system, rows.get((name, stage))))
    return entries


def _beir(facts: Facts) -> list[Entry]:
    """Table 3: the same systems where nothing was trained on the queries."""
    found = {"BM25": [bm25(facts)], **methods(facts, published.GENERAL)}
    rows = [Entry((name,), found.get(name, [""])[-1], row) for (name, _), row in published.rows("table 3").items()]
    named = {entry.label[0] for entry in rows}
    found |= others(facts, published.GENERAL)
    more = {label: chain for label, chain in found.items() if label not in named}
    return rows + [Entry((label,), chain[-1]) for label, chain in more.items()]


def _projection(facts: Facts) -> list[Entry]:
    """Table 4."""
    systems = (projection_pair(facts) or ("", ""))[::-1]
    rows = published.rows("table 4").values()
    return [Entry((row.name,), system, row) for row, system in zip(rows, systems, strict=True)]


def _corpora(facts: Facts) -> list[Entry]:
    """Table 5, and the general corpus alone; the paper's row stands beside the first system of a corpus."""
    found, rows, entries = corpora(facts), published.rows("table 5"), []
    for label in CORPORA:
        first, *more = found.get(label, [""])
        entries.append(Entry((label,), first, rows.get((label, 0))))
        entries += [Entry((label,), system) for system in more]
    return entries


def _negatives(facts: Facts) -> list[Entry]:
    """Figure 4: passages per query at the same number of passages a step."""
    found, rows = arms(facts, "stage.group"), published.rows("figure 4")
    sizes = sorted({*(int(name) for name, _ in rows), *found})
    return [Entry((str(size),), found.get(size, ""), rows.get((str(size), 0))) for size in sizes]


def _growth(facts: Facts) -> list[Entry]:
    """Pre-training steps, per encoder."""
    return [Entry((name, str(step)), system) for name, points in growth(facts).items() for step, system in points]


# --- columns ---------------------------------------------------------------------------------------------------------


def _in_domain(table: str, *measures: str) -> Callable[[Facts], list[Column]]:
    """The paper's columns where its queries are measured; elsewhere `measures`, or the main one, of every target."""

    def columns(facts: Facts) -> list[Column]:
        keys = list(dict.fromkeys(key for row in published.rows(table).values() for key in row.values))
        named = {published.dataset(facts, target): target for target in in_domain(facts)}
        parts = {published.DL: (published.DL19, published.DL20)}
        found = []
        for key in keys:
            targets = [named.get(each) for each in parts.get(key.dataset, (key.dataset,))]
            if None not in targets and all(key.measure in facts.measures_of(each) for each in targets if each):
                found.append(Column(key.dataset, [[each] for each in targets if each], key.measure, key))
        return found or _own(facts, measures)

    return columns


def _own(facts: Facts, measures: tuple[str, ...]) -> list[Column]:
    return [
        Column(str(target), [[target]], measure)
        for target in in_domain(facts)
        for measure in [each for each in measures if each in facts.measures_of(target)] or [facts.main_measure(target)]
    ]


def _zero_shot(facts: Facts) -> list[Column]:
    """A column per collection, and their average where there are several."""
    sets, found = zero_shot_sets(facts), []
    theirs = published.rows("table 3")[published.OURS, 0].values.keys() - {published.AVERAGE}
    for name, targets in sets.items():
        measure = main_measure(facts, [targets])
        key = Key(name, measure)
        found.append(Column(name, [targets], measure, key if key in theirs else None))
    if len(sets) > 1:
        key = published.AVERAGE if theirs == {column.key for column in found} else None
        found.append(Column("average", list(sets.values()), found[0].measure, key))
    return found


# --- the declarations ------------------------------------------------------------------------------------------------

ABLATIONS = "config/ablations.yaml, and config/paper-ablations.yaml over config/paper.yaml"
GRIDS = {
    "table_main": Grid(
        "The paper\N{RIGHT SINGLE QUOTATION MARK}s table 1: main results", ("method", "kind"), _main,
        _in_domain("table 1", "RR@10", "R@50", "R@1000"), 1,
        "BM25 or a retriever whose encoder masks by importance", "config/config.yaml",
    ),
    "table_stages": Grid(
        "The paper\N{RIGHT SINGLE QUOTATION MARK}s table 2: after each stage", ("method", "after"), _stages,
        _in_domain("table 2", "RR@10", "R@1000"), 2,
        "a retriever that takes its negatives from another one with the same encoder",
        "config/config.yaml and config/paper.yaml",
    ),
    "table_beir": Grid(
        "The paper\N{RIGHT SINGLE QUOTATION MARK}s table 3: zero-shot", ("method",), _beir, _zero_shot, 1,
        "collections in evaluation: whose queries are not trained on", "config/config.yaml and config/paper.yaml",
    ),
    "table_projection": Grid(
        "The paper\N{RIGHT SINGLE QUOTATION MARK}s table 4: the projection of the bottleneck", ("setting",),
        _projection, _in_domain("table 4"), 2, "two retrievers that differ in encoders.X.projection alone",
        ABLATIONS,
    ),
    "table_corpus": Grid(
        "The paper\N{RIGHT SINGLE QUOTATION MARK}s table 5: what is pre-trained on", ("corpus",), _corpora,
        _in_domain("table 5"), 2,
        "retrievers that differ in encoders.X.collection or encoders.X.start alone", ABLATIONS,
    ),
    "figure_negatives": Grid(
        "The paper\N{RIGHT SINGLE QUOTATION MARK}s figure 4: hard negatives at a constant number of passages a step",
        ("passages per query",), _negatives, _in_domain("figure 4"), 3,
        "three retrievers that differ in stages.X.group (and queries) alone", ABLATIONS,
    ),
    "figure_steps": Grid(
        "What a system gains by longer pre-training", ("encoder", "steps"), _growth, lambda facts: _own(facts, ()), 2,
        "retrievers whose encoders are snapshots of one pre-training (encoders.X.snapshot_of)",
        "config/ablations.yaml",
    ),
}  # fmt: skip
OF_MASKS = ("figure_masked_terms", "figure_sampling")


def wanted(name: str, config: dict[str, Any]) -> Wanted:
    """What an exhibit needs of a config, as `Config.values` gives it; raises `InputError` where it has not enough."""
    facts = grids.planned(config)
    if name in ("table_latency", "table_claims"):
        return Wanted(everything=name == "table_claims", latency=True)
    if name in OF_MASKS:
        return Wanted(encoders=[_masked(name, facts)])
    grid = GRIDS[name]
    systems = [entry.system for entry in grid.entries(facts) if entry.system] if grid.columns(facts) else []
    if len(systems) < grid.least:
        raise InputError(f"{name} needs {grid.lacks}, which this config lacks; see {grid.has}")
    return Wanted(systems=list(dict.fromkeys(systems)))


def _masked(name: str, facts: Facts) -> str:
    """The encoder whose masks are shown."""
    encoders = facts.entries("encoders")
    shown = [facts.entries("systems")[a]["encoder"] for a, _ in masking_pairs(facts)]
    shown += [each for each, entry in encoders.items() if entry.get("decoder_masking") == "importance"]
    if not shown:
        raise InputError(
            f"{name} needs an encoder with decoder_masking: importance, which this config lacks; see config/config.yaml"
        )
    return shown[0]


# --- what is shown ---------------------------------------------------------------------------------------------------


def table(name: str, facts: Facts) -> Table:
    """The numbers of an exhibit."""
    if name in ("table_latency", "table_claims"):
        return (latency_table if name == "table_latency" else claims_table)(facts, name)
    if name in OF_MASKS:
        found = facts.masked_terms[shown_encoder(facts)]
        return (terms_table if name == "figure_masked_terms" else example_table)(found, name)
    return grids.table(GRIDS[name], name, facts)


def beside_the_papers(facts: Facts) -> list[Table]:
    """The tables of systems that have the paper's lines too: those whose collections were measured."""
    found = []
    for name, grid in GRIDS.items():
        systems = [entry.system for entry in grid.entries(facts) if entry.system]
        if len(systems) >= grid.least and any(column.key for column in grid.columns(facts)):
            found.append(grids.table(grid, name, facts))
    return found


def figure(name: str, facts: Facts) -> Figure:
    """The picture of an exhibit that is a figure."""
    if name == "figure_negatives":
        return grids.figure(GRIDS[name], name, facts)
    if name == "figure_steps":
        columns = GRIDS[name].columns(facts)
        panels = [over_steps(facts, target, column.measure) for column in columns for [target] in column.sets]
        return stacked(name, GRIDS[name].caption, panels)
    found = facts.masked_terms[shown_encoder(facts)]
    title = "The paper\N{RIGHT SINGLE QUOTATION MARK}s figure "
    if name == "figure_masked_terms":
        return stacked(name, f"{title}2: the most frequently masked terms", masked_figures(found))
    return stacked(name, f"{title}3: how likely each word is masked", [sampling(found["example"])])
