"""Declare the paper's tables and figures as targets: what each selects of a run.

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
from cdmae.report.sections.changes import over_steps
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
    """List every published method of table 1, and the last stage of those that are trained here.

    A system stands beside the paper's line only after as many stages.
    """
    chains, entries = methods(facts), []
    collections = {target.collection for target in facts.targets if published.dataset(facts, target)}
    titled = any(facts.entries("collections")[name].get("titles") for name in collections)
    for row in published.rows("table 1").values():
        chain = [bm25(facts)] if row.name == "BM25" else chains.pop(row.name, [])
        ours = chain[-1] if len(chain) == published.STAGE_OF.get(row.name, 1) else ""
        kind = published.kind(row.name)
        if titled and row.name == "BM25":
            kind = "ours reads the titles, the paper\N{RIGHT SINGLE QUOTATION MARK}s did not"
        entries.append(Entry((row.name, kind), ours, row))
        if chain and not ours and row.name in published.STAGE_OF:
            entries.append(_stage_entry(row.name, chain))
    return entries + [_stage_entry(label, chain) for label, chain in {**chains, **others(facts)}.items()]


def _stage_entry(label: str, chain: list[str]) -> Entry:
    return Entry((label, f"after stage {len(chain)}"), chain[-1])


def _stages(facts: Facts) -> list[Entry]:
    """List the methods of table 2 after stage 1, 2 and 3."""
    chains, rows = methods(facts), published.rows("table 2")
    entries = []
    for name in dict.fromkeys([*(name for name, _ in rows), *chains]):
        systems = chains.get(name, [])
        least = 3 if (name, 3) in rows else 0
        for stage, system in enumerate([*systems, *[""] * (least - len(systems))], 1):
            entries.append(Entry((name, f"stage {stage}"), system, rows.get((name, stage))))
    return entries


def _beir(facts: Facts) -> list[Entry]:
    """List the same systems for table 3, where nothing was trained on the queries."""
    rows = {name: row for (name, _), row in published.rows("table 3").items()}
    chains = {"BM25": [bm25(facts)], **methods(facts, published.GENERAL)}
    systems = {**dict.fromkeys(rows, [""]), **chains, **others(facts, published.GENERAL)}
    return [Entry((name,), chain[-1], rows.get(name)) for name, chain in systems.items()]


def _projection(facts: Facts) -> list[Entry]:
    """List the two settings of table 4."""
    systems = (projection_pair(facts) or ("", ""))[::-1]
    rows = published.rows("table 4").values()
    return [Entry((row.name,), system, row) for row, system in zip(rows, systems, strict=True)]


def _corpora(facts: Facts) -> list[Entry]:
    """List table 5, and the general corpus alone; the paper's row stands beside the first system of a corpus."""
    systems, rows, entries = corpora(facts), published.rows("table 5"), []
    for label in CORPORA:
        first, *more = systems.get(label, [""])
        entries.append(Entry((label,), first, rows.get((label, 0))))
        entries += [Entry((label,), system) for system in more]
    return entries


def _negatives(facts: Facts) -> list[Entry]:
    """List the passages per query of figure 4, at the same number of passages a step."""
    systems, rows = arms(facts, "stage.group"), published.rows("figure 4")
    sizes = sorted({*(int(name) for name, _ in rows), *systems})
    return [Entry((str(size),), systems.get(size, ""), rows.get((str(size), 0))) for size in sizes]


def _growth(facts: Facts) -> list[Entry]:
    """List pre-training steps, per encoder."""
    return [Entry((name, str(step)), system) for name, points in growth(facts).items() for step, system in points]


# --- columns ---------------------------------------------------------------------------------------------------------


def _in_domain(table: str, *measures: str) -> Callable[[Facts], list[Column]]:
    """Return the paper's columns where its queries are measured; else `measures`, or the main one, of every target."""

    def columns(facts: Facts) -> list[Column]:
        named = {published.dataset(facts, target): target for target in in_domain(facts)}
        parts = {published.DL: (published.DL19, published.DL20)}
        papers = []
        for key in dict.fromkeys(key for row in published.rows(table).values() for key in row.values):
            datasets = parts.get(key.dataset, (key.dataset,))
            targets = [named[dataset] for dataset in datasets if dataset in named]
            if len(targets) == len(datasets) and all(key.measure in facts.measures_of(target) for target in targets):
                papers.append(Column(key.dataset, [[target] for target in targets], key.measure, key))
        return papers or _own(facts, measures)

    return columns


