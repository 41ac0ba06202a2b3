"""What a config means: defaults, entries that refer to others, and what a setting restarts."""

from pathlib import Path

import pytest
from made_up import make_model

from cdmae.config import pretrained, systems
from cdmae.config.encoders import OBJECTIVES, AnyEncoder
from cdmae.config.importance import Importance
from cdmae.config.load import load
from cdmae.config.reading import gather
from cdmae.config.schema import Config
from cdmae.config.stages import AnyStage
from cdmae.fields import kinds_of, parse, rules_of, tags

FILES = Path(__file__).resolve().parents[2] / "config"


def test_nothing_has_the_defaults_of_the_paper():
    assert load({}) == Config() and Config().seed == (42,) and Importance().window == 4
    encoder = parse(AnyEncoder, {"objective": "mae", "start": "s", "collection": "c"})
    assert (encoder.encoder_ratio, encoder.decoder_ratio, encoder.sigma) == (0.3, 0.5, 1.0)
    assert (encoder.learning_rate, encoder.batch, encoder.epochs) == (3e-4, 2048, 20)
    stage = parse(AnyStage, {"kind": "retriever", "head": "dense", "collection": "c"})
    assert (stage.queries, stage.group, stage.epochs, stage.alpha) == (64, 32, 3, 0.2)


def test_written_out_values_load_to_the_same_config(values):
    values["encoders"]["mae"]["seed"] = 3
    values["encoders"]["both"] = {"after": "cdmae"}
    config = load(values)
    assert load(config.values()) == config
    assert (config.encoders["mae"].seed, config.stages["stage1"].seed) == (3, 7)
    assert config.encoders["both"].start == "small"


def test_settings_without_effect_are_accepted_and_reset(values):
    """They then restart no job and need no entry."""
    values["encoders"]["mae"] |= {"importance": "ami", "sigma": 2.0, "epochs": 3}
    values["starts"]["given"] = {"checkpoint": "some/checkpoint", "hidden": 16}
    config = load(values)
    mae = config.encoders["mae"]
    assert (mae.importance, mae.sigma, mae.epochs) == ("", 1.0, 20)
    assert config.starts["given"].values() == {"checkpoint": "some/checkpoint"}
    assert set(config.encoders["none"].values()) == {"start", "objective", "seed"}


def settings_of_trainings(values):
    config = load(values)
    found = {name: encoder.values() for name, encoder in config.encoders.items()}
    for name in systems.trained(config):
        system = config.systems[name]
        found[name] = config.stages[system.stage].values(is_taught=system.is_taught)
    return found


@pytest.mark.parametrize(
    ("section", "key", "value", "expected"),
    [
        ("pretraining", "sigma", 2.0, {"cdmae"}),
        ("pretraining", "decoder_layers", 3, {"mae", "cdmae"}),
        ("pretraining", "bag_weight", 2.0, set()),
        ("pretraining", "epochs", 2, set()),
        ("training", "epochs", 2, {"one", "three", "cross"}),
        ("training", "temperature", 2.0, {"one", "three"}),
        ("training", "rdrop", 0.0, {"cross"}),
        ("training", "distillation", "margin_mse", {"three"}),
    ],
)
def test_a_default_restarts_the_trainings_that_read_it(values, section, key, value, expected):
    before = settings_of_trainings(values)
    values[section][key] = value
    after = settings_of_trainings(values)
    assert {name for name in before if before[name] != after[name]} == expected


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


def test_a_fusion_gives_negatives_where_all_its_parts_search(values):
    values["systems"]["three"]["negatives"] = "mixed"
    values["systems"]["mixed"] = {"kind": "fusion", "of": ["bm25", "one"]}
    mined = systems.mined(load(values))
    depths = [mined[name, "docs", "train"] for name in ("mixed", "bm25", "one")]
    assert depths == [20, 1000, 1000], "the parts as in the evaluation"


def test_heads_are_systems_that_encode_nothing():
    config = load(gather(FILES / "config.yaml", [FILES / "overlays/unified.yaml"]))
    assert systems.systems(config)["unified-sparse"]["start"] == "tiny"
    kinds = {name: system.vectors(config) for name, system in config.systems.items()}
    assert (kinds["unified-sparse"], kinds["unified-dense"]) == ("sparse", "dense")
    mined = {name for name, *_ in systems.mined(config)}
    assert mined == {"bm25", "unified-both", "unified-dense", "unified-sparse"}


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
