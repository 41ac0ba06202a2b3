"""Show the gain of fusions and rerankers over their input runs, and the fusions' weights."""

from __future__ import annotations

from cdmae import formats
from cdmae.report.columns import everywhere
from cdmae.report.comparisons import is_compared
from cdmae.report.facts import Facts
from cdmae.report.sections import Section, comparison_table, difference_figure
from cdmae.report.tables import Table


def section(facts: Facts) -> Section | None:
    """Compare fusions with BM25 and with their parts, and rerankers with their input run.

    Only comparisons that the config names are shown.
    """
    tables = [weights(facts)]
    figures = []
    names: set[str] = set()
    for name, reference in combinations(facts):
        file = f"combined-{name}"
        if file in names:
            file += f"-{reference}"
        names.add(file)
        columns = everywhere(facts)
        tables.append(comparison_table(file, name, reference, columns))
        rows = [(column.head, name, reference, column) for column in columns]
        figures.append(difference_figure(file, f"{name} minus {reference}", rows))
    fusions = any(facts.system(name).get("of") for name in facts.systems)
    section = Section("combined", {"facts": facts, "fusions": fusions}, tables, figures)
    return section if section.tables else None


def combinations(facts: Facts) -> list[tuple[str, str]]:
    """List the compared pairs: a fusion with BM25 or a part, a reranker with its input run."""
    entries = {name: facts.system(name) for name in facts.systems}
    pairs = [
        (name, part)
        for name, entry in entries.items()
        if entry.get("of")
        for part in dict.fromkeys([facts.bm25, *entry["of"]])
    ]
    pairs += [(name, entry["reranks"]) for name, entry in entries.items() if entry.get("reranks")]
    return [pair for pair in pairs if is_compared(facts, *pair)]


def weights(facts: Facts) -> Table:
    """Tabulate each fusion's parts, their weights, and the queries on which these were chosen."""
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
