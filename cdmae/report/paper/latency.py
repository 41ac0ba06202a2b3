"""The paper's table 6: what masking a batch costs, as the job `latency` measured it here."""

from __future__ import annotations

from cdmae import formats
from cdmae.report.facts import Facts
from cdmae.report.paper import published
from cdmae.report.tables import Cell, Table

# a measured form: the paper's row that it stands for, its complexity, and what the paper measured it on
FORMS = {
    "MAE": ("MAE", "O(n)", "ms on a CPU"),
    "RetroMAE, in Python": ("RetroMAE", "O(n\N{SUPERSCRIPT TWO})", "ms on a CPU"),
    "RetroMAE, ours": ("RetroMAE", "O(n\N{SUPERSCRIPT TWO})", "ms on a CPU"),
    "SimLM, masks": ("SimLM", "O(n\N{SUPERSCRIPT TWO})", "ms on a CPU"),
    "SimLM, generator": ("SimLM", "O(n\N{SUPERSCRIPT TWO})", "ms on a V100"),
    "CDMAE": (published.OURS, "O(n log n)", "ms on a CPU"),
}


def latency_table(facts: Facts, name: str) -> Table:
    """A row per form: the paper's milliseconds and ours, both also as multiples of MAE's; one passage of n."""
    found, growth = facts.latency["batch"], facts.latency["growth"]
    lengths = list(growth["MAE"])
    body = []
    rows = published.rows("table 6").values()
    measured = {(row.name, key.measure): value for row in rows for key, value in row.values.items()}
    base = measured["MAE", "ms on a CPU"]
    for form, (row, complexity, measure) in FORMS.items():
        paper = measured.get((row, measure))
        body.append(
            [
                form,
                complexity,
                _milliseconds(paper),
                _milliseconds(found[form]),
                _times(paper and paper / base),
                _times(found[form] / found["MAE"]),
                *(_milliseconds(growth[form].get(length), 3) for length in lengths),
            ]
        )
    head = ["form", "complexity", "paper, ms", "ours, ms", "paper, of MAE", "ours, of MAE"]
    caption = (
        f"The paper\N{RIGHT SINGLE QUOTATION MARK}s table 6: masking {facts.latency['passages']} passages of "
        f"{facts.latency['length']} word-pieces; ours on one thread of another machine, so ratios compare; then "
        "one passage of n"
    )
    return Table(name, caption, [*head, *(f"ms, n = {length}" for length in lengths)], body, texts=["complexity"])


def _milliseconds(value: float | None, digits: int = 2) -> Cell:
    return Cell(formats.NONE) if value is None else Cell(f"{value:.{digits}f}", float(value))


def _times(ratio: float | None) -> Cell:
    return Cell(formats.NONE) if ratio is None else Cell(f"{ratio:.1f}\N{NO-BREAK SPACE}x", float(ratio))
