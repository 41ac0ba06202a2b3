"""Against the paper: its claims scored on what was measured here, and its tables where the same queries were."""

from __future__ import annotations

from dataclasses import replace

from cdmae.report.facts import Facts
from cdmae.report.paper.claims import NOT_TESTED, claims_table, tally
from cdmae.report.paper.exhibits import beside_the_papers
from cdmae.report.sections import Section


def section(facts: Facts) -> Section | None:
    """Show the claims, and the tables that there are numbers for."""
    claims, beside = claims_table(facts), beside_the_papers(facts)
    tested = [row for row in claims.rows if row[1] != NOT_TESTED]
    if not tested and not beside:
        return None
    untested = {row[0]: row[-1] for row in claims.rows[len(tested) :]}
    values = {"tally": tally(facts), "tested": replace(claims, rows=tested), "untested": untested}
    return Section("paper", values, [claims, *beside])
