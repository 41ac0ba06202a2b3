"""Queries one by one: which moved most between the two maskings, which stayed hardest, and what was ranked first."""

from __future__ import annotations

from cdmae import formats
from cdmae.report.facts import Facts
from cdmae.report.insight import Case, cases, compared
from cdmae.report.markup import Markup, fill, tag
from cdmae.report.sections import Section, main_target, paragraphs
from cdmae.report.tables import Cell, Table

KINDS = {"improved": "Most improved", "worsened": "Most worsened", "hardest": "Hardest for both"}
LETTERS = 220  # of a passage


def section(facts: Facts) -> Section | None:
    """A folded list of each kind."""
    found, pair = cases(facts), compared(facts)
    if not pair or not any(found.values()):
        return None
    lead = fill(
        "The same queries of {target} under {before} and under {after}: the rank of the judged passage, and what stood "
        "first. The extremes of many queries, so nothing to generalise from; to see what the numbers are made of.",
        target=str(main_target(facts)), before=tag("strong", pair[0]), after=tag("strong", pair[1]),
    )  # fmt: skip
    if facts.repeated:
        lead = Markup(f"{lead} The runs are those of seed {facts.seed}.")
    folded = [
        tag("details", tag("summary", f"{KINDS[kind]}: {_glimpse(each)}"), [_card(case, pair) for case in each])
        for kind, each in found.items()
        if each
    ]
    table = _table(found, pair)
    return Section("queries", "Queries side by side", "Queries", Markup(paragraphs(lead) + "".join(folded)), [table])


def _glimpse(found: list[Case]) -> str:
    if not any(case.before or case.after for case in found):
        return "found by neither"
    return ", ".join(f"{_rank(case.before)} \N{RIGHTWARDS ARROW} {_rank(case.after)}" for case in found)


def _card(case: Case, pair: tuple[str, str]) -> Markup:
    """A query with what both systems ranked first."""
    sides = zip(pair, (case.before, case.after), (case.first_before, case.first_after), strict=True)
    entries = [
        (f"{name}: rank {_rank(rank)}", "this one stood first" if first == case.relevant else first)
        for name, rank, first in sides
    ]
    cells = [("judged", case.relevant), *entries]
    parts = [tag("div", tag("dt", name), tag("dd", _cut(text))) for name, text in cells]
    return tag("div", tag("h4", case.query), tag("dl", parts, class_="case"))


def _cut(text: str) -> str:
    return text if len(text) <= LETTERS else text[:LETTERS].rsplit(" ", 1)[0] + " \N{HORIZONTAL ELLIPSIS}"


def _rank(rank: int) -> str:
    return formats.count(rank) if rank else "not found"


def _table(found: dict[str, list[Case]], pair: tuple[str, str]) -> Table:
    body = [
        [kind, case.query, Cell(_rank(case.before), case.before or None), Cell(_rank(case.after), case.after or None),
         _cut(case.relevant), _cut(case.first_before), _cut(case.first_after)]
        for kind, each in found.items()
        for case in each
    ]  # fmt: skip
    before, after = pair
    head = ["kind", "query", f"rank, {before}", f"rank, {after}", "judged", f"first, {before}", f"first, {after}"]
    return Table("queries", "Queries side by side", head, body, heads=2, texts=["judged", *head[-2:]])
