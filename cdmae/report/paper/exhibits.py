"""Declare the paper's tables and figures as targets, each with the systems that it shows.

``./run table_stages`` trains the systems that `wanted` finds in the config, and writes the output
of `table` or `figure` for their measures. The page's section on the paper shows the claims and the
exhibits that have numbers.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from cdmae.errors import InputError
from cdmae.report.charts import Figure, stacked
from cdmae.report.comparisons import arms, growth, pairs
from cdmae.report.facts import Facts
from cdmae.report.paper import grids, published
from cdmae.report.paper.claims import NOT_TESTED, OUTCOMES, claims_table
from cdmae.report.paper.grids import PAPERS, Entry, Grid
from cdmae.report.paper.methods import CORPORA, corpora, methods, others
from cdmae.report.sections import Section
from cdmae.report.sections.changes import over_steps
from cdmae.report.sections.masking import (
    example_table,
    masked_figures,
    sampling,
    shown_encoder,
    terms_table,
)
from cdmae.report.tables import Table, number_cell


class Wanted(NamedTuple):
    """The inputs of an exhibit; `everything` means all inputs of the report."""

    everything: bool = False
    systems: list[str] = []
    encoders: list[str] = []
    latency: bool = False


# --- entries --------------------------------------------------------------------------------------


def _main(facts: Facts) -> list[Entry]:
    """List all methods of table 1, the last stage of the methods here, and further results.

    A system is compared with a row of the paper only after the same number of stages, or if
    ``report.methods`` names it.
    """
    chains = {"BM25": [facts.bm25], **methods(facts)}
    named = dict(facts.report.methods)
    entries = []
    titled = _reads_titles(facts)
    for row in published.rows("table 1").values():
        chain = chains.pop(row.name, [])
        kind = row.kind
        if titled and row.name == "BM25":
            kind = "ours reads the titles, the paper\N{RIGHT SINGLE QUOTATION MARK}s did not"
        if row.name in named:
            entries.append(Entry((row.name, kind), named.pop(row.name), row))
            continue
        as_far = len(chain) == published.STAGE_OF.get(row.name, 1)
        entries.append(Entry((row.name, kind), chain[-1] if as_far else "", row))
        if chain and not as_far and row.name in published.STAGE_OF:
            entries.append(Entry((row.name, f"after stage {len(chain)}"), chain[-1]))
    more = {**chains, **others(facts)}
    entries += [
        Entry((label, f"after stage {len(chain)}"), chain[-1]) for label, chain in more.items()
    ]
    entries += [Entry((label, ""), system) for label, system in named.items()]
    further = published.rows(published.FURTHER).values()
    return entries + [Entry((row.name, row.kind), "", row) for row in further]


def _reads_titles(facts: Facts) -> bool:
    """Return whether titles are part of the passages of one of the paper's collections."""
    names = {target.collection for target in facts.targets if published.dataset(facts, target)}
    return any(facts.entries("collections")[name].get("titles") for name in names)


def _stages(facts: Facts) -> list[Entry]:
    """List the methods of table 2 after stages 1, 2 and 3."""
    chains = methods(facts)
    rows = published.rows("table 2")
    entries = []
    for name in dict.fromkeys([*(name for name, _ in rows), *chains]):
        systems = chains.get(name, [])
        least = 3 if (name, 3) in rows else 0
        for stage, system in enumerate([*systems, *[""] * (least - len(systems))], 1):
            entries.append(Entry((name, f"stage {stage}"), system, rows.get((name, stage))))
    return entries


def _beir(facts: Facts) -> list[Entry]:
    """List the systems for table 3, the zero-shot results."""
    chains = {
        "BM25": [facts.bm25],
        **methods(facts, published.GENERAL),
        **others(facts, published.GENERAL),
    }
    return _beside("table 3", {name: chain[-1:] for name, chain in chains.items()})


