"""Sparse retrievers whose queries have weights from a table: no network runs for a query."""

import math

import numpy as np
import pytest
import torch
from tiny_training import encoder, learn, stage, task_of, train

from cdmae.finetuning import losses, retriever
from cdmae.models import checkpoint, packed, sequences
from cdmae.models.heads import sparse, table
from cdmae.models.ragged import Ragged
from cdmae.retrieval import vectors
from cdmae.retrieval.search import search
from cdmae.tokens.corpus import Tokens, read_tokens
from cdmae.tokens.vocabulary import Vocabulary

RECIPE = {"query_weights": "idf", "passage_flops": 0.2, "query_flops": 9.0, "flops_warmup": 4}


def test_the_idf_of_word_pieces_by_hand(tiny, monkeypatch):
    """Three passages: piece 9 is in two of them, twice in one; 2 is [CLS]."""
    monkeypatch.setattr(table, "BLOCK", 2)
    ids = np.array([9, 8, 9, 2, 9, 7])
    tokens = Tokens.of(ids, np.array([0, 3, 1, 1, 0, 1]), np.ones(160, bool))
    found = table.idf(tokens, Vocabulary.read(tiny.encoder), 164)
    one, two, none = (math.log(1 + (3 - n + 0.5) / (n + 0.5)) for n in (1, 2, 0))
    assert found[[9, 8, 7, 11]] == pytest.approx([two, one, one, none])
    assert found[:5].tolist() == [0] * 5, "special tokens"
    read = Ragged.of([np.array([2, 9, 8, 9, 1, 3]), np.array([2, 3])])
    weights = table.weigh(read, found).toarray()
    assert weights[0, [9, 8]] == pytest.approx([two, one])
    assert np.count_nonzero(weights) == 2


def test_the_loss_is_that_of_table_times_passages_and_only_passages_learn(tiny, tmp_path):
    recipe = stage("sparse", **RECIPE)
    start = encoder(tmp_path / "e", tiny.encoder, dropout=0.0)
    model = checkpoint.start_model(start, "retriever", **recipe.model())
    task = task_of(tiny, recipe, model)
    assert "query_flops" not in recipe.values()
    task.model.network.double()
    batch = task.draw(np.arange(6), 0)
    assert len(batch.sequences) == 6 * 4
    numbers, gradient = learn(task.model, batch, recipe, step=1)

    data = task.data
    read = sequences.texts(model, "query", data.queries, data.examples.queries[:6])
    queries = torch.from_numpy(table.weigh(read, task.model.table).toarray()).double()
    network = task.model.network
    network.zero_grad()
    texts = packed.pack(batch.sequences, torch.device("cpu"))
    weights = sparse.vectors(network, texts, recipe)
    contrastive = losses.contrastive(
        queries, weights.view(6, 4, -1), excluded=torch.from_numpy(batch.excluded)
    )
    loss = contrastive + 0.25 * 0.2 * losses.flops(weights)
    loss.backward()
    assert numbers["loss"].item() == pytest.approx(loss.item(), rel=1e-9)
    assert numbers["query_entries"].item() == pytest.approx((queries > 0).sum().item() / 6)
    largest = max(float(each.abs().max()) for each in gradient.values())
    for name, weight in network.named_parameters():
        if weight.grad is not None:
            assert float((gradient[name] - weight.grad).abs().max()) < 1e-9 * largest, name


@pytest.fixture(scope="module")
def folder(tiny, tmp_path_factory):
    recipe = stage("sparse", **RECIPE | {"passage_flops": 0.01})
    return train(retriever, tiny, tmp_path_factory.mktemp("idf"), recipe)


def test_a_run_ranks_by_table_times_passages_without_a_network_for_queries(
    tiny, folder, tmp_path, monkeypatch
):
    vectors.write_vectors(
        encoder={"encoded_by": "vectors"}, model=folder, source=tiny.tokens, output=tmp_path / "v",
        engine="lucene",
    )  # fmt: skip
    shards = vectors.read_shards(tmp_path / "v")
    made = vectors.Encoder({"model": folder})
    monkeypatch.setattr(sparse, "vectors", None)
    queries = made.queries(tiny.queries)
    model = checkpoint.load(folder, "retriever")
    vocabulary = Vocabulary.read(folder)
    expected = table.idf(read_tokens(tiny.tokens), vocabulary, model.network.config.vocab_size)
    assert (model.table == expected).all()
    read = sequences.queries(tiny.queries, folder, 1)
    for query in range(len(tiny.queries)):
        pieces = np.unique(read.ids[read.starts[query] : read.starts[query + 1]])
        own = {piece: expected[piece] for piece in pieces if expected[piece]}
        row = queries[query : query + 1]
        assert dict(zip(row.indices.tolist(), row.data.tolist(), strict=True)) == own
    scores = (queries @ shards[0][:].T).toarray()
    run = search(queries, shards, 9)
    index = search(queries, vectors.read_vectors(tmp_path / "v"), 9)
    for query in range(len(tiny.queries)):
        passages, found = run.ranked(query)
        assert found.tolist() == (-np.sort(-scores[query])[: len(passages)]).tolist()
        assert index.ranked(query)[1] / 1e4 == pytest.approx(found, rel=0.05, abs=0.01)


def test_a_model_with_a_table_teaches_whole_batches(tiny, folder):
    recipe = stage("retriever")
    model = checkpoint.start_model(tiny.encoder, "retriever", **recipe.model())
    task = task_of(tiny, recipe, model, in_batch_teacher=folder)
    batch = task.draw(np.arange(6), 0)
    made = vectors.Encoder({"model": folder})
    asked = made.queries([tiny.queries[query] for query in task.data.examples.queries[:6]])
    drawn = task.data.examples.draw(np.arange(6), 0).ravel()
    (shard,) = made.passages(tiny.tokens)
    scores = (asked @ shard[:].T).toarray()[:, drawn]
    np.testing.assert_allclose(batch.in_batch.numpy(), scores, rtol=1e-4)
