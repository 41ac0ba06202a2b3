"""Third-party models: what is wrong in their folders is found before the first job."""

import json
import os
import shutil
import struct
from pathlib import Path

import pytest
from made_up import make_model, make_weights

from cdmae.config import pretrained
from cdmae.config.load import load
from cdmae.config.reading import gather
from cdmae.errors import InputError
from cdmae.plan import flops


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


def bytes_in(name, content):
    return lambda folder: (folder / name).write_bytes(content)


def header(content, length=None):
    """A file of safetensors without weights and with any header."""
    text = content if isinstance(content, bytes) else json.dumps(content).encode()
    return bytes_in(
        "model.safetensors", struct.pack("<Q", len(text) if length is None else length) + text
    )


def replaced(name, make):
    def replace(folder):
        (folder / name).unlink()
        make(folder / name)

    return replace


def index(weight_map):
    """An index of several files in the place of model.safetensors."""

    def write(folder):
        (folder / "model.safetensors").unlink()
        (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": weight_map}))

    return write


def says(**described):
    return writing("config.json", json.dumps({"model_type": "bert", **described}))


def tokenizer(**parts):
    """A tokenizer.json that is right but for some of its parts."""
    kinds = {
        "model": "WordPiece",
        "pre_tokenizer": "BertPreTokenizer",
        "post_processor": "BertProcessing",
    }
    return writing(
        "tokenizer.json", json.dumps({name: {"type": kind} for name, kind in kinds.items()} | parts)
    )


POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n"
TENSOR = {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}
FRAME = "k is ./mine, whose tokenizer does not put one special token before and one after a text"
HERE = "k is ./mine, and {cwd}/mine"
CONFIG = "k is ./mine, whose config.json has"
TOKENIZER = "k is ./mine, whose tokenizer"
CHECKPOINT = [
    (empty, f"{HERE} is empty; allowed: a folder in transformers format, of the type bert, electra, roberta, xlm-"),
    (filled, f"{HERE} contains README.md, corpus.jsonl, queries.jsonl and 2 more but no config.json; allowed: a folder"),
    (shutil.rmtree, f"{HERE} is not a folder; allowed: a folder, or a name at the hub"),
    (writing("config.json", "{"), "k is ./mine, whose config.json is not JSON (Expecting property name enclosed in"),
    (writing("config.json", "[]"), "k is ./mine, whose config.json is not an object; allowed: a folder"),
    (writing("config.json", "{}"), "k is ./mine, whose config.json has no model_type; allowed: bert, electra"),
    (writing("config.json", '{"model_type": "nomic"}'), f"{CONFIG} model_type nomic; allow"),
    (without("model.safetensors"), f"{HERE} contains config.json, tokenizer.json but no weights (model.safetensors or py"),
    (without("tokenizer.json"), f"{HERE} contains config.json, model.safetensors but no tokenizer.json or vocab.txt or v"),
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
     f"{TOKENIZER} does not put one special token before and one after a text; allowed"),
]  # fmt: skip
WEIGHTS = [
    (bytes_in("model.safetensors", POINTER),
     "k is ./mine, whose model.safetensors is a pointer of Git LFS and not the file itself; run `git lfs pull` in the"),
    (bytes_in("model.safetensors", b""), "k is ./mine, whose model.safetensors is empty (0 bytes); allowed"),
    (bytes_in("model.safetensors", b"1234"), "k is ./mine, whose model.safetensors is cut, or not in the format of"),
    (header(b"{}", 2**63), "k is ./mine, whose model.safetensors is cut, or not in the format of safetensors"),
    (header(b"{]"), "k is ./mine, whose model.safetensors is not in the format of safetensors: its header is not"),
    (header(b"[" * 10**5), "k is ./mine, whose model.safetensors is not in the format of safetensors: its header"),
    (header([]), "k is ./mine, whose model.safetensors is not in the format of safetensors: its header is not"),
    (header({"a": TENSOR}), "k is ./mine, whose model.safetensors is cut or damaged: it should have "),
    (header({"a": {**TENSOR, "shape": [2**62, 9]}}), 'k is ./mine, whose model.safetensors is damaged: its header des'),
    (header({"a": {**TENSOR, "shape": [-2]}}), 'k is ./mine, whose model.safetensors is damaged: its header describes'),
    (header({"a": {**TENSOR, "data_offsets": [8]}}), 'k is ./mine, whose model.safetensors is damaged: its header des'),
    (header({"a": []}), 'k is ./mine, whose model.safetensors is damaged: its header describes "a" wrongly'),
    (header({"a": TENSOR, "b": TENSOR}), "k is ./mine, whose model.safetensors is damaged: its weights overlap"),
    (replaced("model.safetensors", Path.mkdir), "k is ./mine, whose model.safetensors is a folder; allowed"),
    (replaced("model.safetensors", os.mkfifo), "k is ./mine, whose model.safetensors is not a regular file; allowed"),
    (replaced("model.safetensors", lambda path: path.symlink_to("nobody")),
     "k is ./mine, whose model.safetensors is a link to a file that does not exist; allowed"),
    (index({"a": "../mine/x.safetensors"}),
     'k is ./mine, whose model.safetensors.index.json names "../mine/x.safetensors", a file outside of the model\'s'),
    (index({"a": "/etc/passwd"}), 'k is ./mine, whose model.safetensors.index.json names "/etc/passwd", a file outsid'),
    (index({"a": "none.safetensors"}), "k is ./mine, whose none.safetensors is missing; allowed"),
    (index([]), "k is ./mine, whose model.safetensors.index.json has no weight_map that names a file for each weight"),
    (index({"a": 1}), "k is ./mine, whose model.safetensors.index.json has no weight_map that names a file for each"),
    (replaced("model.safetensors", lambda path: path.with_name("pytorch_model.bin").write_bytes(b"PK\3\4")),
     "k is ./mine, whose pytorch_model.bin is cut or damaged: it has no end of an archive (4 bytes)"),
    (replaced("model.safetensors", lambda path: path.with_name("pytorch_model.bin").write_bytes(b"<html>")),
     "k is ./mine, whose pytorch_model.bin is not a file of PyTorch's weights; allowed"),
]  # fmt: skip
CHECKPOINT += WEIGHTS + [
    (bytes_in("config.json", POINTER), "k is ./mine, whose config.json is a pointer of Git LFS and not the file"),
    (bytes_in("tokenizer.json", POINTER), "k is ./mine, whose tokenizer.json is a pointer of Git LFS and not the file"),
    (replaced("config.json", os.mkfifo), "k is ./mine, whose config.json is not a regular file; allowed: a folder"),
    (replaced("tokenizer.json", Path.mkdir), "k is ./mine, whose tokenizer.json is a folder; allowed: a folder"),
    (says(model_type=["bert"]), f'{CONFIG} model_type ["bert"]; allowed: bert'),
    (says(model_type={}), CONFIG + " model_type {{}}; allowed: bert"),
    (says(type_vocab_size=10**9), f"{CONFIG} type_vocab_size 1000000000; allowed: from 1 to 1,000"),
    (says(num_labels=10**9), f"{CONFIG} num_labels 1000000000; allowed: from 1 to 65,536"),
    (says(pad_token_id=-5), f"{CONFIG} pad_token_id -5; allowed: from 0 to"),
    (says(pad_token_id=9, vocab_size=9), f"{CONFIG} pad_token_id 9; allowed: from 0 to 8"),
    (says(hidden_size=8, num_attention_heads=3), f"{CONFIG} 3 attention heads and a width of 8; allowed: heads that"),
    (says(model_type="distilbert", dim=8, n_heads=3), f"{CONFIG} 3 attention heads and a width of 8; allowed: heads"),
    (says(layer_norm_eps="x"), f"{CONFIG} layer_norm_eps x; allowed: a number from 0"),
    (says(hidden_dropout_prob=7), f"{CONFIG} hidden_dropout_prob 7; allowed: from 0 to 1"),
    (says(dtype="os.system"), f"{CONFIG} dtype os.system; allowed: float32, float16, bfloat16, float64"),
    (says(torch_dtype="float8_e4m3fn"), f"{CONFIG} torch_dtype float8_e4m3fn; allowed: float32, float16"),
    (says(is_decoder=True), f"{CONFIG} is_decoder true; allowed: false"),
    (says(position_embedding_type="relative_key"), f"{CONFIG} position_embedding_type relative_key; allowed: absolut"),
    (says(num_hidden_layers=2), "k is ./mine, whose weights have 1 layers, but its config.json gives 2; allow"),
    (writing("tokenizer.json", "[]"), "k is ./mine, whose tokenizer.json is not an object; allowed"),
    (writing("tokenizer_config.json", "[]"), "k is ./mine, whose tokenizer_config.json is not an object; allowed"),
    (tokenizer(model=[1]), f"{TOKENIZER} is of the type null; allowed: WordPiece, BPE, Unigram"),
    (tokenizer(model={"type": ["BPE"]}), f'{TOKENIZER} is of the type ["BPE"]; allowed: WordPiece, BPE, Unigram'),
    *((tokenizer(post_processor=part), FRAME) for part in (
        [1], "x", {"type": "TemplateProcessing"}, {"type": "TemplateProcessing", "single": None},
        {"type": "TemplateProcessing", "single": [{}]}, {"type": "TemplateProcessing", "single": [1, 2, 3]},
        {"type": "Sequence", "processors": None}, {"type": "Sequence", "processors": ["x"]},
    )),
    *((tokenizer(added_tokens=tokens), f"{TOKENIZER} has added_tokens that are not a list of tokens with an id and cont")
      for tokens in (None, {}, [1], [{"id": 0}], [{"id": 0, "content": 1}])),
    (tokenizer(added_tokens=[{"id": -1, "content": "x"}]), f"{TOKENIZER} has the id -1 for a word-piece; allowed: fr"),
    (tokenizer(model={"type": "BPE", "vocab": []}), f"{TOKENIZER} has a vocab that is not an object"),
    (tokenizer(model={"type": "Unigram", "vocab": {}}), f"{TOKENIZER} has a vocab that is not a list"),
    (tokenizer(model={"type": "WordPiece", "vocab": {"a": 4_000_000_000}}),
     f"{TOKENIZER} has the id 4000000000 for a word-piece; allowed: from 0 to 16,777,215"),
    (tokenizer(model={"type": "WordPiece", "vocab": {"a": "0"}}), f'{TOKENIZER} has the id "0" for a word-piece; all'),
]  # fmt: skip
RETRIEVER = [
    (
        empty,
        f"{HERE} is empty; allowed: a folder in the format of sentence-transformers or transformers, or a",
    ),
    (
        filled,
        f"{HERE} contains README.md, corpus.jsonl, queries.jsonl and 2 more but no modules.json or config.json",
    ),
    (shutil.rmtree, f"{HERE} is not a folder; allowed: a folder, or a name at the hub"),
    (
        writing("config.json", "{}"),
        "k is ./mine, whose config.json has no model_type; allowed: a folder in the",
    ),
    (
        writing("modules.json", "{}"),
        "k is ./mine, whose modules.json is not a list; allowed: a folder",
    ),
    (
        without("model.safetensors"),
        f"{HERE} contains config.json, tokenizer.json but no weights (model.safetensors",
    ),
    (
        bytes_in("config.json", POINTER),
        "k is ./mine, whose config.json is a pointer of Git LFS and not the file",
    ),
    (says(model_type=["bert"]), "k is ./mine, whose config.json has no model_type; allowed"),
    (
        writing("modules.json", "[1]"),
        "k is ./mine, whose modules.json contains something other than modules with a path",
    ),
    *WEIGHTS,
]