def _nano(facts: Facts) -> list[Entry]:
    """List the published results on NanoBEIR, and the systems of table 3.

    External models appear under their own names.
    """
    systems = {}
    for name, entry in facts.entries("systems").items():
        if entry.get("model") and name in facts.systems:
            systems[entry["model"].rstrip("/").rpartition("/")[2]] = [name]
    for entry in _beir(facts):
        if entry.system:
            systems[entry.label[0]] = [entry.system]
    return _beside(published.NANO, systems)


def _projection(facts: Facts) -> list[Entry]:
    """List the two settings of table 4."""
    having, lacking = next(iter(pairs(facts, "encoder.projection", True, False)), ("", ""))
    return _beside("table 4", {"w/o projection": [lacking], "w/ projection": [having]})


def _corpora(facts: Facts) -> list[Entry]:
    """List the corpora of table 5, and the general corpus alone.

    The first system of each corpus is compared with the paper's row.
    """
    return _beside("table 5", dict.fromkeys(CORPORA, [""]) | corpora(facts))


def _negatives(facts: Facts) -> list[Entry]:
    """List the group sizes of figure 4; the number of passages per step is constant."""
    systems = arms(facts, "stage.group")
    sizes = sorted({*(int(name) for name, _ in published.rows("figure 4")), *systems})
    return _beside("figure 4", {str(size): [systems.get(size, "")] for size in sizes})


def _beside(source: str, systems: Mapping[str, Sequence[str]]) -> list[Entry]:
    """Pair the rows of a published table without stages with the systems that have the same label.

    If several systems share a label, only the first is paired with the row.
    """
    rows = {name: row for (name, _), row in published.rows(source).items()}
    entries = []
    for label in dict.fromkeys([*(rows if source in grids.SETS else []), *systems]):
        first, *more = systems.get(label, [""])
        entries += [
            Entry((label,), first, rows.get(label)),
            *(Entry((label,), system) for system in more),
        ]
    return entries


def _growth(facts: Facts) -> list[Entry]:
    """List the steps of pre-training, per encoder."""
    return [
        Entry((name, str(step)), system)
        for name, points in growth(facts).items()
        for step, system in points
    ]


# --- the declarations: rows of exhibits.csv -------------------------------------------------------

_ROWS = pd.read_csv(
    Path(__file__).with_suffix(".csv"),
    index_col="name",
    dtype={"least": int},
    keep_default_na=False,
    converters={"heads": lambda text: tuple(text.split(", ")), "measures": str.split},
).to_dict("index")
_ENTRIES = {
    "table_main": _main,
    "table_stages": _stages,
    "table_beir": _beir,
    "table_projection": _projection,
    "table_corpus": _corpora,
    "table_nanobeir": _nano,
    "figure_negatives": _negatives,
    "figure_steps": _growth,
}
GRIDS = {name: Grid(entries=entries, **_ROWS[name]) for name, entries in _ENTRIES.items()}
OF_MASKS = {"figure_masked_terms": terms_table, "figure_sampling": example_table}

_SQUARE = "O(n\N{SUPERSCRIPT TWO})"
_CPU = "ms on a CPU"
_GPU = "ms on a V100"
# a measured form: the paper's row for it, its complexity, and the paper's unit
FORMS = {
    "MAE": ("MAE", "O(n)", _CPU),
    "RetroMAE, in Python": ("RetroMAE", _SQUARE, _CPU),
    "RetroMAE, ours": ("RetroMAE", _SQUARE, _CPU),
    "SimLM, masks": ("SimLM", _SQUARE, _CPU),
    "SimLM, generator": ("SimLM", _SQUARE, _GPU),
    "CDMAE": (published.OURS, "O(n log n)", _CPU),
}


def wanted(name: str, config: dict[str, Any]) -> Wanted:
    """Return the inputs that an exhibit needs from a config (`Config.values`).

    Raises `InputError` if the config lacks some of them.
    """
    facts = grids.planned(config)
    if name in ("table_latency", "table_claims"):
        return Wanted(everything=name == "table_claims", latency=True)
    shown = []
    if name in OF_MASKS:
        if facts.masked_terms:
            shown = [shown_encoder(facts)]
    elif GRIDS[name].columns(facts):
        shown = GRIDS[name].systems(facts)
    row = _ROWS[name]
    if len(shown) < row["least"]:
        raise InputError(f"{name} needs {row['lacks']}, which this config lacks; see {row['has']}")
    if name in OF_MASKS:
        return Wanted(encoders=shown)
    return Wanted(systems=list(dict.fromkeys(shown)))


