"""Queries one by one: which moved most between the two maskings, which stayed hardest, and what was ranked first."""

from __future__ import annotations

from cdmae import formats
from cdmae.report.facts import Facts
from cdmae.report.insight import Case, cases, compared
from cdmae.report.sections import Section, main_target
from cdmae.report.tables import Cell, Table

LETTERS = 220  # of a passage


def section(facts: Facts) -> Section | None:
    """Show a folded list of each kind."""
    by_kind, pair = cases(facts), compared(facts)
    if not pair or not any(by_kind.values()):
        return None
    values = {
        "facts": facts, "target": main_target(facts), "cases": by_kind, "before": pair[0], "after": pair[1],
        "cut": cut, "rank": shown_rank,
    }  # fmt: skip
    return Section("queries", values, [_table(by_kind, pair)])


def cut(text: str) -> str:
    """Cut a passage after a word."""
    return text if len(text) <= LETTERS else text[:LETTERS].rsplit(" ", 1)[0] + " …"


def shown_rank(rank: int) -> str:
    """Show the rank of a passage, 0 where it was not found."""
    return formats.count(rank) if rank else "not found"


def _table(by_kind: dict[str, list[Case]], pair: tuple[str, str]) -> Table:
    body = [
        [kind, case.query, *(Cell(shown_rank(rank), rank or None) for rank in (case.before, case.after)),
         *map(cut, (case.relevant, case.first_before, case.first_after))]
        for kind, group in by_kind.items()
        for case in group
    ]  # fmt: skip
    before, after = pair
    head = ["kind", "query", f"rank, {before}", f"rank, {after}", "judged", f"first, {before}", f"first, {after}"]
    return Table("queries", "Queries side by side", head, body, heads=2, texts=["judged", *head[-2:]])
