"""Initial weights: checkpoints of the hub and in folders, and checkpoints that are refused."""

import json
import pickle
import shutil

import pytest
import torch
from transformers import BertConfig, BertForMaskedLM, BertTokenizer, GPT2Config

from cdmae.config.starts import Start
from cdmae.errors import InputError
from cdmae.models import checkpoint, networks
from cdmae.tokens import tokenise
from cdmae.tokens.vocabulary import read_pieces
from workflow.scripts.tokenizer import main as make_tokenizer

SIZES = {"hidden_size": 24, "num_attention_heads": 3, "intermediate_size": 40}


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tokenizer")
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abcdefghij"]
    vocabulary = {piece: index for index, piece in enumerate(pieces)}
    BertTokenizer(vocab=vocabulary).save_pretrained(folder)
    return folder


def config(layers=2, vocabulary=15):
    return BertConfig(vocab_size=vocabulary, num_hidden_layers=layers, **SIZES)


def test_a_revision_of_a_name_at_the_hub_is_read_and_its_commit_known(
    tokenizer, tmp_path, monkeypatch
):
    """Of a hub whose cache has two commits of acme/tiny: the newest one, and v1."""
    weights = {}
    commits = {"main": "a" * 40, "v1": "b" * 40}
    for name, commit in commits.items():
        folder = tmp_path / "models--acme--tiny/snapshots" / commit
        model = BertForMaskedLM(config())
        model.save_pretrained(folder)
        hidden = shutil.ignore_patterns("config.json")
        shutil.copytree(tokenizer, folder, dirs_exist_ok=True, ignore=hidden)
        reference = tmp_path / "models--acme--tiny/refs" / name
        reference.parent.mkdir(exist_ok=True)
        reference.write_text(commit)
        weights[name] = model.bert.embeddings.word_embeddings.weight
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    for name, revision in (("acme/tiny", "main"), ("acme/tiny@v1", "v1")):
        model = checkpoint.start_encoder(Start(checkpoint=name), tokenizer, seed=1)
        assert torch.equal(model.bert.embeddings.word_embeddings.weight, weights[revision])
        assert len(tokenise.load_tokenizer(name)) == 15
        commit = {"checkpoint": commits[revision]}
        assert networks.commits(checkpoint=name, generator="") == commit
    (tmp_path / "about.json").write_text(json.dumps({"commits": commit}))  # of an encoder here
    assert networks.commits(checkpoint=tmp_path) == commit


def test_the_tokenizer_of_a_checkpoint_is_copied(tokenizer, tmp_path):
    make_tokenizer(settings={"checkpoint": str(tokenizer)}, passages=None, output=tmp_path / "copy")
    assert read_pieces(tmp_path / "copy") == read_pieces(tokenizer)


# --- refusals -------------------------------------------------------------------------------------


class Evil:
    """What runs code where a pickle of it is read."""

    def __reduce__(self):
        return pytest.fail, ("code ran",)


def deeper(folder):
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"num_hidden_layers": 3}))


def pickled(folder):
    (folder / "model.safetensors").unlink()
    (folder / "pytorch_model.bin").write_bytes(pickle.dumps({"x": Evil()}, 2))


def cut(folder):
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:100])


def without_numbers(folder):
    model = BertForMaskedLM.from_pretrained(folder)
    with torch.no_grad():
        model.bert.encoder.layer[1].output.dense.bias[2] = torch.nan
    model.save_pretrained(folder)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (cut, "cannot be read: .*safetensors.* is damaged .*git lfs pull"),
        (pickled, "cannot be read"),
        (deeper, r"lacks bert\.encoder\.layer\.2.* and 13 more"),
        (without_numbers, r"has NaN or infinity in bert\.encoder\.layer\.1\.output\.dense\.bias"),
        (lambda folder: GPT2Config().save_pretrained(folder), "'gpt2'; expected bert, electra"),
        (
            lambda folder: BertForMaskedLM(config(vocabulary=14)).save_pretrained(folder),
            "has a vocabulary of 14 word-pieces, but its tokenizer in .* has 15",
        ),
    ],
)
def test_a_checkpoint_that_cannot_be_trained_is_refused(tokenizer, tmp_path, change, message):
    folder = tmp_path / "checkpoint"
    BertForMaskedLM(config()).save_pretrained(folder)
    change(folder)
    with pytest.raises(InputError, match=message) as caught:
        checkpoint.start_encoder(Start(checkpoint=str(folder)), tokenizer, seed=1)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "read",
    [tokenise.load_tokenizer, lambda folder: networks.read("it", folder, "encoder")],
    ids=["tokenizer", "network"],
)
def test_code_that_comes_with_a_checkpoint_is_not_run(read, tmp_path, monkeypatch):
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
