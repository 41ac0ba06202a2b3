"""Show the sparsity of sparse retrievers' vectors, and the cost of searching them."""

from __future__ import annotations

from cdmae.report.facts import Facts
from cdmae.report.sections import Section
from cdmae.report.tables import Table

COLUMNS = ("entries a query", "entries a passage", "FLOPS", "index, MB")


def section(facts: Facts) -> Section | None:
    """Tabulate the sparsity of every sparse retriever on every target."""
    body = []
    for name, rows in facts.sparsity.items():
        for row in rows:
            numbers = [
                f"{row['query_entries']:.1f}",
                f"{row['passage_entries']:.1f}",
                f"{row['flops']:.2f}",
                f"{row['megabytes']:.1f}",
            ]
            body.append([name, f"{row['collection']} {row['split']}", *numbers])
    if not body:
        return None
    columns = ["system", "measured on", *COLUMNS]
    table = Table("sparsity", "Sparsity of the vectors", columns, body, heads=2)
    return Section("sparse", {"facts": facts}, [table], [])
