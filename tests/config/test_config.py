"""What a config means: defaults, entries that refer to others, and what a setting restarts."""

from pathlib import Path

import pytest
from made_up import make_model

from cdmae.config import checks, pretrained, systems
from cdmae.config.importance import Importance
from cdmae.config.load import load
from cdmae.config.objectives import OBJECTIVES, AnyEncoder
from cdmae.config.reading import gather
from cdmae.config.schema import Config
from cdmae.config.stages import AnyStage
from cdmae.errors import InputError
from cdmae.fields import parse

FILES = Path(__file__).resolve().parents[2] / "config"


def refusal(values):
    with pytest.raises(InputError) as caught:
        load(values)
    return str(caught.value)


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


def restarted(values, **changed):
    """The trainings whose settings differ after a change of defaults."""

    def trained(config):
        stages = {
            name: config.stages[system.stage].values(**system.teachers())
            for name, system in config.systems.items()
            if system.trained
        }
        return stages | {name: entry.values() for name, entry in config.encoders.items()}

    for section, settings in changed.items():
        changed[section] = {**values[section], **settings}
    before, after = trained(load(values)), trained(load({**values, **changed}))
    return {name for name in before if before[name] != after[name]}


@pytest.mark.parametrize(
    ("section", "settings", "expected"),
    [
        ("pretraining", {"sigma": 2.0}, {"cdmae"}),
        ("pretraining", {"decoder_layers": 3}, {"mae", "cdmae"}),
        ("pretraining", {"bag_weight": 2.0}, set()),
        ("pretraining", {"epochs": 2}, set()),
        ("training", {"epochs": 2}, {"one", "three", "cross"}),
        ("training", {"temperature": 2.0}, {"one", "three"}),
        ("training", {"rdrop": 0.0}, {"cross"}),
        ("training", {"distillation": "margin_mse"}, {"three"}),
        ("training", {"in_batch_weight": 0.5}, set()),
    ],
)
def test_a_default_restarts_the_trainings_that_read_it(values, section, settings, expected):
    assert restarted(values, **{section: settings}) == expected


def test_objectives_take_their_own_defaults_only(values):
    values["pretraining"] |= {"decoder_masking": "importance", "bag_weight": 0.5}
    for name in OBJECTIVES:
        values["encoders"][name] = {"objective": name}
    config = load(values)
    for name in OBJECTIVES:
        encoder = config.encoders[name]
        assert encoder.objective == name
        aware = "decoder_masking" in encoder.values()
        assert encoder.masked_by_importance == bool(encoder.importance) == aware
    assert config.encoders["bowdpr"].bag_weight == 0.5


def test_collocations_are_read_from_the_counts_and_not_from_the_importance(values):
    values["encoders"] |= {
        "spans": {"decoder_masking": "pmi_span"},
        "both": {"encoder_masking": "pmi_span", "decoder_masking": "importance"},
    }
    rows = systems.encoders(load(values))
    expected = {"spans": "ngrams", "both": "importance", "mae": "", "cdmae": "importance"}
    assert {name: rows[name]["estimate"] for name in expected} == expected
    values["importance"]["ami"]["unit"] = "wordpiece"
    assert refusal(values).startswith("pretraining.importance is ami; expected for pmi_span")


# --- systems --------------------------------------------------------------------------------------


def test_a_fusion_gives_negatives_where_all_its_parts_search(values):
    values["systems"]["three"]["negatives"] = "mixed"
    values["systems"]["mixed"] = {"kind": "fusion", "of": ["bm25", "one"]}
    mined = systems.mined(load(values))
    depths = [mined[name, "docs", "train"] for name in ("mixed", "bm25", "one")]
    assert depths == [20, 1000, 1000], "the parts as in the evaluation"


def test_third_party_runs_as_a_teacher(values, tmp_path):
    file = tmp_path / "theirs.run"
    file.touch()
    runs = {"docs": {"dev": str(file), "test": str(file)}, "other": {"test": str(file)}}
    values["systems"]["theirs"] = {"kind": "run", "runs": runs}
    values["systems"]["three"]["teacher"] = "theirs"
    assert refusal(values).startswith("stages.stage3.random_negatives is 10, but theirs")
    values["stages"]["stage3"]["random_negatives"] = 0
    assert refusal(values).startswith("systems.theirs.runs lacks train of docs")
    runs["docs"]["train"] = str(file)
    config = load(values)
    assert systems.mined(config)["theirs", "docs", "train"] == systems.WHOLE
    assert systems.systems(config)["three"]["ranking"] == "theirs/docs.train"
    file.unlink()
    assert refusal(values).startswith(f"systems.theirs.runs.docs.dev is {file}, which is not")


def test_weights_of_another_network_or_head_are_no_initial_weights(values):
    values["systems"]["three"]["after"] = "one"
    load(values)
    values["stages"]["stage1"]["head"] = "multi"
    assert refusal(values).startswith("systems.three.after is one, which has head multi")
    del values["stages"]["stage1"]["head"]
    values["starts"]["other"] = values["starts"]["small"] | {"hidden": 16}
    values["encoders"]["wide"] = {"start": "other", "objective": "none"}
    values["systems"]["one"]["encoder"] = "wide"
    assert refusal(values).startswith("systems.three.after is one, which begins from starts.other")


def test_heads_are_systems_that_encode_nothing():
    config = load(gather(FILES / "config.yaml", [FILES / "overlays/unified.yaml"]))
    row = systems.systems(config)["unified-sparse"]
    assert row["start"] == "tiny"
    assert systems.sparse(config) == ["unified-sparse", "unified-hard-sparse"]
    mined = {name for name, *_ in systems.mined(config)}
    assert mined == {"bm25", "unified-both", "unified-dense", "unified-sparse"}


@pytest.mark.parametrize(
    ("split", "fits"), [("dev.small", True), ("", False), ("a/b", False), ("s" * 65, False)]
)
def test_a_split_is_part_of_paths(values, toy, split, fits):
    toy.Settings.judged = lambda settings: dict.fromkeys(("train", "dev", split), True)
    values["evaluation"]["collections"] = {"docs": ["dev", split]}
    if fits:
        load(values)
    else:
        assert refusal(values).startswith("evaluation.collections.docs is ")


@pytest.mark.parametrize("folder", ["cdmae", "config/own", "results/../docs", ".snakemake"])
def test_results_do_not_lie_among_the_code(values, folder, monkeypatch):
    monkeypatch.chdir(checks.ROOT)
    for results in (folder, str(checks.ROOT / folder)):
        assert "among the files of the checkout" in refusal(values | {"results": results})
    assert load(values | {"results": f"{folder}-own".replace("config/", "more/")})


# --- third-party models ---------------------------------------------------------------------------


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


def test_a_given_generator_needs_a_checkpoint(values):
    """The job compares their vocabularies."""
    simlm = {"objective": "simlm", "start": "small", "generator": "google/electra-base-generator"}
    values["encoders"]["simlm"] = simlm
    assert refusal(values).startswith("encoders.simlm.generator is google/electra-base-generator")
