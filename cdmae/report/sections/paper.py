"""Against the paper: its claims scored on what was found here, and its tables where the same queries were measured."""

from __future__ import annotations

from dataclasses import replace

from cdmae.report.facts import Facts
from cdmae.report.markup import Markup, tag
from cdmae.report.paper.claims import NOT_TESTED, claims_table, tally
from cdmae.report.paper.exhibits import beside_the_papers
from cdmae.report.sections import Section, paragraphs


def section(facts: Facts) -> Section | None:
    """The claims, and the tables that there are numbers for."""
    scored, beside = claims_table(facts), beside_the_papers(facts)
    tested = [row for row in scored.rows if row[1] != NOT_TESTED]
    if not tested and not beside:
        return None
    lead = (
        f"Its statements, scored on this run: {tally(facts)}. True is what a paired t-test and the noise of one seed "
        "leave no doubt about, false is the opposite, undecided what is within the noise."
    )
    unlike = None if beside else (
        "Nothing of the paper's own collections was measured here, so the heights do not compare; the directions may."
    )  # fmt: skip
    shown = [replace(scored, rows=tested).html(), *(table.html() for table in beside[:1])]
    if len(tested) < len(scored.rows):
        rest = [tag("li", f"{row[0]}: {row[-1]}.") for row in scored.rows[len(tested) :]]
        shown.insert(1, tag("details", tag("summary", "Claims that this run does not test"), tag("ul", rest)))
    if beside[1:]:
        folded = [table.html() for table in beside[1:]]
        shown.append(tag("details", tag("summary", "The paper's other tables, its numbers and ours"), folded))
    body = Markup("".join([paragraphs(lead, unlike), *shown]))
    return Section("paper", "Against the paper", "Against the paper", body, tables=[scored, *beside])
