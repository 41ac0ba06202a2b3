"""A config is refused before any job starts, in one sentence that names the key, the value and what
is allowed.
"""

import dataclasses
import json
import os
from pathlib import Path

import pytest
from made_up import make_model

from cdmae.config import checks, systems
from cdmae.config.encoders import concepts
from cdmae.config.importance import Importance
from cdmae.config.kinds import AnySystem
from cdmae.config.load import load
from cdmae.config.objectives import OBJECTIVES, AnyEncoder
from cdmae.config.schema import Config
from cdmae.config.stages import AnyStage
from cdmae.errors import InputError
from cdmae.fields import parse, rules_of


def put(values, path, value):
    *parents, last = path.split(".")
    for key in parents:
        values = values[key]
    values[last] = value


def refusal(values):
    with pytest.raises(InputError) as caught:
        load(values)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_valid_config(values):
    config = load(values)
    assert config.encoders["cdmae"].importance == "ami"
    assert config.stages["rerank"].rdrop == 0.5
    assert config.stages["stage1"].epochs == 1.0
    assert config.collections["docs"].values() == {"source": "toy", "size": 3}
    assert config.evaluation.collections == {"docs": ("dev", "test"), "other": ("test",)}


def test_nothing_has_the_defaults_of_the_paper():
    assert load({}) == Config()
    encoder = parse(AnyEncoder, {"objective": "mae", "start": "s", "collection": "c"})
    assert (encoder.encoder_ratio, encoder.decoder_ratio, encoder.sigma) == (0.3, 0.5, 1.0)
    assert (encoder.learning_rate, encoder.batch, encoder.epochs, encoder.warmup_ratio) == (
        3e-4,
        2048,
        20,
        0.1,
    )
    stage = parse(AnyStage, {"kind": "retriever", "head": "dense", "collection": "c"})
    assert (stage.queries, stage.group, stage.epochs, stage.learning_rate, stage.alpha) == (
        64,
        32,
        3,
        2e-5,
        0.2,
    )
    assert Importance().window == 4
    assert Config().seed == (42,)


def test_written_out_values_load_to_the_same_config(values):
    config = load(values)
    again = load(config.values())
    for name in (
        "collections",
        "starts",
        "importance",
        "encoders",
        "stages",
        "systems",
        "evaluation",
        "report",
    ):
        assert getattr(again, name) == getattr(config, name)


def test_the_seed_is_the_config_s_unless_given(values):
    values["encoders"]["mae"]["seed"] = 3
    config = load(values)
    assert (
        config.encoders["mae"].seed,
        config.encoders["cdmae"].seed,
        config.stages["stage1"].seed,
    ) == (3, 7, 7)


def test_a_fusion_gives_negatives_where_all_its_parts_search_training_queries(values):
    put(values, "systems.three.negatives", "mixed")
    put(values, "systems.mixed", {"kind": "fusion", "of": ["bm25", "one"]})
    config = load(values)
    train = ("docs", "train")
    depths = {
        ("mixed", *train): 20,
        ("bm25", *train): 1000,
        ("one", *train): 1000,
    }  # the parts as in the evaluation
    assert systems.mined(config).items() >= depths.items()
    put(values, "systems.mixed.of", ["bm25", "cross"])
    put(values, "systems.cross.negatives", "bm25")
    put(values, "systems.cross.reranks", "bm25")
    assert refusal(values).startswith("systems.mixed.of[1] is cross, of kind reranker")


@pytest.mark.parametrize(
    "changed",
    [
        {"distillation": "none", "denoise": 0.5},
        {"distillation": "none", "margin_bins": 10},
        {"denoise": 1.0, "margin_bins": 10},
    ],
)
def test_a_teacher_may_only_select_negatives(values, changed):
    values["stages"]["stage3"] |= changed
    assert load(values).systems["three"].teacher == "cross"
    put(values, "systems.three.in_batch_teacher", "one")
    assert load(values).systems["three"].teachers() == {"teacher": True, "in_batch_teacher": True}
    values["stages"]["stage3"] |= {"distillation": "kl", "denoise": 0.0, "in_batch": False}
    assert refusal(values).startswith("systems.three.in_batch_teacher is one, but the stage stage3")
    values["stages"]["stage3"] |= {"denoise": 0.5, "in_batch": False}
    assert refusal(values).startswith("stages.stage3: denoise is 0.5")


