"""Fusions and rerankers: their gain over the runs that they build on, and a fusion's weights."""

from __future__ import annotations

from cdmae import formats
from cdmae.report.columns import everywhere
from cdmae.report.facts import Facts
from cdmae.report.sections import Section, comparison_table, difference_figure
from cdmae.report.tables import Table


def section(facts: Facts) -> Section | None:
    """Compare fusions with BM25, or else their first part, and rerankers with their run."""
    parts = {name: facts.system(name).get("of", ()) for name in facts.systems}
    fusions = {name: facts.bm25 if facts.bm25 in of else of[0] for name, of in parts.items() if of}
    reordered = {name: facts.system(name).get("reranks", "") for name in facts.systems}
    pairs = [*fusions.items(), *((name, run) for name, run in reordered.items() if run)]
    tables, figures = [weights(facts)], []
    for name, reference in pairs:
        tables.append(comparison_table(f"combined-{name}", name, reference, everywhere(facts)))
        rows = [(column.head, name, reference, column) for column in everywhere(facts)]
        figures.append(difference_figure(f"combined-{name}", f"{name} minus {reference}", rows))
    values = {"facts": facts, "fusions": bool(fusions)}
    section = Section("combined", values, tables, figures)
    return section if section.tables else None


def weights(facts: Facts) -> Table:
    """Tabulate the parts of every fusion with their weights, and where the weights were chosen."""
    body = []
    for name, about in facts.fusions.items():
        parts = zip(about["systems"], about["weights"], strict=True)
        shares = ", ".join(f"{weight:g} × {part}" for part, weight in parts)
        chosen = "the config"
        if "on" in about:
            chosen = f"{formats.measure_name(about['measure'])} on {' '.join(about['on'])}"
        body.append([name, shares, about["method"].replace("_", " "), chosen])
    columns = ["fusion", "weights", "of", "chosen by"]
    return Table("fusions", "Weights of the fusions", columns, body, texts=columns[1:])
