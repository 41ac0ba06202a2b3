"""What a config means: defaults, entries that refer to others, and the splits that decide."""

import copy
from pathlib import Path

import pytest
from made_up import make_model
from small_collections import write_beir
from tiny_objectives import OBJECTIVES

from cdmae.config import pretrained, systems
from cdmae.config.load import load
from cdmae.config.objectives import AnyEncoder
from cdmae.config.splits import roles
from cdmae.config.stages import AnyStage
from cdmae.fields import kinds_of, rules_of, tags

FILES = Path(__file__).resolve().parents[2] / "config"


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


@pytest.mark.parametrize("section", [AnyEncoder, AnyStage], ids=["encoders", "stages"])
def test_a_setting_of_several_kinds_is_the_same_in_all(section):
    """So that one default can serve all of them."""
    types = {}
    for kind in kinds_of(section):
        for key, rule in rules_of(kind).items():
            if key not in tags(kind):
                found = (rule.annotation, rule.metadata)
                assert types.setdefault(key, found) == found, key


def test_parts_of_a_fusion_for_negatives_are_searched_to_the_depth_of_the_evaluation(values):
    values["systems"]["both"] = {"kind": "fusion", "of": ["bm25", "one"]}
    values["systems"]["three"]["negatives"] = "both"
    config = load(values)
    depths = systems.mined(config)
    assert depths["both", "docs", "train"] == 20
    assert depths["one", "docs", "train"] == config.evaluation.depth > 50


def test_models_are_folders_also_in_the_home_folder(values, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    model = make_model(tmp_path / "own")
    values["starts"]["own"] = {"checkpoint": "~/own"}
    values["encoders"]["own"] = {"start": "own", "objective": "simlm", "generator": "~/own"}
    values["systems"]["foreign"]["model"] = "~/own"
    config = load(values | {"results": f"{tmp_path}/results"})
    assert config.starts["own"].values() == {"checkpoint": model}
    assert config.encoders["own"].generator == config.systems["foreign"].model == model
    assert pretrained.divided("a/b@v1") == ("a/b", "v1")


# --- collection -----------------------------------------------------------------------------------


def test_a_collection_at_the_top_is_shorthand_for_the_same_config_with_all_names(values):
    values["systems"]["fused"]["tuned_on"] = ["docs", "dev"]
    values["evaluation"]["collections"] = {"docs": ["dev", "test"]}  # judged, not trained on
    short = copy.deepcopy(values) | {"collection": "docs"}
    for entry in (short["starts"]["small"], short["pretraining"], short["training"]):
        del entry["collection"]
    del short["evaluation"]["collections"]
    short["systems"]["fused"]["tuned_on"] = ["dev"]
    assert load(short) == load(values)
    assert "collection" not in load(short).values()
    short["training"]["collection"] = "other"
    short["evaluation"]["collections"] = {"other": ["test"], "docs": ["dev"]}
    config = load(short)
    assert config.stages["stage1"].collection == "other"
    assert config.encoders["mae"].collection == "docs"
    assert config.evaluation.collections == {"other": ("test",), "docs": ("dev",)}
    del short["evaluation"]["collections"]
    assert load(short).evaluation.collections == {"docs": ("dev", "test")}, "without train"


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
        (["test", "validation"], "", "validation", "test"),
        (["device", "value", "DEV"], "", "DEV", "device"),
        (["dev", "dev2", "test"], "", "dev", "test"),
        (["easy", "hard"], "", "easy", "hard"),
        (["hard", "retrieval"], "", "hard", "retrieval"),  # which ends as a name of dev
        (["test", "hard"], "", "hard", "test"),
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
