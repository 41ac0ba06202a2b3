"""The pairs that a config compares, and the questions that they answer."""

import pytest
import synthetic_run
from synthetic_run import with_system

from cdmae.config.schema import Config
from cdmae.fields import parse
from cdmae.report import comparisons
from cdmae.report.comparisons import BASELINE, QUESTION
from cdmae.report.facts import Facts


def run_of(config, folder):
    """The facts of a run with few queries."""
    return synthetic_run.make(folder, config, targets={"pydocs": {"dev": 3}}, trained=False)


def questions(config, folder):
    """The kind and the question of every pair that a config compares."""
    run = run_of(config, folder)
    return {tuple(pair): comparisons.question(run, pair) for pair in comparisons.compared(run)}


def test_each_pair_of_the_default_has_its_question(tmp_path):
    found = questions(synthetic_run.config(), tmp_path)
    expected = {
        ("cdmae-stage1", "mae-stage1"): (QUESTION, "masks: importance instead of uniform"),
        ("cdmae-stage1", "none-stage1"): (QUESTION, "pre-training"),
        ("cdmae-stage2", "cdmae-stage1"): (QUESTION, "next stage: hard negatives"),
        ("cdmae-stage3", "cdmae-stage2"): (QUESTION, "next stage: hard negatives and a teacher"),
        ("cdmae-reranker", "cdmae-stage2"): (QUESTION, "reranking"),
        ("fused", "bm25"): (QUESTION, "fusion"),
        ("none-stage1", "mae-stage1"): (QUESTION, "no pre-training"),
        ("cdmae-stage3", "bm25"): (BASELINE, "against BM25"),
        ("fused", "mae-stage1"): (BASELINE, "another kind of system"),
    }
    assert expected.items() <= found.items()
    kind, words = found["cdmae-stage2", "mae-stage1"]
    assert kind == BASELINE and words.startswith("decoder masking, negatives")


@pytest.mark.parametrize(
    ("changes", "question"),
    [
        ({"encoder": {"sigma": 4.0}}, "sigma: 1 → 4"),
        ({"encoder": {"projection": False}}, "projection: on → off"),
        ({"encoder": {"seed": 43}}, "seed: 42 → 43"),
        ({"encoder": {"decoder_masking": "idf"}}, "decoder masking: importance → idf"),
        ({"encoder": {"steps": 0, "epochs": 3}}, "steps: 1400 → 0"),
        ({"stage": {"group": 16, "queries": 16}}, "group, queries"),
        ({"negatives": "fused"}, "negatives: bm25 → fused"),
    ],
)
def test_a_pair_is_named_by_the_settings_that_it_varies(tmp_path, changes, question):
    config = with_system(synthetic_run.config(), "other", **changes)
    assert questions(config, tmp_path)["other", "cdmae-stage1"] == (QUESTION, question)


def test_another_objective_is_named_without_its_settings(tmp_path):
    config = synthetic_run.objectives(seeds=[42])
    config["report"]["compare"] = {"dupmae-stage1": ["mae-stage1"]}
    found = questions(config, tmp_path)["dupmae-stage1", "mae-stage1"]
    assert found == (QUESTION, "objective: mae → dupmae")


def test_a_published_model_and_what_was_trained_from_it_differ_by_training(tmp_path):
    config = synthetic_run.config("bm25", "none-stage1")
    config["starts"]["tiny"] = {"checkpoint": "theirs/model"}
    config["systems"]["theirs"] = {"kind": "external", "model": "theirs/model"}
    config["report"]["compare"] = {"none-stage1": ["theirs"]}
    assert questions(config, tmp_path)["none-stage1", "theirs"] == (QUESTION, "training")


@pytest.mark.parametrize(
    ("changes", "compare", "planned"),
    [
        ({}, {"mae-stage1": ["cdmae-stage1"]}, ("cdmae-stage1", "mae-stage1")),
        ({}, {"span": ["mae-stage1"]}, ("span", "mae-stage1")),
        ({"projection": False}, {}, None),
        ({"decoder_masking": "idf"}, {"span": ["cdmae-stage1"]}, None),
    ],
    ids=["named in either direction", "the first named", "in more", "not uniform"],
)
def test_the_planned_pair_differs_in_the_masking_alone(tmp_path, changes, compare, planned):
    config = with_system(synthetic_run.config(), "span", encoder={"decoder_masking": "span"})
    config["encoders"]["mae"] |= changes
    config["report"]["compare"] = compare
    assert comparisons.planned(run_of(config, tmp_path)) == planned


def test_chains_with_negatives_of_their_own_are_a_pair_of_masks(tmp_path):
    config = synthetic_run.config()
    like = config["systems"]["cdmae-stage2"]
    config["systems"]["mae-stage2"] = {**like, "encoder": "mae", "negatives": "mae-stage1"}
    config["evaluation"]["baseline"] = "bm25"
    config["report"]["compare"] = {"mae-stage2": ["cdmae-stage2"]}
    assert comparisons.planned(run_of(config, tmp_path)) == ("cdmae-stage2", "mae-stage2")


def test_named_pairs_come_first_then_the_baseline_then_every_system(tmp_path):
    config = synthetic_run.config()
    config["report"]["compare"] = {"fused": ["cdmae-stage3"], "*": ["bm25"]}
    run = run_of(config, tmp_path)
    listed = comparisons.compared(run)
    assert listed[0] == ("fused", "cdmae-stage3")
    others = [name for name in run.systems if name != "mae-stage1"]
    expected = [(name, "mae-stage1") for name in others]
    expected += [(name, "bm25") for name in others if name != "bm25"]
    assert listed[1:] == expected


def test_without_any_named_comparison_all_are_compared_with_bm25_or_the_first(tmp_path):
    config = synthetic_run.config("none-stage1", "bm25", "fused", "cdmae-stage3")
    config["evaluation"]["baseline"] = ""
    run = run_of(config, tmp_path)
    assert {pair.reference for pair in comparisons.compared(run)} == {"bm25"}
    del config["systems"]["bm25"]
    config["results"] = str(tmp_path)
    without = Facts(parse(Config, config))
    assert {pair.reference for pair in comparisons.compared(without)} == {"none-stage1"}