def _own(facts: Facts, measures: tuple[str, ...]) -> list[Column]:
    columns = []
    for target in in_domain(facts):
        measured = [measure for measure in measures if measure in facts.measures_of(target)]
        columns += [Column(str(target), [[target]], name) for name in measured or [facts.main_measure(target)]]
    return columns


def _zero_shot(facts: Facts) -> list[Column]:
    """Return a column per collection, and their average where there are several."""
    sets, columns = zero_shot_sets(facts), []
    theirs = published.rows("table 3")[published.OURS, 0].values.keys() - {published.AVERAGE}
    for name, targets in sets.items():
        key = Key(name, main_measure(facts, [targets]))
        columns.append(Column(name, [targets], key.measure, key if key in theirs else None))
    if len(sets) > 1:
        key = published.AVERAGE if theirs == {column.key for column in columns} else None
        columns.append(Column("average", list(sets.values()), columns[0].measure, key))
    return columns


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
    """Return what an exhibit needs of a config (`Config.values`); raises `InputError` where that has not enough."""
    facts = grids.planned(config)
    if name in ("table_latency", "table_claims"):
        return Wanted(everything=name == "table_claims", latency=True)
    if name in OF_MASKS:
        shown = [facts.entries("systems")[a]["encoder"] for a, _ in masking_pairs(facts)]
        encoders = facts.entries("encoders").items()
        shown += [encoder for encoder, entry in encoders if entry.get("decoder_masking") == "importance"]
        if not shown:
            raise InputError(
                f"{name} needs an encoder with decoder_masking: importance, which this config lacks; "
                "see config/config.yaml"
            )
        return Wanted(encoders=shown[:1])
    grid = GRIDS[name]
    systems = _systems(grid, facts) if grid.columns(facts) else []
    if len(systems) < grid.least:
        raise InputError(f"{name} needs {grid.lacks}, which this config lacks; see {grid.has}")
    return Wanted(systems=list(dict.fromkeys(systems)))


def _systems(grid: Grid, facts: Facts) -> list[str]:
    return [entry.system for entry in grid.entries(facts) if entry.system]


# --- what is shown ---------------------------------------------------------------------------------------------------


def table(name: str, facts: Facts) -> Table:
    """Return the numbers of an exhibit."""
    if name in GRIDS:
        return grids.table(GRIDS[name], name, facts)
    if name in OF_MASKS:
        masked = facts.masked_terms[shown_encoder(facts)]
        return (terms_table if name == "figure_masked_terms" else example_table)(masked, name)
    return (latency_table if name == "table_latency" else claims_table)(facts, name)


def beside_the_papers(facts: Facts) -> list[Table]:
    """Return the tables of systems that have the paper's lines too: those whose collections were measured."""
    return [
        grids.table(grid, name, facts)
        for name, grid in GRIDS.items()
        if len(_systems(grid, facts)) >= grid.least and any(column.key for column in grid.columns(facts))
    ]


def figure(name: str, facts: Facts) -> Figure:
    """Return the picture of an exhibit that is a figure."""
    if name == "figure_negatives":
        return grids.figure(GRIDS[name], name, facts)
    if name == "figure_steps":
        columns = GRIDS[name].columns(facts)
        panels = [over_steps(facts, target, column.measure) for column in columns for [target] in column.sets]
        return stacked(name, GRIDS[name].caption, panels)
    masked = facts.masked_terms[shown_encoder(facts)]
    title = "The paper\N{RIGHT SINGLE QUOTATION MARK}s figure "
    if name == "figure_masked_terms":
        return stacked(name, f"{title}2: the most frequently masked terms", masked_figures(masked))
    return stacked(name, f"{title}3: how likely each word is masked", [sampling(masked["example"])])
