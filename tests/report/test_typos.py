"""The section on misspelt queries."""

import pandas as pd
import pytest
import synthetic_run

from cdmae.evaluation.significance import holm, paired
from cdmae.report.facts import Facts, Target
from cdmae.report.sections import typos

CLEAN = Target("pydocs", "test")
TYPOS = Target("pydocs", "test_typos")
VALUES = {  # by system: for each query, as it is and misspelt
    "bm25": ([1.0, 0.5, 0.0, 1.0, 0.2], [0.5, 0.5, 0.0, 0.0, 0.1]),
    "mae-stage1": ([0.3, 0.2, 0.1, 0.0, 0.2], [0.3, 0.1, 0.1, 0.0, 0.1]),
}


@pytest.fixture
def facts():
    """Two systems on five queries; the misspelt ones are in another order."""
    config = synthetic_run.config()
    config["evaluation"] = {
        "collections": {"pydocs": ["test", "test_typos"]},
        "measures": ["RR@10"],
    }
    ids = ["a", "b", "c", "d", "e"]
    values = {}
    for name, (clean, misspelt) in VALUES.items():
        values[name, CLEAN, "RR@10"] = pd.DataFrame({"42": clean}, ids)
        values[name, TYPOS, "RR@10"] = pd.DataFrame({"42": misspelt}, ids).iloc[::-1]
    return Facts(config, values)


def test_each_system_is_compared_with_itself_query_by_query(facts):
    gaps = typos.losses(facts, CLEAN, TYPOS, "RR@10")
    raw = {name: paired(misspelt, clean) for name, (clean, misspelt) in VALUES.items()}
    corrected = dict(zip(raw, holm([gap.p for gap in raw.values()]), strict=True))
    for name, gap in gaps.items():
        assert gap.difference == pytest.approx(raw[name].difference)
        assert gap.p == pytest.approx(corrected[name])
    (table,) = typos.section(facts).tables
    assert [row[0] for row in table.rows] == [*VALUES]
    assert "Misspelt queries" in str(typos.section(facts).text.title)


def test_without_misspelt_queries_there_is_no_section(facts):
    facts.config["evaluation"]["collections"]["pydocs"] = ["test"]
    assert typos.section(Facts(facts.config, facts.values)) is None
