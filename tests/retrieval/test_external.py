"""Foreign models: their own prompts, pooling and normalisation; what cannot be loaded ends in a
sentence.
"""

import json
import shutil

import numpy as np
import pyarrow as pa
import pytest

from cdmae.collections.store import Collection, write_collection
from cdmae.errors import InputError
from cdmae.retrieval import external, vectors
from cdmae.retrieval.vectors import read_vectors

WORDS = [
    "[PAD]",
    "[UNK]",
    "[CLS]",
    "[SEP]",
    "[MASK]",
    "ask",
    "say",
    ":",
    "ant",
    "bee",
    "cow",
    "dog",
]


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A tiny BERT with mean pooling, compared by cosine, whose queries and passages get prompts."""
    import torch
    from sentence_transformers import SentenceTransformer
    from transformers import BertConfig, BertModel, BertTokenizerFast

    bare, folder = tmp_path_factory.mktemp("bare"), tmp_path_factory.mktemp("model")
    (bare / "vocab.txt").write_text("\n".join(WORDS))
    BertTokenizerFast(str(bare / "vocab.txt")).save_pretrained(bare)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        size = {
            "hidden_size": 8,
            "num_hidden_layers": 1,
            "num_attention_heads": 2,
            "intermediate_size": 8,
        }
        BertModel(
            BertConfig(vocab_size=len(WORDS), max_position_embeddings=16, **size)
        ).save_pretrained(bare)
    built = SentenceTransformer(str(bare), device="cpu")
    built.prompts = {"query": "ask : ", "document": "say : "}
    built.save(str(folder))
    return folder


@pytest.fixture
def collection(tmp_path):
    texts = ["bee cow", "dog", "cow dog " * 20]
    passages = pa.table({"passage_id": ["a", "b", "c"], "title": ["ant", "", "bee"], "text": texts})
    write_collection(tmp_path / "docs", Collection(passages, {}, {}, {}))
    return tmp_path / "docs"


def test_prompts_of_the_config_come_before_those_of_the_model(model, collection):
    from sentence_transformers import SentenceTransformer

    own = SentenceTransformer(str(model), device="cpu")
    expected = own.encode(["say : ant bee"], prompt="", normalize_embeddings=True)
    np.testing.assert_allclose(
        external.encode_queries(str(model), ["ant bee"], 0, "say : "), expected, atol=1e-6
    )
    texts = [f"ask : {text}" for text in ("ant bee cow", "dog", "bee " + "cow dog " * 20)]
    (shard,) = external.shards(str(model), collection, 0, prompt="ask : ")
    np.testing.assert_allclose(
        shard[:], own.encode(texts, prompt="", normalize_embeddings=True), atol=1e-6
    )


@pytest.mark.parametrize(
    ("length", "prompt"), [(1, ""), (2, ""), (4, "ask : "), (0, "ask : " * 20)]
)
def test_a_prompt_that_leaves_no_room_for_a_text_is_refused(model, collection, length, prompt):
    with pytest.raises(InputError, match="allowed: a shorter prompt, or a length above"):
        external.encode_queries(str(model), ["ant bee", "dog"], length, prompt)
    (shard,) = external.shards(str(model), collection, length, prompt=prompt)
    with pytest.raises(InputError, match="allowed: a shorter prompt, or a length above"):
        shard[:]


def test_passages_and_queries_are_encoded_the_models_own_way(
    model, collection, tmp_path, monkeypatch
):
    from sentence_transformers import SentenceTransformer

    monkeypatch.setattr(vectors, "SHARD", 2)
    external.encode_passages(str(model), collection, tmp_path / "vectors", 0)
    shards = read_vectors(tmp_path / "vectors")
    assert [shard.shape for shard in shards] == [(2, 8), (1, 8)]
    encoded = np.concatenate([shard[:] for shard in shards])
    assert encoded.dtype == np.float32
    for kept, made in zip(shards, external.shards(str(model), collection, 0), strict=True):
        assert made.shape == kept.shape
        np.testing.assert_array_equal(made[:], kept[:])
    own = SentenceTransformer(str(model), device="cpu")
    texts = ["ant bee cow", "dog", "bee " + "cow dog " * 20]
    expected = own.encode([f"say : {text}" for text in texts], normalize_embeddings=True)
    np.testing.assert_allclose(encoded, expected, atol=1e-6)
    queries = external.encode_queries(str(model), ["ant", "bee cow"], 0)
    expected = own.encode(["ask : ant", "ask : bee cow"], normalize_embeddings=True)
    np.testing.assert_allclose(queries, expected, atol=1e-6)
    np.testing.assert_allclose(np.linalg.norm(queries, axis=1), 1, atol=1e-6)


def test_lengths_cut_and_one_beyond_the_models_own_is_said_to_have_no_effect(model, capsys):
    external.encode_queries(str(model), ["ant bee"], 512)
    said = (
        "the model has a max_seq_length of 16 word-pieces: texts are cut at this length, not at 512"
    )
    assert said in capsys.readouterr().err
    external.encode_queries(str(model), ["ant bee"], 16)
    assert "word-pieces" not in capsys.readouterr().err
    whole = external.encode_queries(str(model), ["ant bee cow dog", "ant bee"], 0)
    cut = external.encode_queries(
        str(model), ["ant bee cow dog", "ant bee"], 6
    )  # [CLS] ask : ant bee [SEP]
    np.testing.assert_allclose(cut, whole[[1, 1]], atol=1e-6)
    assert external.encode_queries(str(model), [], 0).shape == (0, 8)


def test_lengths_cut_below_those_that_a_model_has_for_each_task(model, tmp_path, capsys):
    shutil.copytree(model, tmp_path / "two")
    (tmp_path / "two" / "sentence_bert_config.json").write_text(
        '{"query_length": 7, "document_length": 9}'
    )
    texts = ["ant bee cow dog", "ant bee cow", "ant bee"]
    whole = external.encode_queries(str(model), texts, 0)
    for length, kept in {0: 1, 6: 2, 7: 1, 12: 1}.items():  # [CLS] ask : ... [SEP]
        cut = external.encode_queries(str(tmp_path / "two"), texts, length)
        np.testing.assert_allclose(cut[0], whole[kept], atol=1e-6)
    capsys.readouterr()
    external.encode_queries(str(tmp_path / "two"), ["ant bee"], 8)
    said = capsys.readouterr().err
    assert (
        "the model has a query_length of 7 word-pieces: texts are cut at this length, not at 8"
        in said
    )
    assert "document_length" not in said


def test_models_made_for_a_distance_are_refused(model, tmp_path):
    shutil.copytree(model, tmp_path / "far")
    path = tmp_path / "far" / "config_sentence_transformers.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "similarity_fn_name": "euclidean"}))
    with pytest.raises(InputError, match="compares vectors by euclidean; allowed: dot, cosine"):
        external.load(str(tmp_path / "far"))


def test_vectors_that_are_no_numbers_are_refused_where_they_are_made(model, collection, tmp_path):
    from safetensors.numpy import load_file, save_file

    folder = shutil.copytree(model, tmp_path / "damaged")
    weights = {
        name: weight.copy() for name, weight in load_file(folder / "model.safetensors").items()
    }
    weights["embeddings.word_embeddings.weight"][-1] = np.nan
    save_file(weights, folder / "model.safetensors", {"format": "pt"})
    with pytest.raises(
        InputError, match=f"^the model {folder} returns vectors with NaN or infinity: it is damaged"
    ):
        external.encode_passages(str(folder), collection, tmp_path / "vectors", 0)
    assert not (tmp_path / "vectors").exists()


@pytest.mark.parametrize("length", [-1, 0, "long"])
def test_lengths_that_are_none_are_refused(model, tmp_path, length):
    folder = shutil.copytree(model, tmp_path / "odd")
    (folder / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": length}))
    with pytest.raises(
        InputError, match=f"^(sentence-transformers cannot load )?the model {folder}"
    ):
        external.encode_queries(str(folder), ["ant"], 0)


def test_what_a_library_cannot_encode_ends_in_a_sentence(model, tmp_path):
    """Here positions that the model does not have."""
    folder = shutil.copytree(model, tmp_path / "long")
    (folder / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": 10**6}))
    with pytest.raises(
        InputError, match=f"^sentence-transformers cannot encode texts with the model {folder}: "
    ):
        external.encode_queries(str(folder), ["ant " * 99], 0)


def test_what_cannot_be_loaded_ends_in_a_sentence(tmp_path):
    """The config refuses the first three before."""
    for name in ("empty", "broken"):
        (tmp_path / name).mkdir()
    (tmp_path / "broken" / "config.json").write_text("{}")
    for model in (
        *(str(tmp_path / name) for name in ("empty", "broken", "missing")),
        "nobody/nothing",
    ):
        with pytest.raises(
            InputError, match=f"^sentence-transformers cannot load the model {model}[:,] ."
        ) as said:
            external.load(model)
        absent = "neither a local folder nor in the hub's cache" in str(said.value)
        assert absent == model.endswith(("missing", "nothing"))


@pytest.fixture(scope="module")
def language_model(tmp_path_factory):
    """A tiny BERT with its language-model head, in the format of transformers alone."""
    import torch
    from transformers import BertConfig, BertForMaskedLM, BertTokenizerFast

    folder = tmp_path_factory.mktemp("splade")
    (folder / "vocab.txt").write_text("\n".join(WORDS))
    BertTokenizerFast(str(folder / "vocab.txt")).save_pretrained(folder)
    size = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2}
    how = {"intermediate_size": 8, "max_position_embeddings": 16, "initializer_range": 1.0}
    with torch.random.fork_rng():
        torch.manual_seed(0)
        BertForMaskedLM(BertConfig(vocab_size=len(WORDS), **size, **how)).save_pretrained(folder)
    return folder


def test_a_language_model_searches_as_splade(language_model, collection, tmp_path):
    """Its weights are those by hand; a folder of SparseEncoder is sparse by itself."""
    import torch
    from sentence_transformers import SparseEncoder
    from transformers import AutoModelForMaskedLM, AutoTokenizer

    texts = ["ant bee", "cow dog ant"]
    found = external.encode_queries(str(language_model), texts, 8, head="sparse")
    tokenizer = AutoTokenizer.from_pretrained(language_model)
    read = tokenizer(texts, padding=True, truncation=True, max_length=8, return_tensors="pt")
    with torch.no_grad():
        logits = AutoModelForMaskedLM.from_pretrained(language_model)(**read).logits
    weights = (torch.log1p(torch.relu(logits)) * read["attention_mask"][..., None]).amax(1)
    np.testing.assert_allclose(found.toarray(), weights.numpy(), atol=1e-5)
    assert found.nnz == (weights > 0).sum()

    SparseEncoder(str(language_model), device="cpu").save(str(tmp_path / "saved"))
    external.encode_passages(str(tmp_path / "saved"), collection, tmp_path / "vectors", 8)
    (shard,) = read_vectors(tmp_path / "vectors")
    (again,) = external.shards(str(language_model), collection, 8, head="sparse")
    assert shard.shape == (3, len(WORDS))
    assert (shard[:] != again[:]).nnz == 0
