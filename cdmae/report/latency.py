"""The paper's table 6: what masking a batch costs, as the job `latency` measured it here."""

from __future__ import annotations

from cdmae import formats
from cdmae.report import published
from cdmae.report.facts import Facts
from cdmae.report.tables import Cell, Table

# a measured form: the paper's row that it stands for, and whether the paper took it on a GPU
FORMS = {
    "MAE": ("MAE", False),
    "RetroMAE, in Python": ("RetroMAE", False),
    "RetroMAE, ours": ("RetroMAE", False),
    "SimLM, masks": ("SimLM", False),
    "SimLM, generator": ("SimLM", True),
    "CDMAE": (published.OURS, False),
}


def latency_table(facts: Facts, name: str) -> Table:
    """A row per form: the paper's milliseconds and ours, both also as multiples of MAE's; one passage of n."""
    found, growth = facts.latency["batch"], facts.latency["growth"]
    lengths = list(growth["MAE"])
    body = []
    for form, (row, gpu) in FORMS.items():
        complexity, *both = published.LATENCY[row]
        paper, base = both[gpu], published.LATENCY["MAE"][1]
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
