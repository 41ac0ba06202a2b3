"""Weights of a text's own word-pieces: uniCOIL and DeepCT, against their equations by hand."""

from itertools import pairwise

import numpy as np
import pytest
import torch
import transformers
from card_facts import told_by_card
from scipy import sparse
from tiny_models import own_weights, padded
from tiny_training import data_of, encoder, gradients, same, stage, together, train

from cdmae.files import read_json
from cdmae.finetuning import recall, retriever
from cdmae.models import checkpoint, linear
from cdmae.models.heads import own
from cdmae.models.ragged import Ragged
from cdmae.retrieval import vectors as inference
from cdmae.training.loop import add_up
from cdmae.training.ranks import Ranks

WORDS = 160


def prepared(tiny, recipe, folder):
    """A model in float64 and its data."""
    model = checkpoint.start_model(folder, "retriever", seed=3, **recipe.model())
    model.network.double()
    return model, data_of(tiny, recipe, model)


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
    targets, rows = recall.recalls(positives, queries)
    assert rows.tolist() == [-1, -1, 0, -1, -1, 1]
    found = targets.toarray()
    assert found[rows[5]].tolist() == [0, 0, 0, 0.5, 1, 0.5, 0]
    assert found[rows[2]].tolist() == [0, 0, 0, 0, 1, 0, 0.5]


def test_the_loss_of_deepct_and_its_gradient(tiny, tmp_path):
    """The mean squared error at the first word-pieces of all words; also in two processes."""
    folder = encoder(tmp_path / "e", tiny.encoder, dropout=0.0)
    recipe = stage("sparse", pieces="own", target="recall")
    model, data = prepared(tiny, recipe, folder)
    batch = recall.recall_task("tiny", model, data, recipe, 1).draw(np.arange(6), 0)
    assert len(batch.sequences) == 6

    naive = prepared(tiny, recipe, folder)[0].network
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

    def regress(network, group):
        numbers = recall.learn(network, batch, recipe, group, seed=1, step=0)
        add_up(network.parameters(), numbers, group)
        return numbers["loss"].item(), gradients(network)

    twice = [prepared(tiny, recipe, folder)[0].network for _ in range(2)]
    runs = [regress(model.network, Ranks())]
    runs += together(2, lambda group: regress(twice[group.rank], group))
    for value, found in runs:
        assert value == pytest.approx(loss.item(), rel=1e-9)
        same(found, expected)


@pytest.mark.parametrize("target", ["ranking", "recall"])
def test_the_folder_has_the_encoder_and_the_layer(tiny, tmp_path, target):
    """transformers and one linear layer compute our vectors, and so does the card's program."""
    recipe = stage("sparse", pieces="own", target=target, query_flops=0.0, passage_flops=0.0)
    folder = train(retriever, tiny, tmp_path, recipe)
    described = read_json(folder / "cdmae.json")
    assert described["head"] == "sparse"
    assert (described["pieces"], described["target"]) == ("own", target)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    network = transformers.AutoModel.from_pretrained(folder).eval()
    linear.load_layers(network, own.LAYERS, folder)
    assert checkpoint.load(folder, "retriever").network.weigh.weight.equal(network.weigh.weight)
    (shard,) = inference.Encoder({"model": folder}).passages(tiny.tokens)
    read = tokenizer(tiny.passages, truncation=True, max_length=32)["input_ids"]
    with torch.no_grad():
        scores, expected = by_hand(network, read)
        if target == "recall":  # a word's weight is the score of its first word-piece
            for row, ids in enumerate(read):
                edges = [position for position, _ in words_by_hand(folder, ids)] + [len(ids) - 1]
                for first, end in pairwise(edges):
                    scores[row, first:end] = scores[row, first]
            expected = own_weights(scores, read, WORDS)
    np.testing.assert_allclose(shard[:].toarray(), expected.numpy(), atol=1e-5)
    queries = inference.encode_queries(folder, tiny.queries).toarray()
    assert queries.shape == (len(tiny.queries), WORDS)
    read = tokenizer(tiny.queries, truncation=True, max_length=16)["input_ids"]
    if target == "ranking":
        with torch.no_grad():
            expected = by_hand(network, read)[1].numpy()
    else:
        expected = np.array([np.bincount(text[1:-1], minlength=WORDS) for text in read])
    np.testing.assert_allclose(queries, expected, atol=1e-5)
    encode = told_by_card(folder)["encode"]
    for row, text in enumerate(tiny.passages[:5]):
        weights = np.zeros(WORDS)
        for piece, weight in encode(text, 32).items():
            weights[piece] = weight
        np.testing.assert_allclose(shard[:].toarray()[row], weights, atol=1e-5)
