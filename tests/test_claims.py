"""The paper's statements, scored: each of the four outcomes, and what is compared."""

import pandas as pd
import pytest
import synthetic_run
from test_exhibits import LATENCY, measured

from cdmae.report.facts import Facts, Target, Training
from cdmae.report.paper import claims

DEV = Target("pydocs", "dev")
MASKS = claims.CLAIMS[0]


def with_gain(gain, queries=200):
    """Facts in which importance-aware masks gain as much on every other query."""
    facts = measured(synthetic_run.config(), queries)
    moved = facts.values["mae-stage1", DEV, "RR@10"] + pd.Series([0.0, 2 * gain] * (queries // 2)).to_numpy()
    return Facts(facts.config, {**facts.values, ("cdmae-stage1", DEV, "RR@10"): moved}, **PARTS)


PARTS = {"masked_terms": {"cdmae": synthetic_run.masked_terms()}}


@pytest.mark.parametrize(
    ("gain", "outcome"),
    [(0.05, claims.TRUE), (-0.05, claims.FALSE), (0.0, claims.UNDECIDED), (0.002, claims.UNDECIDED)],
)
def test_a_claim_is_true_false_or_within_the_noise(gain, outcome):
    evidence = MASKS.score(with_gain(gain))
    assert evidence.outcome == outcome
    assert evidence.here.value == pytest.approx(100 * gain)
    assert evidence.compared == "cdmae-stage1 over mae-stage1: MRR@10, pydocs dev"


def test_what_the_config_does_not_have_is_not_tested():
    table = claims.claims_table(with_gain(0.05))
    outcomes = {row[0]: row[1] for row in table.rows}
    assert outcomes["A projection of the bottleneck helps"] == claims.NOT_TESTED
    assert outcomes["Hard negatives: stage 2 beats stage 1"] != claims.NOT_TESTED
    assert table.rows[-1][-1].startswith("needs ") and len(table.rows) == len(claims.CLAIMS)
    assert "10 not tested" in claims.tally(with_gain(0.05))


def test_the_papers_gains_are_those_of_its_tables():
    papers = {claim.statement: claim.paper().text for claim in claims.CLAIMS}
    assert papers["Hard negatives: stage 2 beats stage 1"] == "+1.4"
    assert papers["The method beats CoT-MAE after stage 1"] == "+2.0"
    assert papers["More hard negatives help, at the same number of passages a step"] == "+3.1"
    assert papers["Pre-training on a general corpus first helps"] == "+0.9"


def test_the_improvement_is_compared_between_the_first_stage_and_the_last():
    config = synthetic_run.config()
    chain = {"mae-stage2": ("cdmae-stage2", "mae-stage1"), "mae-stage3": ("cdmae-stage3", "mae-stage2")}
    for name, (like, negatives) in chain.items():
        config["systems"][name] = {**config["systems"][like], "encoder": "mae", "negatives": negatives}
    facts = measured(config)
    evidence = claims.diminishing(facts)
    means = [facts.value(name, DEV, "RR@10") for name in ("cdmae-stage1", "mae-stage1", "cdmae-stage3", "mae-stage3")]
    assert evidence.here.value == pytest.approx(100 * ((means[0] - means[1]) - (means[2] - means[3])))


def test_stop_words_expense_and_latency():
    facts = with_gain(0.0)
    assert claims.fewer_stop_words(facts).outcome == claims.TRUE
    assert claims.no_expense(facts) is None and claims.cheaper_masks(facts) is None

    def taking(**times):
        trainings = {name: Training(None, {"seconds": seconds}) for name, seconds in times.items()}
        return Facts(facts.config, facts.values, latency=LATENCY, encoders=trainings)

    slow = taking(mae=100.0, cdmae=130.0)
    assert claims.no_expense(slow).outcome == claims.FALSE
    assert claims.no_expense(taking(mae=10.0, cdmae=13.0)).outcome == claims.UNDECIDED
    assert claims.cheaper_masks(slow).outcome == claims.TRUE
