"""The paper's statements, scored: each of the four outcomes, and what is compared."""

import dataclasses

import numpy as np
import pytest
import synthetic_run
from test_exhibits import LATENCY, measured

from cdmae.report.facts import Target
from cdmae.report.paper import claims, exhibits
from cdmae.report.records import Training

DEV = Target("pydocs", "dev")
BY_STATEMENT = {claim.statement: claim for claim in claims.claims()}


def with_gain(gain, queries=200, **parts):
    """Facts in which importance-aware masks gain as much on every other query."""
    facts = measured(synthetic_run.config(), queries)
    moved = facts.values["mae-stage1", DEV, "RR@10"] + np.array(
        [[0.0], [2 * gain]] * (queries // 2)
    )
    return dataclasses.replace(
        facts, values={**facts.values, ("cdmae-stage1", DEV, "RR@10"): moved}, **parts
    )


@pytest.mark.parametrize(
    ("gain", "outcome"),
    [
        (0.05, "true (one training)"),
        (-0.05, "false (one training)"),
        (0.0, claims.UNDECIDED),
    ],
)
def test_a_claim_is_true_false_or_undecided(gain, outcome):
    evidence = claims.score(claims.claims()[0], with_gain(gain))
    assert evidence.outcome == outcome
    assert evidence.here.value == pytest.approx(100 * gain)
    assert evidence.compared == "cdmae-stage1 over mae-stage1: MRR@10, pydocs dev"


def test_what_the_config_does_not_have_is_not_tested():
    facts = with_gain(0.05, masked_terms={"cdmae": synthetic_run.masked_terms()})
    table = claims.claims_table(facts)
    outcomes = {row[0]: row[1] for row in table.rows}
    assert outcomes["A projection of the bottleneck helps"] == claims.NOT_TESTED
    assert outcomes["Hard negatives: stage 2 beats stage 1"] != claims.NOT_TESTED
    assert table.rows[-1][-1].startswith("needs ") and len(table.rows) == len(BY_STATEMENT)
    assert "10 not tested" in str(exhibits.section(facts).text)


def test_what_later_stages_add_is_told_by_the_encoder_that_has_them():
    config = synthetic_run.config()
    for stage, negatives in (("stage2", "mae-stage1"), ("stage3", "mae-stage2")):
        config["systems"][f"mae-{stage}"] = {
            **config["systems"].pop(f"cdmae-{stage}"), "encoder": "mae", "negatives": negatives,
        }  # fmt: skip
    rows = claims.claims_table(measured(config)).rows
    compared = {row[0]: row[-1] for row in rows}
    assert compared["Hard negatives: stage 2 beats stage 1"].startswith(
        "mae-stage2 over mae-stage1"
    )
    assert compared["Distillation: stage 3 beats stage 2"].startswith("mae-stage3 over mae-stage2")
    assert compared["The dense retriever beats BM25"].startswith("mae-stage3 over bm25")


@pytest.mark.parametrize(
    ("statement", "number"),
    [
        ("Pre-training on the collection brings substantial improvements", "\N{EN DASH}"),
        ("Hard negatives: stage 2 beats stage 1", "+1.4"),
        ("The method beats CoT-MAE after stage 1", "+2.0"),
        (
            "Importance-aware decoder masks beat uniform ones on collections without training (paper: over RetroMAE)",
            "+2.0",
        ),
        ("More hard negatives help, at the same number of passages a step", "+3.1"),
        ("Pre-training on a general corpus first helps", "+0.9"),
        (
            "The improvement diminishes with distillation (paper: over RetroMAE)",
            "1.1 \N{RIGHTWARDS ARROW} 0.1",
        ),
    ],
)
def test_the_papers_gains_are_those_of_its_tables(statement, number):
    assert claims.papers_number(BY_STATEMENT[statement]).text == number


def test_every_claim_is_decided_by_a_function_or_a_pair_and_shows_the_papers_number():
    with_all = {
        "masks",
        "pre-training",
        "stage 2",
        "stage 3",
        "BM25",
        "projection",
        "corpus",
        "group",
    }
    methods = {"RetroMAE", "SimLM", "CoT-MAE", "coCondenser"}
    assert {
        claim.decided_by for claim in claims.claims()
    } == with_all | methods | claims.JUDGES.keys()
    [claim] = [claim for claim in claims.claims() if claim.decided_by == "fewer_stop_words"]
    assert dataclasses.astuple(claims.papers_number(claim))[:2] == ("40\N{NO-BREAK SPACE}%", 0.4)


def test_the_improvement_is_compared_between_the_first_stage_and_the_last():
    config = synthetic_run.config()
    chain = {
        "mae-stage2": ("cdmae-stage2", "mae-stage1"),
        "mae-stage3": ("cdmae-stage3", "mae-stage2"),
    }
    for name, (like, negatives) in chain.items():
        config["systems"][name] = {
            **config["systems"][like],
            "encoder": "mae",
            "negatives": negatives,
        }
    config["report"]["compare"]["mae-stage3"] = ["cdmae-stage3"]
    facts = measured(config)
    evidence = claims.diminishing(facts)
    means = [
        facts.value(name, DEV, "RR@10")
        for name in ("cdmae-stage1", "mae-stage1", "cdmae-stage3", "mae-stage3")
    ]
    assert evidence.here.value == pytest.approx(
        100 * ((means[0] - means[1]) - (means[2] - means[3]))
    )


@pytest.mark.parametrize(
    ("mae", "cdmae", "outcome"),
    [
        (100, 130, claims.FALSE),
        (10, 13, claims.UNDECIDED),
        (100, 105, claims.TRUE),
        (100, 120, claims.UNDECIDED),
    ],
)
def test_the_pretraining_costs_more_from_a_quarter_on(mae, cdmae, outcome):
    trainings = {
        "mae": Training(about={"seconds": mae}),
        "cdmae": Training(about={"seconds": cdmae}),
    }
    assert claims.no_expense(with_gain(0.0, encoders=trainings)).outcome == outcome


def test_stop_words_expense_and_latency_without_and_with_numbers():
    plain = with_gain(0.0)
    for judge in (claims.fewer_stop_words, claims.no_expense, claims.cheaper_masks):
        assert judge(plain) is None
    facts = with_gain(0.0, masked_terms={"cdmae": synthetic_run.masked_terms()}, latency=LATENCY)
    assert (
        claims.fewer_stop_words(facts).outcome == claims.cheaper_masks(facts).outcome == claims.TRUE
    )
