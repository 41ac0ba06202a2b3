"""Sparse retrievers: weights of own word-pieces, queries from a table, the regulariser."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
import transformers
from scipy import sparse
from tiny_models import padded
from tiny_training import ALONE, encoder, gradients, learn, same, stage, task_of, together, train

from cdmae.errors import InputError
from cdmae.finetuning import losses, recall
from cdmae.finetuning.regulariser import Sparsity
from cdmae.models import checkpoint, packed, sequences
from cdmae.models.heads import sparse as sparse_head
from cdmae.models.heads import table
from cdmae.models.ragged import Ragged
from cdmae.tokens.corpus import Tokens
from cdmae.tokens.vocabulary import Vocabulary
from cdmae.training.loop import add_up


def task_in_float64(tiny, recipe, folder):
    model = checkpoint.start_model(folder, "retriever", seed=3, **recipe.model())
    model.network.double()
    return task_of(tiny, recipe, model)


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
    """The mean squared error at the first word-pieces of all words; also in two processes."""
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
    expected = gradients(naive)

    def regress(task):
        numbers = task.learn(batch, 0)
        add_up(task.network.parameters(), numbers, task.group)
        return numbers["loss"].item(), gradients(task.network)

    tasks = [task_in_float64(tiny, recipe, folder) for _ in range(2)]
    runs = [regress(task)]
    runs += together(2, lambda group: regress(replace(tasks[group.rank], group=group)))
    for value, found in runs:
        assert value == pytest.approx(loss.item(), rel=1e-9)
        same(found, expected)


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


@pytest.mark.parametrize("query_weights", ["idf", "learned"])
def test_the_loss_is_that_of_table_times_passages(tiny, tmp_path, query_weights):
    """The network's gradient is only of passages; a learnt table has a gradient of its own."""
    recipe = stage("sparse", **TABLE | {"query_weights": query_weights})
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
    weights = sparse_head.vectors(network, texts, recipe)
    excluded = torch.from_numpy(batch.excluded)
    loss = losses.contrastive(queries, weights.view(6, 4, -1), excluded=excluded)
    loss = loss + 0.25 * 0.2 * losses.flops(weights)
    loss.backward()
    assert numbers["loss"].item() == pytest.approx(loss.item(), rel=1e-9)
    same(found, gradients(network))


def test_learnt_weights_begin_at_idf_and_the_next_training_goes_on_from_them(tiny, tmp_path):
    recipe = stage("sparse", epochs=1, **TABLE | {"query_weights": "learned"})
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
    recipe = stage("sparse", **TABLE | {"query_weights": "learned"})
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


# --- the regulariser ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("warmup", "steps", "expected"),
    [(0.5, (0, 1, 3, 7), (1 / 16, 1 / 4, 1, 1)), (2, (0, 1), (1 / 4, 1)), (0, (0,), (1,))],
)
def test_the_regulariser_grows_quadratically(warmup, steps, expected):
    sparsity = Sparsity(stage("sparse", flops_warmup=warmup), "tiny", 8, 160)
    assert tuple(map(sparsity.grown, steps)) == expected


def test_saturated_vectors_are_noted_after_the_warm_up():
    sparsity = Sparsity(stage("sparse", flops_warmup=4), "tiny", 8, 160)

    def note(entries, step):
        return sparsity.check({"query_entries": 9, "passage_entries": entries}, step)

    assert "more than 50% of the 160 possible entries: raise passage_flops" in note(99, 5)
    assert note(99, 4) == note(79, 9) == ""


@pytest.mark.parametrize("key", ["query_flops", "passage_flops"])
def test_a_training_ends_where_its_vectors_died(tiny, tmp_path, key):
    recipe = stage("sparse", **{key: 1e6}, learning_rate=0.5, epochs=20)
    with pytest.raises(InputError, match="training of tiny collapsed: the vectors of all"):
        train(tiny, tmp_path, recipe)