@pytest.mark.parametrize(
    ("check", "spoil", "said"),
    [(pretrained.check, *case) for case in CHECKPOINT]
    + [(pretrained.check_retriever, *case) for case in RETRIEVER],
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


SIZES = {
    "num_hidden_layers": 1, "hidden_size": 8, "intermediate_size": 16, "vocab_size": 40, "max_position_embeddings": 32,
    "type_vocab_size": 2,
}  # fmt: skip
STORED = {
    "embeddings.word_embeddings.weight": (40, 8), "embeddings.position_embeddings.weight": (32, 8),
    "embeddings.token_type_embeddings.weight": (2, 8), "encoder.layer.0.intermediate.dense.weight": (16, 8),
}  # fmt: skip


@pytest.mark.parametrize("base", ["bert.", ""])
def test_weights_have_the_sizes_that_config_json_says(folder, base):
    stored = {base + name: shape for name, shape in STORED.items()}
    make_weights("mine/model.safetensors", stored)
    says(**SIZES)(folder)
    pretrained.check("mine", ("k",))
    for key in SIZES.keys() - {"num_hidden_layers"}:
        says(**SIZES | {key: 2 * SIZES[key]})(folder)
        with pytest.raises(
            InputError,
            match=rf"^k is mine, whose {base}.* has the size \[.*json gives \[.*; allowed",
        ):
            pretrained.check("mine", ("k",))
    says(**SIZES)(folder)
    make_weights("mine/model.safetensors", stored, "I8", 1)
    with pytest.raises(
        InputError, match="^k is mine, which has .* of the type I8 .allowed: F64, F32, F16, BF16"
    ):
        pretrained.check("mine", ("k",))
    make_weights("mine/model.safetensors", dict.fromkeys(stored, (8,)))
    with pytest.raises(
        InputError, match=r"^k is mine, whose .* has the size \[8\], but its config.json gives"
    ):
        pretrained.check("mine", ("k",))
    make_weights("mine/model.safetensors", {"../x": (8,)})
    with pytest.raises(
        InputError,
        match="^k is mine, whose weights have 0 layers, but its config.json gives 1",
    ):
        pretrained.check("mine", ("k",))


def test_pickles_are_at_least_as_long_as_their_weights(folder):
    """They are not opened; sizes beyond those of the file would be asked of the memory."""
    (folder / "model.safetensors").unlink()
    (folder / "pytorch_model.bin").write_bytes(b"\x80\x02" + bytes(2000))
    says(**SIZES)(folder)
    pretrained.check("mine", ("k",))
    says(**SIZES | {"hidden_size": 2**16, "num_hidden_layers": 1000})(folder)
    with pytest.raises(
        InputError,
        match="^k is mine, whose weights have 2,002 bytes, but its config.json needs at least",
    ):
        pretrained.check("mine", ("k",))


def test_weights_in_several_files_are_whole_each(folder):
    (folder / "model.safetensors").rename(folder / "one.safetensors")
    make_weights("mine/two.safetensors", {"b": (1,)})
    names = {"bert.encoder.layer.0.x": "one.safetensors", "b": "two.safetensors"}
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": names}))
    pretrained.check("mine", ("k",))
    (folder / "two.safetensors").write_bytes(POINTER)
    with pytest.raises(
        InputError, match="^k is mine, whose two.safetensors is a pointer of Git LFS"
    ):
        pretrained.check("mine", ("k",))


def test_a_tokenizer_has_no_ids_beyond_the_vocabulary_of_its_model(folder):
    says(vocab_size=40)(folder)
    tokenizer(model={"type": "WordPiece", "vocab": {"a": 39}})(folder)
    pretrained.check("mine", ("k",))
    tokenizer(model={"type": "WordPiece", "vocab": {"a": 40}})(folder)
    with pytest.raises(
        InputError,
        match="has the id 40 for a word-piece; allowed: from 0 to 39, the word-pieces of",
    ):
        pretrained.check("mine", ("k",))


def test_a_retriever_s_own_words_for_its_sizes_stop_no_plan(folder):
    """Only the jobs, which load it, know all types."""
    says(model_type=["x"], hidden_size="wide", max_position_embeddings=[1], num_hidden_layers=3)(
        folder
    )
    (folder / "sentence_bert_config.json").write_text('{"max_seq_length": "long"}')
    assert pretrained.positions("mine") is None
    assert flops.longest("mine") == 512
    (folder / "sentence_bert_config.json").write_text("[]")
    assert flops.longest("mine") == 512
    assert flops.Network.read("mine") == flops.Network(layers=3)


def test_names_that_no_file_system_takes_are_refused_in_a_sentence(folder):
    for name in ("a" * 5000, "./" + "a" * 5000, "\0"):
        with pytest.raises(InputError, match="^k is "):
            pretrained.check(name, ("k",))


def test_a_name_at_the_hub_may_have_a_revision(folder):
    for name in ("a/b@v1", "a/b@0123abc", "bert@refs/pr/1"):
        pretrained.check(name, ("k",))
        assert "@".join(pretrained.divided(name)) == name
    assert pretrained.divided("a/b") == ("a/b", "main")
    make_model("own@v1")
    assert pretrained.divided("own@v1") == ("own@v1", "main")
    for name in ("a/b@", "a/b@v 1", "@v1"):
        with pytest.raises(InputError, match="allowed: a folder, or a name at the hub"):
            pretrained.check(name, ("k",))


@pytest.mark.parametrize("check", [pretrained.check, pretrained.check_retriever])
def test_names_at_the_hub_are_not_looked_at_and_paths_are_none(folder, check):
    for name in ("bert-base-uncased", "Shitao/RetroMAE", "mine2"):
        check(name, ("k",))
    for name in ("mine/model", "results/models/cdmae", "a b", "/mine"):
        with pytest.raises(
            InputError,
            match=f"^k is {name}, and /.* is not a folder; allowed: a folder, or a name at",
        ):
            check(name, ("k",))


@pytest.mark.parametrize(
    "key", ["systems.foreign.model", "starts.own.checkpoint", "encoders.simlm.generator"]
)
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
    line = 1 + [each.strip() for each in Path("own.yaml").read_text().splitlines()].index(
        f'"{setting}": "empty"'
    )
    assert str(refused.value).startswith(
        f"own.yaml, line {line}: {key} is empty, and {Path.cwd()}/empty is empty; allowed: a folder"
    )


def test_a_sparse_head_needs_a_language_model_head(folder, values):
    """In the checkpoint, or from pre-training; also of a third-party model."""
    values["starts"]["own"] = {"checkpoint": "mine"}
    values["encoders"]["bare"] = {"objective": "none", "start": "own"}
    values["stages"]["sparse"] = {"kind": "retriever", "head": "sparse", "depth": 50}
    values["systems"]["sparse"] = {
        "kind": "retriever", "encoder": "bare", "stage": "sparse", "negatives": "bm25",
    }  # fmt: skip
    with pytest.raises(
        InputError,
        match="systems.sparse.stage is sparse, whose head is sparse, but mine, the checkpoint of "
        "bare, has no language-model head; allowed: a checkpoint with one, a stage with pieces own",
    ):
        load(values)
    values["stages"]["sparse"]["pieces"] = "own"
    load(values)
    values["systems"]["sparse"]["engine"] = "bm25"
    with pytest.raises(InputError, match="systems.sparse.engine is bm25, but the stage sparse has"):
        load(values)
    values["stages"]["sparse"]["target"] = "recall"
    load(values)
    del values["stages"]["sparse"]["pieces"], values["stages"]["sparse"]["target"]
    del values["systems"]["sparse"]["engine"]
    values["systems"]["sparse"]["encoder"] = "mae"
    load(values)
    values["systems"]["foreign"] |= {"model": "mine", "head": "sparse"}
    with pytest.raises(
        InputError,
        match="systems.foreign.head is sparse, but mine has no language-model head; allowed: auto",
    ):
        load(values)
    make_weights(folder / "model.safetensors", {"cls.predictions.bias": (1,)})
    values["systems"]["foreign"]["engine"] = "lucene"
    config = load(values)
    assert config.systems["foreign"].head == "sparse"
    (folder / "modules.json").write_text("[]")
    with pytest.raises(InputError, match="head is sparse, but the modules of mine make dense vec"):
        load(values)
    (folder / "modules.json").unlink()
    values["evaluation"]["keep_vectors"] = False
    with pytest.raises(InputError, match="engine is lucene, but evaluation.keep_vectors is false"):
        load(values)
    values["systems"]["one"]["engine"] = "lucene"
    with pytest.raises(
        InputError,
        match="systems.one.engine is lucene, but nothing in the config says that the vec",
    ):
        load(values)
