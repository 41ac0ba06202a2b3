"""Third-party models: what is checked before the first job, which is that a folder is a model."""

import json
import struct
from pathlib import Path

import pytest
from made_up import make_model, make_weights

from cdmae.config import pretrained
from cdmae.config.load import load
from cdmae.errors import InputError
from cdmae.plan import flops


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The working directory, in which `mine` is a model."""
    monkeypatch.chdir(tmp_path)
    make_model("mine")
    return Path("mine")


@pytest.mark.parametrize(
    "model",
    ["mine", "mine/", "bert-base-uncased", "Shitao/RetroMAE", "a/b@v1", "bert@refs/pr/1", "mine2"],
)
def test_folders_of_models_and_names_at_the_hub_are_accepted(folder, model):
    pretrained.check(model, ("k",))
    assert "@".join(pretrained.divided(model)).removesuffix("@main") == model


@pytest.mark.parametrize(
    ("model", "named"),
    [
        ("empty", "config.json"),
        ("wild", "{x}"),
        ("mine/model", "is not a folder"),
        ("./nowhere", "is not a folder"),
        ("/mine", "is not a folder"),
        ("a b", "is not a folder"),
        ("a/b@", "is not a folder"),
    ],
)
def test_other_names_are_refused_by_the_key_and_the_folder(folder, model, named):
    Path("empty").mkdir()
    make_model("wild")
    Path("wild/{x}").touch()
    with pytest.raises(InputError) as refused:
        pretrained.check(model, ("starts", "x", "checkpoint"))
    words = str(refused.value)
    assert words.startswith("starts.x.checkpoint") and model in words and named in words
    assert "\n" not in words


def test_a_folder_may_be_named_like_a_revision(folder):
    make_model("own@v1")
    assert pretrained.divided("own@v1") == ("own@v1", "main")


def test_a_retriever_may_be_composed_of_modules(folder, values):
    (folder / "config.json").rename(folder / "modules.json")
    values["systems"]["foreign"]["model"] = "mine"
    load(values)
    values["starts"]["own"] = {"checkpoint": "mine"}
    with pytest.raises(InputError, match="starts.own.checkpoint is mine"):
        load(values)


@pytest.mark.parametrize("described", [{}, {"model_type": ["x"], "hidden_size": "wide"}])
def test_sizes_that_config_json_does_not_tell_are_known_to_the_jobs_alone(folder, described):
    (folder / "config.json").write_text(json.dumps({**described, "num_hidden_layers": 3}))
    assert pretrained.positions("mine") is None
    assert flops.longest("mine") == 512
    assert flops.Network.read("mine") == flops.Network(layers=3)


HEAD = {"cls.predictions.bias": (1,)}


def indexed(folder, names):
    (folder / "model.safetensors").unlink()
    index = {"weight_map": dict.fromkeys(names, "one.safetensors")}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))


@pytest.mark.parametrize(
    ("write", "has"),
    [
        (lambda folder: make_weights(folder / "model.safetensors", HEAD), True),
        (lambda folder: make_weights(folder / "model.safetensors", {"bert.x": (1,)}), False),
        (lambda folder: indexed(folder, HEAD), True),
        (lambda folder: indexed(folder, ["bert.x"]), False),
        (lambda folder: (folder / "model.safetensors").rename(folder / "pytorch_model.bin"), True),
        (lambda folder: (folder / "model.safetensors").write_bytes(struct.pack("<Q", 2**63)), True),
    ],
)
def test_a_language_model_head_is_seen_in_the_names_of_the_weights(folder, write, has):
    write(folder)
    assert pretrained.has_lm_head("mine") == has


def test_a_sparse_head_needs_a_language_model_head(folder, values):
    """In the checkpoint, or from pre-training; also of a third-party model."""
    values["starts"]["own"] = {"checkpoint": "mine"}
    values["encoders"]["bare"] = {"objective": "none", "start": "own"}
    values["stages"]["sparse"] = {"kind": "retriever", "head": "sparse", "depth": 50}
    values["systems"]["sparse"] = {
        "kind": "retriever", "encoder": "bare", "stage": "sparse", "negatives": "bm25",
    }  # fmt: skip
    with pytest.raises(InputError, match="systems.sparse.stage is sparse.* no language-model head"):
        load(values)
    values["stages"]["sparse"]["pieces"] = "own"
    load(values)
    del values["stages"]["sparse"]["pieces"]
    values["systems"]["sparse"]["encoder"] = "mae"
    load(values)
    values["systems"]["foreign"] |= {"model": "mine", "head": "sparse"}
    with pytest.raises(InputError, match="systems.foreign.head is sparse.* no language-model head"):
        load(values)
    make_weights(folder / "model.safetensors", HEAD)
    values["systems"]["foreign"]["engine"] = "lucene"
    config = load(values)
    assert config.systems["foreign"].head == "sparse"
    (folder / "modules.json").write_text("[]")
    with pytest.raises(InputError, match="head is sparse, but the modules of mine make dense vec"):
        load(values)
