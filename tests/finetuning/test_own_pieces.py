"""Weights of a text's own word-pieces: uniCOIL and DeepCT, against their equations by hand."""

from dataclasses import replace

import numpy as np
import pytest
import torch
import transformers
from scipy import sparse
from tiny_models import own_weights, padded
from tiny_training import encoder, gradients, same, stage, task_of, together

from cdmae.finetuning import recall
from cdmae.models import checkpoint
from cdmae.models.ragged import Ragged
from cdmae.training.loop import add_up

WORDS = 160


def task_in_float64(tiny, recipe, folder):
    model = checkpoint.start_model(folder, "retriever", seed=3, **recipe.model())
    model.network.double()
    return task_of(tiny, recipe, model)


def by_hand(network, sequences):
    """The score of every position by transformers, and the weights [B, V]."""
    inputs = padded(list(sequences))
    states = network(**inputs).last_hidden_state
    scores = network.weigh(states)[..., 0]
    return scores, own_weights(scores, sequences, WORDS)


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


def query_ids(tiny, folder, row):
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    return tokenizer(tiny.queries[row], truncation=True, max_length=16)["input_ids"]


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
    scores, _ = by_hand(naive, batch.sequences)
    errors = []
    recalled = 0
    for row, text in enumerate(batch.sequences):  # query i is relevant for passage i alone
        asked = {word for _, word in words_by_hand(folder, query_ids(tiny, folder, row))}
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
