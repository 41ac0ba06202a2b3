"""What a config means: defaults, entries that refer to others, and the splits that decide."""

import copy

import pytest
from small_collections import write_beir
from tiny_objectives import OBJECTIVES

from cdmae.config import systems
from cdmae.config.load import load
from cdmae.config.splits import roles


def test_settings_without_effect_are_accepted_and_reset(values):
    """They then restart no job and need no entry."""
    values["encoders"]["mae"] |= {"importance": "ami", "sigma": 2.0, "epochs": 3}
    values["starts"]["given"] = {"checkpoint": "some/checkpoint", "hidden": 16}
    config = load(values)
    mae = config.encoders["mae"]
    assert (mae.importance, mae.sigma, mae.epochs) == ("", 1.0, 20)
    assert config.starts["given"].values() == {"checkpoint": "some/checkpoint"}
    assert set(config.encoders["none"].values()) == {"start", "objective", "seed"}


def test_objectives_take_their_own_defaults_only(values):
    values["pretraining"] |= {"decoder_masking": "importance", "bag_weight": 0.5}
    values["encoders"] |= {name: {"objective": name} for name in OBJECTIVES}
    config = load(values)
    for name in OBJECTIVES:
        encoder = config.encoders[name]
        assert encoder.objective == name
        aware = "decoder_masking" in encoder.values()
        assert encoder.masked_by_importance == bool(encoder.importance) == aware
    assert config.encoders["bowdpr"].bag_weight == 0.5


def test_a_published_retriever_is_simpler_than_a_trained_one(values):
    values["systems"]["theirs"] = {"kind": "external", "model": "some/model"}
    found = load(values).systems
    order = ("bm25", "theirs", "one", "fused")
    assert [found[name].complexity for name in order] == [0, 1, 2, 3]


def test_parts_of_a_fusion_for_negatives_are_searched_to_the_depth_of_the_evaluation(values):
    values["systems"]["both"] = {"kind": "fusion", "of": ["bm25", "one"]}
    values["systems"]["three"]["negatives"] = "both"
    config = load(values)
    depths = systems.mined(config)
    assert depths["both", "docs", "train"] == 20
    assert depths["one", "docs", "train"] == config.evaluation.depth > 50


def test_a_collection_at_the_top_is_shorthand_for_the_same_config_with_all_names(values):
    values["systems"]["fused"]["tuned_on"] = ["docs", "dev"]
    values["evaluation"]["collections"] = {"docs": ["dev", "test"]}  # judged, not trained on
    short = copy.deepcopy(values) | {"collection": "docs"}
    for entry in (short["starts"]["small"], short["pretraining"], short["training"]):
        del entry["collection"]
    del short["evaluation"]["collections"]
    short["systems"]["fused"]["tuned_on"] = ["dev"]
    assert load(short) == load(values)
    short["training"]["collection"] = "other"
    config = load(short)
    assert config.stages["stage1"].collection == "other"
    assert config.encoders["mae"].collection == "docs"
    assert config.evaluation.collections == {"docs": ("dev", "test")}, "without train"


# --- the deciding and the reported split ----------------------------------------------------------


def config(toy, splits, tuned_on=(), **evaluated):
    """A config with a collection of judged splits, and queries that are made from its text."""
    toy.Settings.judged = lambda settings: dict.fromkeys(splits, True)
    mine = {"source": "toy"}
    made = {"source": "pseudo", "of": mine, "method": "span", "holdout": {"dev": 0.2, "test": 0.2}}
    systems = {"bm25": {"kind": "bm25"}, "other": {"kind": "bm25", "k1": 1.5}}
    if tuned_on:
        systems["fused"] = {"kind": "fusion", "of": ["bm25", "other"], "tuned_on": [*tuned_on]}
    values = {"collections": {"mine": mine, "made": made}, "systems": systems}
    return load(values | {"evaluation": {"collections": evaluated}})


@pytest.mark.parametrize(
    ("splits", "tuned", "deciding", "reported"),
    [
        (["test", "dev"], "", "dev", "test"),  # not the first that the source lists
        (["device", "value", "DEV"], "", "DEV", "device"),
        (["easy", "hard"], "", "easy", "hard"),
        (["hard", "retrieval"], "", "hard", "retrieval"),  # which ends as a name of dev
        (["one", "two", "test"], "two", "two", "test"),
        (["dev", "dev2"], "", "dev", "dev2"),
        (["test"], "", "test", "test"),
        (["dev", "test"], "test", "dev", "dev"),  # what is tuned on is not reported
    ],
)
def test_the_deciding_split_is_not_the_reported_one_if_there_are_two(
    toy, splits, tuned, deciding, reported
):
    found = roles(config(toy, splits, ("mine", tuned) if tuned else (), mine=splits))
    assert found == (("mine", deciding), ("mine", reported))


def test_judged_queries_come_before_queries_that_were_made_from_their_text(toy, tmp_path):
    both = config(toy, ["dev", "test"], made=["dev", "test"], mine=["test", "dev"])
    assert roles(both) == (("mine", "dev"), ("mine", "test"))
    alone = config(toy, ["dev", "test"], made=["dev", "test"])
    assert roles(alone) == (("made", "dev"), ("made", "test"))
    write_beir(tmp_path, {}, {"q": "a query"}, test=[("q", "p1", 1)])
    values = alone.values()
    values["collections"]["judged"] = {"source": "queries", "of": "mine", "path": str(tmp_path)}
    values["evaluation"]["collections"]["judged"] = ["test"]
    assert roles(load(values))[1] == ("judged", "test"), "with the passages of mine"
    assert roles(load({})) is None