def test_a_run_of_others_as_a_teacher_scores_all_that_is_drawn(values, tmp_path):
    file = tmp_path / "theirs.run"
    file.touch()
    values["systems"]["theirs"] = {
        "kind": "run",
        "runs": {"docs": {"dev": str(file), "test": str(file)}},
    }
    values["systems"]["theirs"]["runs"]["other"] = {"test": str(file)}
    put(values, "systems.three.teacher", "theirs")
    assert refusal(values).startswith(
        "stages.stage3.random_negatives is 10, but theirs, the teacher of systems.three, "
    )
    put(values, "stages.stage3.random_negatives", 0)
    assert refusal(values).startswith(
        "systems.theirs.runs lacks train of docs, on which it is mined or used as a teach"
    )
    values["systems"]["theirs"]["runs"]["docs"]["train"] = str(file)
    assert load(values)


def test_a_table_of_pairs_without_negatives_and_scores_is_no_run(values, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = [{"query": f"q{row}", "positive": "a passage"} for row in range(3)]
    table = Path("theirs.jsonl")
    table.write_text("".join(json.dumps(row) + "\n" for row in rows))
    runs = {"docs": {"dev": "theirs.jsonl", "test": "theirs.jsonl"}, "other": {}}
    runs["other"]["test"] = "theirs.jsonl"
    values["systems"]["theirs"] = {"kind": "run", "runs": runs}
    assert refusal(values).startswith(
        "systems.theirs.runs.docs.dev is theirs.jsonl, a table whose rows have neither negatives "
    )
    for more in ({"negative": "another"}, {"label": [2.5, 1], "negative_1": "another"}):
        table.write_text(json.dumps(rows[0]) + "\n" + json.dumps(rows[1] | more) + "\n")
        assert load(values)


@pytest.mark.parametrize(
    ("split", "fits"),
    [("dev.small", True), ("s" * 65, False), ("\u00e9" * 33, False), ("a b", False)],
)
def test_a_split_is_part_of_paths(split, fits):
    assert checks.fits_in_paths(split) == fits


@pytest.mark.parametrize("folder", ["cdmae", "config/own", "results/../docs", ".snakemake"])
def test_results_do_not_lie_among_the_code(values, folder, monkeypatch):
    monkeypatch.chdir(checks.ROOT)
    for results in (folder, str(checks.ROOT / folder)):
        assert "of the checkout; expected a folder of its own" in refusal(
            values | {"results": results}
        )
    assert load(values | {"results": f"{folder}-own/x".replace("config/own", "more")})


@pytest.mark.parametrize("split", ["", "a/b", "a b", "-a"])
def test_splits_that_cannot_be_part_of_a_path(values, toy, split):
    toy.Settings.judged = lambda settings: {
        "train": True,
        "dev": True,
        "dev.small": True,
        split: True,
    }
    values["evaluation"]["collections"] = {"docs": ["dev", "dev.small"]}
    load(values)
    values["evaluation"]["collections"]["docs"].append(split)
    assert refusal(values).startswith(
        f"evaluation.collections.docs is {split or chr(34) * 2}, which cannot be part of"
    )


def test_weights_of_another_network_or_head_are_no_initial_weights(values):
    values["systems"]["three"]["after"] = "one"
    load(values)
    values["stages"]["stage1"]["head"] = "sparse"
    assert refusal(values).startswith("systems.three.after is one, whose stage stage1 has another")
    del values["stages"]["stage1"]["head"]
    values["starts"]["other"] = values["starts"]["small"] | {"hidden": 16}
    values["encoders"]["wide"] = {"start": "other", "objective": "none"}
    values["systems"]["one"]["encoder"] = "wide"
    said = "systems.three.after is one, whose initial weights are those of starts.other"
    assert refusal(values).startswith(said)


def test_defaults_that_do_not_apply_are_left_out(values):
    config = load(values)
    assert config.encoders["mae"].importance == ""
    assert set(config.encoders["none"].values()) == {"start", "objective", "seed"}
    stages = config.stages
    assert "rdrop" not in stages["stage1"].values() and "in_batch" not in stages["rerank"].values()
    assert stages["stage3"].values()["alpha"] == 0.3 and "alpha" not in stages["stage1"].values(
        teacher=False
    )


def test_objectives_take_their_own_settings_only(values):
    """Inherited from `pretraining` they are left out, so that touching them restarts nothing else."""
    values["pretraining"] |= {
        "decoder_layers": 1,
        "decoder_masking": "importance",
        "bag_weight": 0.5,
    }
    for name in concepts("pretraining/objectives"):
        values["encoders"][name] = {"objective": name}
    config = load(values)
    for name in concepts("pretraining/objectives"):
        encoder = config.encoders[name]
        left_out = set(rules_of(OBJECTIVES[name])) - set(encoder.values())
        assert left_out <= set(encoder.unread)
        assert bool(left_out) == (name == "contriever")  # which masks nothing
        assert encoder.objective == name
        aware = "decoder_masking" in encoder.values()
        assert encoder.reads_importance == encoder.masked_by_importance == aware
        assert encoder.importance == ("ami" if aware else "")
        if not left_out:
            assert encoder.maskings == ("whole_word", "importance")[: 1 + aware]
    assert config.encoders["bowdpr"].bag_weight == 0.5
    assert config.encoders["none"].maskings == ()


def test_a_given_generator_is_simlm_s_alone_and_needs_the_vocabulary_of_a_checkpoint(
    values, tmp_path
):
    """What can be known before a job: it may exist, the start is a checkpoint, both know as many
    word-pieces.
    """
    for name, size in (("start", 100), ("generator", 100), ("other", 99)):
        make_model(tmp_path / name, vocab_size=size)
    values["starts"]["given"] = {"checkpoint": f"{tmp_path}/start"}
    values["encoders"]["simlm"] = simlm = {
        "objective": "simlm",
        "start": "given",
        "generator": f"{tmp_path}/generator",
    }
    assert load(values).encoders["simlm"].values()["generator"] == f"{tmp_path}/generator"
    simlm["generator"] = f"{tmp_path}/other"
    assert "99" in refusal(values) and "100 of starts.given" in refusal(values)
    make_model(tmp_path / "other", vocab_size=100, max_position_embeddings=149)
    assert refusal(values).startswith("encoders.simlm.max_length is 150; expected up to 149")
    simlm["generator"] = "google/electra-base-generator"
    load(values)
    simlm["start"] = "small"
    assert refusal(values).startswith("encoders.simlm.generator is google/electra-base-generator")
    simlm["generator"] = "./nowhere"
    assert refusal(values).startswith("encoders.simlm.generator is ./nowhere, and ")


@pytest.mark.parametrize(
    ("key", "encoder"),
    [("decoder_layers", {"objective": "simlm"}), ("early_layers", {"objective": "condenser"})],
)
def test_layers_of_a_checkpoint_in_a_folder_are_those_of_its_config(values, tmp_path, key, encoder):
    values["starts"]["own"] = {"checkpoint": make_model(tmp_path)}
    values["encoders"]["a"] = {**encoder, "start": "own", key: 5}
    load(values)  # where it does not say how many, its job tells
    make_model(tmp_path, num_hidden_layers=6)
    load(values)
    make_model(tmp_path, num_hidden_layers=4)
    assert refusal(values).startswith(f"encoders.a.{key} is 5; expected")


def test_collocations_are_of_words(values):
    values["encoders"]["spans"] = {"decoder_masking": "pmi_span"}
    values["importance"]["ami"]["unit"] = "wordpiece"
    assert refusal(values).startswith("pretraining.importance is ami, whose unit is wordpiece")


def test_models_of_one_s_own_are_folders_also_in_the_home_folder(values, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    model = make_model(tmp_path / "own")
    values["starts"]["own"] = {"checkpoint": "~/own"}
    values["encoders"]["own"] = {"start": "own", "objective": "simlm", "generator": "~/own"}
    values["systems"]["foreign"]["model"] = "~/own"
    values["results"] = "~/results"
    config = load(values)
    assert config.starts["own"].values() == {"checkpoint": model}
    assert config.encoders["own"].generator == config.systems["foreign"].model == model
    assert config.results == f"{tmp_path}/results"
    theirs = parse(AnySystem, {"kind": "run", "runs": {"docs": {"dev": "~/theirs.trec"}}})
    assert theirs.runs == {"docs": {"dev": f"{tmp_path}/theirs.trec"}}


# --- encoders that need another one ---------------------------------------------------------------


def test_an_encoder_goes_on_from_another_with_the_start_of_that_one(values):
    values["starts"]["large"] = {**values["starts"]["small"], "hidden": 16}
    values["encoders"] |= {
        "general": {"start": "large", "collection": "other"},
        "both": {"after": "general"},
    }
    config = load(values)
    assert (config.encoders["both"].start, config.encoders["both"].collection) == ("large", "docs")
    assert load(config.values()).encoders == config.encoders


def test_a_snapshot_has_all_else_from_its_encoder(values):
    values["encoders"]["cdmae"] |= {"batch": 3, "after": "mae"}
    values["encoders"]["early"] = {"snapshot_of": "cdmae", "take_step": 4}
    config = load(values)
    early, whole = config.encoders["early"], config.encoders["cdmae"]
    assert (early.take_step, early.snapshot_of) == (4, "cdmae")
    assert dataclasses.replace(early, take_step=0, snapshot_of="") == whole
    assert load(config.values()).encoders == config.encoders


def test_settings_without_effect_are_accepted_and_reset(values):
    """They then restart no job and need no entry."""
    values["encoders"]["mae"] |= {"importance": "ami", "sigma": 2.0, "epochs": 3}
    values["starts"]["given"] = {"checkpoint": "some/checkpoint", "hidden": 16}
    config = load(values)
    assert config.encoders["mae"] == load(config.values()).encoders["mae"]
    mae = config.encoders["mae"]
    assert (mae.importance, mae.sigma, mae.epochs) == ("", 1.0, 20)
    assert config.starts["given"].values() == {"checkpoint": "some/checkpoint"}


@pytest.mark.parametrize(
    ("estimate", "named"),
    [
        (["ami", "small"], "importance, starts and collections"),
        (["amy", "small", "docs"], "did you mean ami?"),
        (["ami", "smal", "docs"], "did you mean small?"),
        (["ami", "small", "made"], "made"),
    ],
)
def test_keywords_need_an_estimate_that_can_be_made(values, estimate, named):
    of = values["collections"]["docs"]
    values["collections"]["made"] = {
        "source": "pseudo", "of": of, "method": "written", "keywords_of": estimate,
    }  # fmt: skip
    assert refusal(values).startswith("collections.made.keywords_of is ")
    assert named in refusal(values)


def test_numbers_in_quotation_marks_and_with_exponents_are_numbers(values):
    values["stages"]["stage3"] |= {"learning_rate": "1e-3", "depth": "30", "alpha": 1}
    stage = load(values).stages["stage3"]
    assert (stage.learning_rate, stage.depth, stage.alpha) == (1e-3, 30, 1.0)


def test_a_file_of_a_run_exists_and_has_no_wildcard(values, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, named in (("a{b}.run", "{"), ("nowhere.run", "not a file"), ("future.run", "future")):
        if name != "nowhere.run":
            (tmp_path / name).touch()
            os.utime(name, (4_000_000_000, 4_000_000_000))
        values["systems"]["theirs"] = {"kind": "run", "runs": {"docs": {"dev": name}}}
        assert refusal(values).startswith("systems.theirs.runs.docs.dev")
        assert name in refusal(values) and named in refusal(values)