# --- tables and figures ---------------------------------------------------------------------------


def table(name: str, facts: Facts) -> Table:
    """Return the table of an exhibit."""
    if name in GRIDS:
        return grids.table(GRIDS[name], name, facts)
    if name in OF_MASKS:
        return OF_MASKS[name](facts.masked_terms[shown_encoder(facts)], name)
    return (_latency if name == "table_latency" else claims_table)(facts, name)


def _latency(facts: Facts, name: str) -> Table:
    """Make a row per form of masking: the paper's milliseconds, ours, and multiples of MAE's.

    The last times are measured on one passage of n word-pieces.
    """
    batch = facts.latency["batch"]
    growth = facts.latency["growth"]
    lengths = list(growth["MAE"])
    papers = {}
    for row in published.rows("table 6").values():
        papers |= {(row.name, key.measure): value for key, value in row.values.items()}
    body = []
    for form, (row, complexity, measure) in FORMS.items():
        paper = papers.get((row, measure), math.nan)
        ours = float(batch[form])
        cells = [number_cell(paper, _two_decimals), number_cell(ours, _two_decimals)]
        cells += [number_cell(paper / papers["MAE", _CPU], _multiple)]
        cells += [number_cell(ours / batch["MAE"], _multiple)]
        cells += [number_cell(growth[form].get(length), "{:.3f}".format) for length in lengths]
        body.append([form, complexity, *cells])
    head = ["form", "complexity", "paper, ms", "ours, ms", "paper, of MAE", "ours, of MAE"]
    head += [f"ms, n = {length}" for length in lengths]
    caption = (
        f"{PAPERS}table 6: masking {facts.latency['passages']} passages of "
        f"{facts.latency['length']} word-pieces; ours on one thread of another machine, "
        "so only ratios are comparable; then one passage of n"
    )
    return Table(name, caption, head, body, texts=["complexity"])


_two_decimals = "{:.2f}".format
_multiple = "{:.1f}\N{NO-BREAK SPACE}x".format


def section(facts: Facts) -> Section | None:
    """Show the claims judged on this run, and the tables on the paper's collections."""
    claims = claims_table(facts)
    beside = [
        grids.table(grid, name, facts) for name, grid in GRIDS.items() if _is_shown(grid, facts)
    ]
    tested = [row for row in claims.rows if row[1] != NOT_TESTED]
    if not tested and not beside:
        return None
    untested = {row[0]: row[-1] for row in claims.rows[len(tested) :]}
    counts = Counter(row[1] for row in claims.rows)
    tally = ", ".join(f"{counts[outcome]} {outcome}" for outcome in OUTCOMES if counts[outcome])
    values = {"tally": tally, "tested": replace(claims, rows=tested), "untested": untested}
    return Section("paper", values, [claims, *beside])


def _is_shown(grid: Grid, facts: Facts) -> bool:
    """Return whether the run has enough systems on the paper's collections."""
    columns = grid.columns(facts)
    return len(grid.systems(facts)) >= grid.least and any(column.key for column in columns)


def figure(name: str, facts: Facts) -> Figure:
    """Return the figure of an exhibit."""
    if name == "figure_negatives":
        return grids.figure(GRIDS[name], name, facts)
    if name == "figure_steps":
        panels = [over_steps(column) for column in GRIDS[name].columns(facts)]
        return stacked(name, GRIDS[name].caption, panels)
    masked = facts.masked_terms[shown_encoder(facts)]
    panels = [sampling(masked["example"])]
    if name == "figure_masked_terms":
        panels = masked_figures(masked)
    row = _ROWS[name]
    return stacked(name, f"{PAPERS}{row['source']}: {row['title']}", panels)
