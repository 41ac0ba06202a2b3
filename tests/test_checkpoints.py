"""Models of others: what their folders lack is told before the first job."""

import json
import shutil
from pathlib import Path

import pytest
from made_up import make_model

from cdmae.config import pretrained
from cdmae.config.load import gather, load
from cdmae.errors import InputError


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The working directory, in which `mine` is a model."""
    monkeypatch.chdir(tmp_path)
    make_model("mine")
    return Path("mine")


def empty(folder):
    shutil.rmtree(folder)
    folder.mkdir()


def filled(folder):
    empty(folder)
    for name in ("README.md", "corpus.jsonl", "queries.jsonl", "x.txt", "y.txt"):
        (folder / name).touch()


def writing(name, text):
    return lambda folder: (folder / name).write_text(text)


def without(*names):
    return lambda folder: [(folder / name).unlink() for name in names]


HERE = "k is ./mine, and {cwd}/mine"
CONFIG = "k is ./mine, whose config.json says"
TOKENIZER = "k is ./mine, whose tokenizer"
CHECKPOINT = [
    (empty, f"{HERE} is empty; allowed: a folder in transformers format, of the type bert, electra, roberta, xlm-"),
    (filled, f"{HERE} holds README.md, corpus.jsonl, queries.jsonl and 2 more but no config.json; allowed: a folder"),
    (shutil.rmtree, f"{HERE} is no folder; allowed: a folder, or a name at the hub"),
    (writing("config.json", "{"), "k is ./mine, whose config.json is not JSON (Expecting property name enclosed in"),
    (writing("config.json", "[]"), "k is ./mine, whose config.json holds no object; allowed: a folder"),
    (writing("config.json", "{}"), "k is ./mine, whose config.json tells no model_type; allowed: bert, electra"),
    (writing("config.json", '{"model_type": "nomic"}'), f"{CONFIG} model_type nomic; allow"),
    (without("model.safetensors"), f"{HERE} holds config.json, tokenizer.json but no weights (model.safetensors or py"),
    (without("tokenizer.json"), f"{HERE} holds config.json, model.safetensors but no tokenizer.json or vocab.txt or v"),
    (writing("config.json", '{"model_type": "distilbert", "n_layers": 0}'), f"{CONFIG} n_layers 0; allowed: from 1 to"),
    (writing("config.json", '{"model_type": "bert", "hidden_size": "32"}'), f'{CONFIG} hidden_size "32"; allowed: fr'),
    (writing("config.json", '{"model_type": "electra", "num_hidden_layers": 1000000000000}'),
     f"{CONFIG} num_hidden_layers 1000000000000; allowed: from 1 to 1,000"),
    (writing("config.json", '{"model_type": "bert", "hidden_act": "gelu_new"}'),
     f"{CONFIG} hidden_act gelu_new; allowed: gelu, relu, silu"),
    (writing("tokenizer.json", '{"model": {"type": "WordLevel"}}'),
     f"{TOKENIZER} is of the type WordLevel; allowed: WordPiece, BPE, Unigram"),
    (writing("tokenizer.json", '{"model": {"type": "BPE"}}'),
     f"{TOKENIZER} does not divide texts into words: it has no pre_tokenizer; allowed"),
    (writing("tokenizer.json", '{"model": {"type": "BPE"}, "pre_tokenizer": {"type": "ByteLevel"}}'),
     f"{TOKENIZER} does not put one special token before and one behind a text; allowed"),
]  # fmt: skip
RETRIEVER = [
    (empty, f"{HERE} is empty; allowed: a folder in the format of sentence-transformers or transformers, or a"),
    (filled, f"{HERE} holds README.md, corpus.jsonl, queries.jsonl and 2 more but no modules.json or config.json"),
    (shutil.rmtree, f"{HERE} is no folder; allowed: a folder, or a name at the hub"),
    (writing("config.json", "{}"), "k is ./mine, whose config.json tells no model_type; allowed: a folder in the"),
    (writing("modules.json", "{}"), "k is ./mine, whose modules.json holds no list; allowed: a folder"),
    (without("model.safetensors"), f"{HERE} holds config.json, tokenizer.json but no weights (model.safetensors"),
]


@pytest.mark.parametrize(
    ("check", "spoil", "said"),
    [(pretrained.check, *case) for case in CHECKPOINT] + [(pretrained.check_retriever, *case) for case in RETRIEVER],
)
def test_what_was_right_is_refused_once_it_is_spoilt(folder, check, spoil, said):
    check("./mine", ("k",))
    spoil(folder)
    with pytest.raises(InputError) as refused:
        check("./mine", ("k",))
    assert str(refused.value).startswith(said.format(cwd=Path.cwd()))


def test_a_foreign_retriever_may_be_of_any_type_with_its_weights_in_a_part_of_its_own(folder):
    make_model(folder, model_type="nomic")
    pretrained.check_retriever("mine", ("k",))
    (folder / "0_StaticEmbedding").mkdir()
    (folder / "model.safetensors").rename(folder / "0_StaticEmbedding/model.safetensors")
    (folder / "config.json").unlink()
    (folder / "modules.json").write_text(json.dumps([{"path": "0_StaticEmbedding"}]))
    pretrained.check_retriever("mine", ("k",))


@pytest.mark.parametrize("check", [pretrained.check, pretrained.check_retriever])
def test_names_at_the_hub_are_not_looked_at_and_paths_are_none(folder, check):
    for name in ("bert-base-uncased", "Shitao/RetroMAE", "mine2"):
        check(name, ("k",))
    for name in ("mine/model", "results/models/cdmae", "a b", "/mine"):
        with pytest.raises(InputError, match=f"^k is {name}, and /.* is no folder; allowed: a folder, or a name at"):
            check(name, ("k",))


@pytest.mark.parametrize("key", ["systems.foreign.model", "starts.own.checkpoint", "encoders.simlm.generator"])
def test_the_config_names_the_file_and_line_of_a_folder_that_is_no_model(values, folder, key):
    values["starts"]["own"] = {"checkpoint": "mine"}
    values["encoders"]["simlm"] = {"objective": "simlm", "start": "own", "generator": "mine"}
    values["systems"]["foreign"]["model"] = "mine"
    load(values)
    section, name, setting = key.split(".")
    Path("empty").mkdir()
    values[section][name][setting] = "empty"
    Path("own.yaml").write_text(json.dumps(values, indent=1))
    with pytest.raises(InputError) as refused:
        load(gather("own.yaml"))
    line = 1 + [each.strip() for each in Path("own.yaml").read_text().splitlines()].index(f'"{setting}": "empty"')
    assert str(refused.value).startswith(
        f"own.yaml, line {line}: {key} is empty, and {Path.cwd()}/empty is empty; allowed: a folder"
    )
