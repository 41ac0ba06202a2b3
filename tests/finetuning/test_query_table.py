"""Sparse retrievers whose queries have weights from a table: no network runs for a query."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from tiny_training import (
    ALONE,
    encoder,
    gradients,
    learn,
    same,
    stage,
    task_of,
    together,
    train,
)

from cdmae.finetuning import losses
from cdmae.models import checkpoint, packed, sequences
from cdmae.models.heads import sparse, table
from cdmae.models.ragged import Ragged
from cdmae.tokens.corpus import Tokens
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


@pytest.mark.parametrize("query_weights", ["idf", "learned"])
def test_the_loss_is_that_of_table_times_passages(tiny, tmp_path, query_weights):
    """The network's gradient is only of passages; a learnt table has a gradient of its own."""
    recipe = stage("sparse", **RECIPE | {"query_weights": query_weights})
    start = encoder(tmp_path / "e", tiny.encoder, dropout=0.0)
    model = checkpoint.start_model(start, "retriever", **recipe.model())
    task = task_of(tiny, recipe, model)
    network = task.model.network.double()
    batch = task.draw(np.arange(6), 0)
    assert len(batch.sequences) == 6 * 4
    numbers, found = learn(task.model, batch, recipe, step=1)

    read = sequences.texts(model, "query", task.data.queries, task.data.examples.queries[:6])
    queries = torch.from_numpy(table.weigh(read, task.model.table).toarray()).double()
    network.zero_grad()
    if query_weights == "learned":
        queries = queries * (1 + 50 * network.query_scales).relu()
    texts = packed.pack(batch.sequences, torch.device("cpu"))
    weights = sparse.vectors(network, texts, recipe)
    excluded = torch.from_numpy(batch.excluded)
    loss = losses.contrastive(queries, weights.view(6, 4, -1), excluded=excluded)
    loss = loss + 0.25 * 0.2 * losses.flops(weights)
    loss.backward()
    assert numbers["loss"].item() == pytest.approx(loss.item(), rel=1e-9)
    same(found, gradients(network))


def test_learnt_weights_begin_at_idf_and_the_next_training_goes_on_from_them(tiny, tmp_path):
    recipe = stage("sparse", epochs=1, **RECIPE | {"query_weights": "learned"})
    tables = {}
    for name, changed, after in (
        ("idf", replace(recipe, query_weights="idf"), None),
        ("still", replace(recipe, learning_rate=1e-30), None),
        ("first", recipe, None),
        ("after", replace(recipe, learning_rate=1e-30), "first"),
    ):
        more = {"after": tmp_path / after / "model"} if after else {}
        folder = train(tiny, tmp_path / name, changed, **more)
        tables[name] = checkpoint.load(folder, "retriever").table
    assert (tables["still"] == tables["idf"]).all()
    assert (tables["first"] >= 0).all() and abs(tables["first"] - tables["idf"]).max() > 0.01
    assert (tables["after"] == tables["first"]).all()


def test_processes_together_learn_the_same_table(tiny, tmp_path):
    recipe = stage("sparse", **RECIPE | {"query_weights": "learned"})
    start = encoder(tmp_path / "e", tiny.encoder, dropout=0.0)

    tasks = []
    for _ in range(2):
        model = checkpoint.start_model(start, "retriever", **recipe.model())
        tasks.append(task_of(tiny, recipe, model))
        model.network.double()

    def work(group):
        task = tasks[group.rank]
        return learn(task.model, task.draw(np.arange(6), 0), recipe, group)[1]

    alone = work(ALONE)
    assert "query_scales" in alone
    for found in together(2, work):
        same(found, alone)
