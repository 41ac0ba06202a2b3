"""Starts: sizes and spread of random weights, checkpoints with and without a head, checkpoints that
are refused.
"""

import json
import pickle
import shutil

import pytest
import torch
from transformers import (
    BertConfig,
    BertForMaskedLM,
    BertModel,
    BertTokenizer,
    GPT2Config,
)

from cdmae.config.starts import Start
from cdmae.errors import InputError
from cdmae.models import checkpoint, networks
from cdmae.tokens import tokenise

SIZES = {"hidden_size": 24, "num_attention_heads": 3, "intermediate_size": 40}
SMALL = Start(
    collection="x",
    vocabulary=100,
    layers=2,
    hidden=24,
    heads=3,
    feedforward=40,
    positions=32,
    initializer=0.08,
)


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tokenizer")
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abcdefghij"]
    BertTokenizer(vocab={piece: index for index, piece in enumerate(pieces)}).save_pretrained(
        folder
    )
    return folder


def config(layers: int = 2, vocabulary: int = 15) -> BertConfig:
    return BertConfig(vocab_size=vocabulary, num_hidden_layers=layers, **SIZES)


def test_random_start_has_the_given_size_and_spread(tokenizer):
    model = checkpoint.start_encoder(SMALL, tokenizer, seed=1)
    found = model.config
    assert (
        found.vocab_size,
        found.num_hidden_layers,
        found.hidden_size,
        found.num_attention_heads,
    ) == (15, 2, 24, 3)
    assert (found.intermediate_size, found.max_position_embeddings, found.pad_token_id) == (
        40,
        32,
        0,
    )
    weights = model.bert.encoder.layer[1].intermediate.dense.weight
    assert weights.std().item() == pytest.approx(0.08, rel=0.1)
    assert model.cls.predictions.decoder.weight is model.bert.embeddings.word_embeddings.weight


def test_random_start_is_a_function_of_its_seed(tokenizer):
    state = torch.get_rng_state()
    one, again, other = (
        checkpoint.start_encoder(SMALL, tokenizer, seed).state_dict() for seed in (1, 1, 2)
    )
    assert all(torch.equal(one[name], again[name]) for name in one)
    name = "bert.encoder.layer.0.output.dense.weight"
    assert not torch.equal(one[name], other[name])
    assert torch.equal(state, torch.get_rng_state())


def test_a_random_start_is_what_transformers_reads_of_it(tokenizer, tmp_path, capfd):
    model = checkpoint.start_encoder(SMALL, tokenizer, seed=1)
    networks.write(tmp_path, model)
    found, keys = BertForMaskedLM.from_pretrained(tmp_path, output_loading_info=True)
    assert not any(keys.values())
    assert capfd.readouterr().err.count("MISSING") == 0
    ours, theirs = model.state_dict(), found.state_dict()
    assert all(torch.equal(value, theirs[name]) for name, value in ours.items())
    states = torch.randn(5, 24)
    torch.testing.assert_close(model.cls.predictions(states), found.cls.predictions(states))
    padding = model.bert.embeddings.word_embeddings.weight[0]
    assert not padding.any()


def test_new_head_is_named_and_seeded(tokenizer, tmp_path, capfd):
    saved = BertModel(config())
    saved.save_pretrained(tmp_path)
    capfd.readouterr()
    start = Start(checkpoint=str(tmp_path))
    one, again, other = (checkpoint.start_encoder(start, tokenizer, seed) for seed in (1, 1, 2))
    said = capfd.readouterr().err
    assert "has no LM head" in said
    assert "cls.predictions" in said
    weight = one.cls.predictions.transform.dense.weight
    assert torch.equal(weight, again.cls.predictions.transform.dense.weight)
    assert not torch.equal(weight, other.cls.predictions.transform.dense.weight)
    assert torch.equal(
        one.bert.encoder.layer[1].output.dense.weight, saved.encoder.layer[1].output.dense.weight
    )


def refused(folder, tokenizer, message):
    """A checkpoint is refused in one sentence."""
    with pytest.raises(InputError, match=message) as caught:
        checkpoint.start_encoder(Start(checkpoint=str(folder)), tokenizer, seed=1)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("described", "saved", "message"),
    [
        ({"num_hidden_layers": 3}, 2, r"lacks bert\.encoder\.layer\.2.* and 13 more"),
        ({"num_hidden_layers": 2}, 3, r"has bert\.encoder\.layer\.2.*config\.json"),
        (
            {"intermediate_size": 50},
            2,
            r"shape \[40\], but its config.json requires \[50\]",
        ),
    ],
)
def test_weights_that_do_not_fit_are_refused(tokenizer, tmp_path, described, saved, message):
    BertForMaskedLM(config(saved)).save_pretrained(tmp_path)
    BertConfig(
        **{"vocab_size": 15, "num_hidden_layers": saved, **SIZES, **described}
    ).save_pretrained(tmp_path)
    refused(tmp_path, tokenizer, message)


