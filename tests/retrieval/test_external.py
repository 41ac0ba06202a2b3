"""Third-party models of every kind: their own modules, prompts and limits; refusals in a sentence."""

import json
import shutil
from functools import partial
from unittest import mock

import numpy as np
import pytest
import tiny_models
import torch
from safetensors.torch import load_file, save_file

from cdmae.commands.answering import described
from cdmae.config.load import load as load_config
from cdmae.errors import InputError
from cdmae.log import Progress
from cdmae.retrieval import external, vectors
from cdmae.retrieval.external import Encoder, load
from cdmae.retrieval.search import search
from cdmae.retrieval.vectors import read_vectors
from cdmae.tokens.tokenise import load_tokenizer

DEPTH = 40


def dense(tiny, folder, similarity="dot"):
    """Maxima of the states and a linear layer, with prompts."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.base.modules import Dense, Transformer
    from sentence_transformers.sentence_transformer.modules import Pooling

    with torch.random.fork_rng():
        torch.manual_seed(2)
        modules = [Pooling(32, pooling_mode="max"), Dense(32, 24)]
    how = {"similarity_fn_name": similarity, "device": "cpu"}
    made = SentenceTransformer(modules=[Transformer(str(tiny.encoder)), *modules], **how)
    made.prompts = {"query": "bada : ", "document": "lola : "}
    made.save(str(folder))

    def scores(queries, passages):
        return made.similarity(made.encode_query(queries), made.encode_document(passages)).numpy()

    return scores


def sparse(tiny, folder):
    """A SPLADE with random weights."""
    from sentence_transformers import SparseEncoder

    made = SparseEncoder(str(tiny.encoder), device="cpu")
    made.save(str(folder))

    def scores(queries, passages):
        return made.similarity(made.encode_query(queries), made.encode_document(passages)).numpy()

    return scores


def multi(tiny, folder):
    """A ColBERT with a random projection, of vectors that are rounded as they are stored here."""
    from sentence_transformers import MultiVectorEncoder

    with torch.random.fork_rng():
        torch.manual_seed(2)
        made = MultiVectorEncoder(str(tiny.encoder), device="cpu")
    made.save(str(folder))

    def scores(queries, passages):
        asked = made.encode_query(queries, convert_to_numpy=True)
        listed = made.encode_document(passages, convert_to_numpy=True)
        rounded = [each.astype(np.float16).astype(np.float32) for each in listed]
        return np.array([[(q @ p.T).max(1).sum() for p in rounded] for q in asked])

    return scores


@pytest.mark.parametrize("made", [dense, partial(dense, similarity="cosine"), sparse, multi])
def test_a_model_of_each_kind_ranks_as_published(tiny, tmp_path, made, monkeypatch):
    """The ranking is that of sentence-transformers' own scores."""
    expected = made(tiny, tmp_path / "model")(tiny.queries, tiny.passages)
    monkeypatch.setattr(external, "SHARD", 50)
    system = {"encoded_by": "external", "model": str(tmp_path / "model")}
    vectors.write_vectors(encoder=system, source=tiny.collection, output=tmp_path / "vectors")
    shards = read_vectors(tmp_path / "vectors")
    assert [len(shard) for shard in shards] == [50, 50, 20]
    run = search(Encoder(system).queries(tiny.queries), shards, DEPTH)
    for query in range(len(tiny.queries)):
        rows, scores = run.ranked(query)
        np.testing.assert_allclose(scores, expected[query][rows], rtol=1e-5, atol=1e-5)
        best = -np.sort(-expected[query])[: len(rows)]
        np.testing.assert_allclose(scores, best, rtol=1e-5, atol=1e-5)
        assert len(rows) == min(DEPTH, (expected[query] > 0).sum() if made is sparse else DEPTH)


@pytest.fixture(scope="module")
def model(tiny, tmp_path_factory):
    """The folder of a dense model with prompts."""
    folder = tmp_path_factory.mktemp("model") / "dense"
    dense(tiny, folder)
    return folder


def queries(model, texts, length=0, **more):
    return Encoder({"model": str(model), **more}, length).queries(texts)


def test_prompts_of_the_config_come_before_those_of_the_model(model, tiny):
    from sentence_transformers import SentenceTransformer

    own = SentenceTransformer(str(model), device="cpu")
    expected = own.encode(["lola : bado"], prompt="")
    np.testing.assert_allclose(
        queries(model, ["bado"], query_prompt="lola : "), expected, atol=1e-6
    )
    encoder = Encoder({"model": str(model), "passage_prompt": "bada : "})
    (shard,) = encoder.passages(tiny.collection)
    expected = own.encode([f"bada : {text}" for text in tiny.passages], prompt="")
    np.testing.assert_allclose(shard[:], expected, atol=1e-6)


def test_lengths_cut_texts_up_to_the_models_own_limit(model):
    text = "mada nedu lola " * 99
    whole, cut = queries(model, [text]), queries(model, [text], 12)
    assert abs(whole - cut).max() > 1e-3
    np.testing.assert_allclose(queries(model, ["mada nedu lola " * 50], 12), cut, atol=1e-6)
    np.testing.assert_allclose(queries(model, [text], 512), whole, atol=1e-6)
    assert queries(model, []).shape == (0, 24)


