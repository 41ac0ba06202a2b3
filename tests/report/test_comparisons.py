"""The pairs that a config compares, the questions that they answer, and where mistakes are told."""

from pathlib import Path

import pandas as pd
import pytest
import synthetic_run
from synthetic_run import with_system

from cdmae.config.load import load
from cdmae.config.reading import gather
from cdmae.errors import InputError
from cdmae.report import comparisons
from cdmae.report.comparisons import NAMED, ONE_THING
from cdmae.report.facts import Facts, Target
from cdmae.report.recipes import differences

DEV = Target("pydocs", "dev")
DEFAULT = Path(__file__).resolve().parents[2] / "config" / "config.yaml"


def run_of(config):
    """Facts with the measures that are needed to be listed."""
    frame = pd.DataFrame([0.1, 0.2], ["a", "b"])
    return Facts(config, {(name, DEV, "RR@10"): frame for name in config["systems"]})


def questions(config):
    """The kind and the question of every pair that a config compares."""
    run = run_of(config)
    return {tuple(pair): comparisons.question(run, pair) for pair in comparisons.compared(run)}


def maskings(config):
    """The pairs of masks that a config compares, with the masking that is not uniform."""
    found = comparisons.masking_pairs(run_of(config))
    return {tuple(pair): change.masking for pair, change in found.items()}


def test_each_pair_of_the_default_has_its_question():
    found = questions(synthetic_run.config())
    expected = {
        ("cdmae-stage1", "mae-stage1"): (ONE_THING, "masks: importance instead of uniform"),
        ("cdmae-stage1", "none-stage1"): (ONE_THING, "pre-training"),
        ("cdmae-stage2", "cdmae-stage1"): (ONE_THING, "next stage: hard negatives"),
        ("cdmae-stage3", "cdmae-stage2"): (ONE_THING, "next stage: hard negatives and a teacher"),
        ("cdmae-reranker", "cdmae-stage2"): (ONE_THING, "reranking"),
        ("fused", "bm25"): (ONE_THING, "fusion"),
        ("none-stage1", "mae-stage1"): (ONE_THING, "no pre-training"),
        ("cdmae-stage3", "bm25"): (NAMED, "against BM25"),
        ("fused", "mae-stage1"): (NAMED, "another kind of system"),
    }
    assert expected.items() <= found.items()
    kind, words = found["cdmae-stage2", "mae-stage1"]
    assert kind == NAMED and words.startswith("decoder masking, negatives")


@pytest.mark.parametrize(
    ("changes", "question"),
    [
        ({"encoder": {"sigma": 4.0}}, "sigma: 1 → 4"),
        ({"encoder": {"projection": False}}, "projection: on → off"),
        ({"encoder": {"steps": 0, "epochs": 5.0}}, "steps: 1400 → 0"),
        ({"encoder": {"seed": 43}}, "seed: 42 → 43"),
        ({"encoder": {"decoder_masking": "idf"}}, "decoder masking: importance → idf"),
        ({"stage": {"group": 16, "queries": 16}}, "group: 2 → 16"),
        ({"negatives": "fused"}, "negatives: bm25 → fused"),
    ],
)
def test_a_pair_that_varies_one_setting_is_named_by_it(changes, question):
    config = with_system(synthetic_run.config(), "other", **changes)
    assert questions(config)["other", "cdmae-stage1"] == (ONE_THING, question)


@pytest.mark.parametrize(
    ("changes", "pairs"),
    [
        ({}, {("cdmae-stage1", "mae-stage1"): "importance"}),
        ({"projection": False}, {}),
        ({"decoder_masking": "idf"}, {}),
    ],
    ids=["in the masking alone", "in more", "another mask than a uniform one"],
)
def test_pairs_of_masks_differ_in_the_masking_alone(changes, pairs):
    config = synthetic_run.config()
    config["encoders"]["mae"] |= changes
    assert maskings(config) == pairs


def test_every_masking_of_the_config_is_compared_with_uniform_ones_importance_first():
    config = synthetic_run.config()
    with_system(config, "span", encoder={"decoder_masking": "span"})
    config["report"]["compare"] = {"mae-stage1": ["cdmae-stage1"], "span": ["mae-stage1"]}
    found = maskings(config)
    expected = {("cdmae-stage1", "mae-stage1"): "importance", ("span", "mae-stage1"): "span"}
    assert list(found.items()) == list(expected.items())


def test_chains_with_negatives_of_their_own_are_a_pair_of_masks():
    config = synthetic_run.config()
    like = config["systems"]["cdmae-stage2"]
    config["systems"]["mae-stage2"] = {**like, "encoder": "mae", "negatives": "mae-stage1"}
    config["report"]["compare"]["mae-stage2"] = ["mae-stage1", "cdmae-stage2"]
    pairs = [("cdmae-stage1", "mae-stage1"), ("cdmae-stage2", "mae-stage2")]
    assert list(maskings(config)) == pairs


def test_steps_in_the_place_of_epochs_are_one_change():
    config = with_system(synthetic_run.config(), "passes", encoder={"steps": 0, "epochs": 5.0})
    assert differences(run_of(config), "cdmae-stage1", "passes") == {"encoder.steps": (1400, 0)}


def test_named_pairs_come_first_then_the_baseline_then_every_system():
    config = synthetic_run.config()
    config["report"]["compare"] = {"fused": ["cdmae-stage3"], "*": ["bm25"]}
    run = run_of(config)
    listed = comparisons.compared(run)
    assert listed[0] == ("fused", "cdmae-stage3")
    others = [name for name in run.systems if name != "mae-stage1"]
    assert [pair.system for pair in listed[1:8]] == others
    assert {pair.reference for pair in listed[1:8]} == {"mae-stage1"}
    assert listed[8:] == [(name, "bm25") for name in others if name != "bm25"]


def test_without_any_named_comparison_all_are_compared_with_bm25_or_the_first():
    config = synthetic_run.config()
    config["evaluation"]["baseline"] = ""
    config["report"]["compare"] = {}
    assert {pair.reference for pair in comparisons.compared(run_of(config))} == {"bm25"}
    del config["systems"]["bm25"]
    assert {pair.reference for pair in comparisons.compared(run_of(config))} == {"none-stage1"}


@pytest.mark.parametrize(
    ("compare", "key"),
    [
        ("cdmae-stge1: [bm25]", "report.compare.cdmae-stge1"),
        ("fused: [bm52]", "report.compare.fused has bm52"),
        ('"*": [bm52]', "report.compare.* has bm52"),
    ],
)
def test_a_wrong_pair_is_refused_with_file_and_line(tmp_path, compare, key):
    overlay = tmp_path / "own.yaml"
    overlay.write_text(f"report:\n  compare:\n    {compare}\n")
    with pytest.raises(InputError) as error:
        load(gather(DEFAULT, [overlay]))
    assert str(error.value).startswith(f"{overlay}, line 3: {key}")


def test_a_removed_system_leaves_its_pairs_and_its_rows(tmp_path):
    overlay = tmp_path / "own.yaml"
    overlay.write_text("systems: {cdmae-reranker: null, cdmae-stage3: null, fused: null}\n")
    report = load(gather(DEFAULT, [overlay])).report
    removed = {"cdmae-reranker", "cdmae-stage3", "fused"}
    assert report.compare and report.methods
    assert not removed & {*report.compare, *sum(report.compare.values(), ())}
    assert not removed & {*report.methods.values()}
