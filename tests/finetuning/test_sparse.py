"""Sparse retrievers: weights of own word-pieces, queries from a table, the regulariser."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
import transformers
from scipy import sparse
from tiny_models import padded
from tiny_training import QUERIES, encoder, gradients, learn, same, stage, task_in_float64, train

from cdmae.errors import InputError
from cdmae.finetuning import recall
from cdmae.finetuning.regulariser import Sparsity
from cdmae.models import checkpoint
from cdmae.models.heads import table
from cdmae.models.ragged import Ragged
from cdmae.tokens.corpus import Tokens
from cdmae.tokens.vocabulary import Vocabulary


def words_by_hand(folder, ids):
    """The words of a framed text: the position of the first word-piece of each, and its text."""
    pieces = transformers.AutoTokenizer.from_pretrained(folder).convert_ids_to_tokens(ids)
    found = []
    for position, piece in list(enumerate(pieces))[1:-1]:
        if piece.startswith("##"):
            found[-1][1] += piece[2:]
        else:
            found.append([position, piece])
    return found


def test_query_term_recall():
    """Passage 5 has two queries, one of which contains word 3: its recall is 1/2."""
    positives = Ragged.of([[5], [5, 2], [2]])
    queries = sparse.csr_array(([1.0, 1, 2, 1, 1, 1], ([0, 0, 0, 1, 2, 2], [3, 4, 5, 4, 4, 6])))
    found = recall.recalls(positives, queries).toarray()
    assert found[5].tolist() == [0, 0, 0, 0.5, 1, 0.5, 0]
    assert found[2].tolist() == [0, 0, 0, 0, 1, 0, 0.5]
    assert not found[[0, 1, 3, 4]].any()


def test_the_loss_of_deepct_and_its_gradient(tiny, tmp_path):
    """The mean squared error at the first word-pieces of all words."""
    folder = encoder(tmp_path / "e", tiny.encoder, dropout=0.0)
    recipe = stage("sparse", pieces="own", target="recall")
    task = task_in_float64(tiny, recipe, folder)
    batch = task.draw(np.arange(6), 0)
    assert len(batch.sequences) == 6

    naive = task_in_float64(tiny, recipe, folder).network
    states = naive(**padded(list(batch.sequences))).last_hidden_state
    scores = naive.weigh(states)[..., 0]
    queries = transformers.AutoTokenizer.from_pretrained(folder)(
        tiny.queries, truncation=True, max_length=16
    )["input_ids"]
    errors = []
    recalled = 0
    for row, text in enumerate(batch.sequences):  # query i is relevant for passage i alone
        asked = {word for _, word in words_by_hand(folder, queries[row])}
        for position, word in words_by_hand(folder, text):
            errors.append((scores[row, position] - float(word in asked)) ** 2)
            recalled += word in asked
    assert len(errors) < sum(batch.sequences.lengths - 2)  # some word-pieces continue a word
    assert recalled >= 6
    loss = torch.stack(errors).mean()
    loss.backward()
    numbers, found = learn(task, batch)
    assert numbers["loss"].item() == pytest.approx(loss.item(), rel=1e-9)
    same(found, gradients(naive))

    pairs = Ragged.of([[row, (row + 1) % QUERIES] for row in range(QUERIES)])
    examples = replace(task.data.examples, positives=pairs)
    task = replace(task, data=replace(task.data, examples=examples))
    second, next_ones = task.draw(np.arange(6), 1), task.draw(np.arange(1, 7), 0)
    assert second.sequences.values.tolist() == next_ones.sequences.values.tolist()


# --- query weights from a table -------------------------------------------------------------------


TABLE = {"query_weights": "idf", "passage_flops": 0.2, "query_flops": 9.0, "flops_warmup": 4}


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


def test_learnt_weights_begin_at_idf_and_the_next_training_goes_on_from_them(tiny, tmp_path):
    recipe = stage("sparse", epochs=1, **TABLE | {"query_weights": "learned"})
    tables = {}
    for name, changed, after in (
        ("idf", replace(recipe, query_weights="idf"), None),
        ("still", replace(recipe, learning_rate=1e-30), None),
        ("first", recipe, None),
        ("after", replace(recipe, learning_rate=1e-30), "first"),
        ("without", stage("sparse", epochs=1), "first"),
    ):
        more = {"after": tmp_path / after / "model"} if after else {}
        folder = train(tiny, tmp_path / name, changed, **more)
        tables[name] = checkpoint.load(folder, "retriever").table
    assert (tables["still"] == tables["idf"]).all()
    assert (tables["first"] >= 0).all() and abs(tables["first"] - tables["idf"]).max() > 0.01
    assert (tables["after"] == tables["first"]).all()
    assert tables["without"] is None


# --- the regulariser ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("warmup", "steps", "expected"),
    [
        (0.5, (0, 1, 3, 7), (1 / 16, 1 / 4, 1, 1)),
        (1, (0, 7), (1 / 64, 1)),
        (2, (0, 1), (1 / 4, 1)),
        (0, (0,), (1,)),
    ],
)
def test_the_regulariser_grows_quadratically(warmup, steps, expected):
    sparsity = Sparsity(stage("sparse", flops_warmup=warmup), "tiny", 8, 160)
    assert tuple(map(sparsity.grown, steps)) == expected


@pytest.mark.parametrize("key", ["query_flops", "passage_flops"])
def test_a_training_ends_where_its_vectors_died(tiny, tmp_path, key):
    recipe = stage("sparse", **{key: 1e6}, learning_rate=0.5, epochs=20)
    with pytest.raises(InputError, match="training of tiny collapsed: the vectors of all"):
        train(tiny, tmp_path, recipe)