def test_unreadable_checkpoints_are_refused(tokenizer, tmp_path):
    refused(tmp_path / "nothing", tokenizer, "cannot be read")
    (tmp_path / "empty").mkdir()
    refused(tmp_path / "empty", tokenizer, "cannot be read")
    BertForMaskedLM(config()).save_pretrained(tmp_path / "cut")
    weights = tmp_path / "cut" / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:100])
    refused(tmp_path / "cut", tokenizer, "cannot be read: .*safetensors.* is cut or damaged")
    weights.write_bytes(b"version https://git-lfs.github.com/spec/v1\n")
    refused(tmp_path / "cut", tokenizer, "model.safetensors is a pointer of Git LFS")
    weights.unlink()
    index = tmp_path / "cut" / "model.safetensors.index.json"
    for name, said in (("../secret.safetensors", "outside"), ("part.safetensors", "missing")):
        index.write_text(json.dumps({"weight_map": {"a": name}}))
        refused(tmp_path / "cut", tokenizer, f"{name}.* {said}")
    index.unlink()
    (tmp_path / "cut" / "pytorch_model.bin").write_bytes(pickle.dumps({"x": Evil()}, 2))
    refused(tmp_path / "cut", tokenizer, "is a pickle that contains Python code.*safetensors")
    decoder = config()
    decoder.is_decoder = True
    BertForMaskedLM(decoder).save_pretrained(tmp_path / "decoder")
    refused(tmp_path / "decoder", tokenizer, "is_decoder")


class Evil:
    """What runs code where a pickle of it is read."""

    def __reduce__(self):
        return pytest.fail, ("code ran",)


def test_weights_that_are_no_numbers_are_refused(tokenizer, tmp_path):
    model = BertForMaskedLM(config())
    with torch.no_grad():
        model.bert.encoder.layer[1].output.dense.bias[2] = torch.nan
    model.save_pretrained(tmp_path)
    refused(
        tmp_path,
        tokenizer,
        r"has NaN or infinity in bert\.encoder\.layer\.1\.output\.dense\.bias: it is damaged",
    )


@pytest.mark.parametrize(
    "read",
    [tokenise.load_tokenizer, lambda folder: networks.read("it", folder, "encoder")],
    ids=["tokenizer", "network"],
)
def test_code_that_comes_with_a_checkpoint_is_not_run_and_nobody_is_asked(
    read, tmp_path, monkeypatch, capfd
):
    """Without a model_type that it knows, transformers would ask on the terminal."""
    code = "from transformers import *\nclass C(BertConfig): pass\nclass T(BertTokenizer): pass\n"
    (tmp_path / "evil.py").write_text(code + "open('ran', 'w')")
    classes = {"AutoConfig": "evil.C", "AutoTokenizer": ["evil.T", None]}
    for name in ("config.json", "tokenizer_config.json"):
        (tmp_path / name).write_text(json.dumps({"auto_map": classes}))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("transformers.dynamic_module_utils.HF_MODULES_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr("builtins.input", lambda question: pytest.fail(question))
    with pytest.raises(InputError, match="contains custom code"):
        read(tmp_path)
    assert not (tmp_path / "ran").exists()
    assert "[y/N]" not in "".join(capfd.readouterr())


@pytest.fixture
def at_the_hub(tokenizer, tmp_path, monkeypatch):
    """A hub whose cache has two commits of acme/tiny: the newest one, and v1, with other weights."""
    found = {}
    for commit, name in (("a" * 40, "main"), ("b" * 40, "v1")):
        folder = tmp_path / "models--acme--tiny/snapshots" / commit
        model = BertForMaskedLM(config())
        model.save_pretrained(folder)
        shutil.copytree(
            tokenizer, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("config.json")
        )
        reference = tmp_path / "models--acme--tiny/refs" / name
        reference.parent.mkdir(exist_ok=True)
        reference.write_text(commit)
        found[name] = model.bert.embeddings.word_embeddings.weight
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    return found


@pytest.mark.parametrize(
    ("name", "revision"),
    [("acme/tiny", "main"), ("acme/tiny@v1", "v1")],
)
def test_a_revision_of_a_name_at_the_hub_is_read_and_its_commit_known(
    at_the_hub, tokenizer, tmp_path, name, revision
):
    model = checkpoint.start_encoder(Start(checkpoint=name), tokenizer, seed=1)
    assert torch.equal(model.bert.embeddings.word_embeddings.weight, at_the_hub[revision])
    assert len(tokenise.load_tokenizer(name)) == 15
    commit = {"main": "a", "v1": "b"}[revision] * 40
    assert networks.commits(checkpoint=name, generator="") == {"checkpoint": commit}
    (tmp_path / "about.json").write_text(
        json.dumps({"commits": {"checkpoint": commit}})
    )  # of an encoder made of it
    assert networks.commits(checkpoint=tmp_path) == {"checkpoint": commit}


def test_other_kinds_and_small_vocabularies_are_refused(tokenizer, tmp_path):
    GPT2Config().save_pretrained(tmp_path / "other")
    refused(tmp_path / "other", tokenizer, "'gpt2'; expected bert, electra")
    (tmp_path / "other/config.json").write_text(
        '{"model_type": "eurobert", "auto_map": {"AutoConfig": "a.B"}}'
    )
    refused(
        tmp_path / "other", tokenizer, "'eurobert'; expected bert, electra"
    )  # its own code is not asked for
    BertForMaskedLM(config(vocabulary=14)).save_pretrained(tmp_path / "small")
    refused(
        tmp_path / "small",
        tokenizer,
        "has a vocabulary of 14 word-pieces, but its tokenizer in .* has 15",
    )


@pytest.mark.parametrize(
    "text",
    [
        '{"model_type": "bert", "num_attention_heads": 0}',
        '{"model_type": ["bert"]}',
        "{",
    ],
)
def test_a_broken_config_ends_in_one_sentence(tokenizer, tmp_path, text):
    """Whatever Python's error is: a config at the hub is not looked at before its job."""
    BertForMaskedLM(config()).save_pretrained(tmp_path)
    (tmp_path / "config.json").write_text(text)
    refused(tmp_path, tokenizer, "^the checkpoint .* (cannot be read|has the model type)")
