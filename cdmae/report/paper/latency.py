"""Show the paper's table 6: what masking a batch costs, as the job `latency` measured it here."""

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
    """Make a row per form: the paper's milliseconds and ours, both also as multiples of MAE's; one passage of n."""
    batch, growth = facts.latency["batch"], facts.latency["growth"]
    lengths = list(growth["MAE"])
    rows = published.rows("table 6").values()
    papers = {(row.name, key.measure): value for row in rows for key, value in row.values.items()}
    base = papers["MAE", "ms on a CPU"]
    body = []
    for form, (row, complexity, measure) in FORMS.items():
        paper = papers.get((row, measure))
        times = [_number(paper, "{:.2f}"), _number(batch[form], "{:.2f}")]
        ratio = "{:.1f}\N{NO-BREAK SPACE}x"
        ratios = [_number(paper and paper / base, ratio), _number(batch[form] / batch["MAE"], ratio)]
        passages = [_number(growth[form].get(length), "{:.3f}") for length in lengths]
        body.append([form, complexity, *times, *ratios, *passages])
    head = ["form", "complexity", "paper, ms", "ours, ms", "paper, of MAE", "ours, of MAE"]
    caption = (
        f"The paper\N{RIGHT SINGLE QUOTATION MARK}s table 6: masking {facts.latency['passages']} passages of "
        f"{facts.latency['length']} word-pieces; ours on one thread of another machine, so ratios compare; then "
        "one passage of n"
    )
    return Table(name, caption, [*head, *(f"ms, n = {length}" for length in lengths)], body, texts=["complexity"])


def _number(value: float | None, form: str) -> Cell:
    return Cell(formats.NONE) if value is None else Cell(form.format(value), float(value))
