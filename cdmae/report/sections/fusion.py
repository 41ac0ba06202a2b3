"""Fusions: what each of their parts counts, and what they are worth compared with BM25 or their first part."""

from __future__ import annotations

from cdmae import formats
from cdmae.report.columns import everywhere
from cdmae.report.facts import Facts
from cdmae.report.sections import Section, comparison_table, difference_figure
from cdmae.report.tables import Cell, Table


def section(facts: Facts) -> Section | None:
    """Show the weights, and a table of every fusion on every collection."""
    fusions = [name for name in facts.systems if facts.system(name).get("kind") == "fusion"]
    if not fusions:
        return None
    tables, figures = [], []
    for name in fusions:
        reference = reference_of(facts, name)
        tables.append(comparison_table(f"fusion-{name}", name, reference, everywhere(facts)))
        pairs = [(column.head, name, reference, column) for column in everywhere(facts)]
        figures.append(difference_figure(f"fusion-{name}", f"{name} minus {reference}", pairs))
    return Section("fusion", {"facts": facts}, [weights(facts), *tables], figures)


def reference_of(facts: Facts, name: str) -> str:
    """Return the system that a fusion is compared with: BM25 where it is a part of it, else its first part."""
    parts = list(facts.system(name)["of"])
    return facts.bm25 if facts.bm25 in parts else parts[0]


def weights(facts: Facts) -> Table:
    """Tabulate the parts of every fusion with their weights, and where the weights were chosen."""
    body = []
    for name, about in facts.fusions.items():
        parts = zip(about["systems"], about["weights"], strict=True)
        shares = ", ".join(f"{weight:g} × {part}" for part, weight in parts)
        chosen = "the config"
        if "on" in about:
            chosen = f"{formats.measure_name(about['measure'])} on {' '.join(about['on'])}"
        body.append([name, Cell(shares), about["method"].replace("_", " "), chosen])
    columns = ["fusion", "weights", "of", "chosen by"]
    return Table("fusions", "Weights of the fusions", columns, body, texts=columns[1:])