def test_vectors_of_other_settings_answer_no_queries(model, tiny, tmp_path, values):
    own = values["systems"]["foreign"] = {"kind": "external", "model": str(model)}
    values["results"] = str(tmp_path)
    system = {"encoded_by": "external", "model": str(model), "query_prompt": ""}
    for part in ("docs.train", "evaluated"):  # a system may link the vectors of the other part
        folder = tmp_path / "vectors/foreign" / part / "docs"
        vectors.write_vectors(encoder=system, source=tiny.collection, output=folder)
        system["query_prompt"] = "query: "
    for prompt in ("", "query: "):
        own["query_prompt"] = prompt
        assert described(load_config(values), "foreign", "docs")["vectors"] == str(folder)
    own["query_prompt"] = "another: "
    with pytest.raises(InputError, match="searched with other settings \\(query_prompt: "):
        described(load_config(values), "foreign", "docs")


def test_many_queries_are_encoded_in_parts_with_progress(model, tiny, monkeypatch):
    encoder = Encoder({"model": str(model)})
    whole = encoder.queries(tiny.queries)
    monkeypatch.setattr(external, "READ", 3)
    progress = Progress(len(tiny.queries))
    np.testing.assert_allclose(encoder.queries(tiny.queries, progress), whole, atol=1e-6)
    assert progress.done == len(tiny.queries) > 3


def changed(folder, target, name, values):
    """Copy a model and change some values of one of its JSON files."""
    shutil.copytree(folder, target)
    described = json.loads((target / name).read_text())
    (target / name).write_text(json.dumps({**described, **values}))
    return str(target)


def test_what_does_not_make_vectors_that_can_be_searched_is_refused(model, tiny, tmp_path):
    file = "config_sentence_transformers.json"
    far = changed(model, tmp_path / "far", file, {"similarity_fn_name": "euclidean"})
    pairs = {"architectures": ["BertForSequenceClassification"]}
    cross = changed(tiny.encoder, tmp_path / "cross", "config.json", pairs)
    (tmp_path / "empty").mkdir()
    for name, head, words in (
        (far, "auto", "compares vectors by euclidean; expected dot, cosine"),
        (cross, "auto", "BertForSequenceClassification without modules.json"),
        (str(tiny.encoder), "auto", "expected another model, head: dense, .* head: sparse"),
        (str(tmp_path / "empty"), "auto", "the model .*/empty cannot be read: ."),
        ("nobody/nothing", "auto", "the model nobody/nothing cannot be read"),
    ):
        with pytest.raises(InputError, match=words):
            load(name, head=head)


@pytest.mark.parametrize(
    ("family", "how", "routed"),
    [
        ("modernbert", {}, False),
        ("bert", {"activation_function": "log1p_relu"}, True),
        ("bert", {"pooling_strategy": "sum"}, False),
    ],
)
def test_our_own_head_computes_splade_where_it_can(tiny, tmp_path, family, how, routed):
    """Its weights are those of sentence-transformers, also where queries have theirs from a table."""
    from sentence_transformers import SparseEncoder
    from sentence_transformers.base.modules import Router, Transformer
    from sentence_transformers.sparse_encoder.modules import SparseStaticEmbedding, SpladePooling

    tokenizer = load_tokenizer(tiny.encoder)
    network = tiny_models.model(family, "encoder", vocab_size=len(tokenizer))
    network.save_pretrained(tmp_path / "network")
    tokenizer.save_pretrained(tmp_path / "network")
    read = Transformer(str(tmp_path / "network"), transformer_task="fill-mask")
    modules = [read, SpladePooling(**how)]
    if routed:
        table = SparseStaticEmbedding(tokenizer, weight=torch.arange(len(tokenizer)) / 9)
        modules = [Router({"query": [table], "document": modules}, "document")]
    made = SparseEncoder(modules=modules, device="cpu")
    read.max_seq_length = 16
    expected = made.encode_document(tiny.passages).to_dense().numpy()
    asked = made.encode_query(tiny.queries).to_dense().numpy()
    made.save(str(tmp_path / "model"))
    pooled = SpladePooling.forward  # which reads the logits of all positions
    with mock.patch.object(SpladePooling, "forward", autospec=True, side_effect=pooled) as theirs:
        encoder = Encoder({"model": str(tmp_path / "model")})
        (shard,) = encoder.passages(tiny.collection)
        encoded = shard[:].toarray()
        found = encoder.queries(tiny.queries)
    assert theirs.called == ("pooling_strategy" in how)
    np.testing.assert_allclose(encoded, expected, atol=1e-4)
    np.testing.assert_allclose(found.toarray(), asked, atol=1e-4)


def test_a_sparse_model_without_modules_is_read_by_its_own_description_or_as_the_config_says(
    tiny, tmp_path
):
    expected = sparse(tiny, tmp_path / "model")(tiny.queries, tiny.passages[:5])
    (tmp_path / "model" / "modules.json").unlink()
    asked, listed = (queries(tmp_path / "model", t) for t in (tiny.queries, tiny.passages[:5]))
    found = asked @ listed.T
    np.testing.assert_allclose(found.toarray(), expected, rtol=1e-4)
    found = queries(tiny.encoder, tiny.queries, head="sparse")  # a language model as SPLADE
    np.testing.assert_allclose(found.toarray(), asked.toarray(), rtol=1e-4)


def test_a_folder_with_damaged_weights_is_refused(model, tmp_path):
    """Transformers would draw missing weights at random."""
    damaged = shutil.copytree(model, tmp_path / "damaged")
    file = damaged / "model.safetensors"
    weights = load_file(file)
    name = next(key for key in weights if "attention" in key)
    weights.pop(name)
    save_file(weights, file, {"format": "pt"})
    with pytest.raises(InputError, match=f"lack 1 weights of the network: {name}"):
        load(str(damaged))
