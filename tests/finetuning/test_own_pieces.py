"""Weights of a text's own word-pieces: uniCOIL and DeepCT, against their equations by hand."""

import numpy as np
import pytest
import torch
import transformers
from tiny_models import own_weights, padded
from tiny_training import encoder, gradients, same, stage, together, train

from cdmae.errors import InputError
from cdmae.files import read_json
from cdmae.finetuning import common, losses, recall, retriever
from cdmae.finetuning.regulariser import Sparsity
from cdmae.models import checkpoint
from cdmae.models.heads import own
from cdmae.models.ragged import Ragged
from cdmae.retrieval import vectors as inference
from cdmae.training.ranks import Ranks

WORDS = 160


def prepared(tiny, recipe, folder):
    """A model in float64 and its data."""
    model = checkpoint.start_model(folder, "retriever", seed=3, **recipe.model())
    model.network.double()
    return model, common.read(recipe, model, **tiny.inputs(), seed=1, threads=1)


def by_hand(network, sequences):
    """The score of every position by transformers, and the weights [B, V]."""
    inputs = padded(list(sequences))
    states = network(**inputs).last_hidden_state
    scores = network.weigh(states)[..., 0]
    return scores, own_weights(scores, sequences, WORDS)


def test_the_loss_of_unicoil_and_its_gradient(tiny, tmp_path):
    """One padded batch by transformers; in chunks here, and in two processes."""
    folder = encoder(tmp_path / "e", tiny.encoder, dropout=0.0)
    recipe = stage("sparse", pieces="own", query_flops=0.3, passage_flops=0.2, flops_warmup=0)
    model, data = prepared(tiny, recipe, folder)
    batch = retriever.batch(data, np.arange(6), 0, model, recipe)
    sparsity = Sparsity(recipe, "tiny", 8, WORDS)

    def learn(network, group):
        network.zero_grad(set_to_none=True)
        numbers = retriever.learn(network, batch, recipe, group, seed=1, step=0, sparsity=sparsity)
        return numbers["loss"].item(), gradients(network)

    naive = prepared(tiny, recipe, folder)[0].network
    _, weights = by_hand(naive, batch.sequences)
    excluded = torch.from_numpy(batch.excluded)
    loss = losses.contrastive(weights[:6], weights[6:].view(6, 4, -1), excluded=excluded)
    loss = loss + 0.3 * losses.flops(weights[:6]) + 0.2 * losses.flops(weights[6:])
    loss.backward()
    expected = gradients(naive)
    twice = [prepared(tiny, recipe, folder)[0].network for _ in range(2)]
    runs = [learn(model.network, Ranks())]
    runs += together(2, lambda group: learn(twice[group.rank], group))
    for value, found in runs:
        assert value == pytest.approx(loss.item(), rel=1e-9)
        same(found, expected)


def test_query_term_recall():
    """Passage 5 has two queries, one of which contains word-piece 3: its recall is 1/2."""
    positives = Ragged.of([[5], [5, 2], [2]])
    queries = own.counts(Ragged.of([[0, 3, 3, 4, 1], [0, 4, 1], [0, 6, 1]]), 8)
    targets, rows = recall.recalls(positives, queries)
    assert rows.tolist() == [-1, -1, 0, -1, -1, 1]
    found = targets.toarray()
    assert found[rows[5]].tolist() == [0, 0, 0, 0.5, 1, 0, 0, 0]
    assert found[rows[2]].tolist() == [0, 0, 0, 0, 0.5, 0, 0.5, 0]


def test_the_loss_of_deepct_and_its_gradient(tiny, tmp_path):
    """The squared errors of all positions, averaged over passages; also in two processes."""
    folder = encoder(tmp_path / "e", tiny.encoder, dropout=0.0)
    recipe = stage("sparse", pieces="own", target="recall")
    model, data = prepared(tiny, recipe, folder)
    device = torch.device("cpu")
    made = retriever.task(model, data, recipe, None, name="tiny", seed=1, device=device)
    batch = made.batch(np.arange(6), 0)
    assert len(batch.sequences) == 6

    naive = prepared(tiny, recipe, folder)[0].network
    scores, weights = by_hand(naive, batch.sequences)
    targets = batch.targets.toarray()
    loss = 0.0
    for row, text in enumerate(batch.sequences):
        for position, piece in list(enumerate(text))[1:-1]:
            loss = loss + (scores[row, position] - float(targets[row, piece])) ** 2 / 6
    loss.backward()
    expected = gradients(naive)

    def learn(network, group):
        numbers = made.learn(network, batch, recipe, group, seed=1, step=0)
        return numbers["loss"].item(), gradients(network)

    twice = [prepared(tiny, recipe, folder)[0].network for _ in range(2)]
    runs = [learn(model.network, Ranks())]
    runs += together(2, lambda group: learn(twice[group.rank], group))
    for value, found in runs:
        assert value == pytest.approx(loss.item(), rel=1e-9)
        same(found, expected)


def test_a_dead_regression_is_refused(tiny, tmp_path):
    recipe = stage("sparse", pieces="own", target="recall")
    model, data = prepared(tiny, recipe, encoder(tmp_path / "e", tiny.encoder))
    device = torch.device("cpu")
    made = retriever.task(model, data, recipe, None, name="tiny", seed=1, device=device)
    assert made.check({"entries": 3.0}, 5) == ""
    with pytest.raises(InputError, match="died: .* step 5 are 0; lower learning_rate .now 0.001"):
        made.check({"entries": 0.0}, 5)
    with pytest.raises(ValueError, match="target is recall and pieces is all; expected target rec"):
        stage("sparse", target="recall")


@pytest.mark.parametrize("target", ["ranking", "recall"])
def test_the_folder_has_the_encoder_and_the_layer(tiny, tmp_path, target):
    """transformers and one linear layer compute our vectors; a query's recall weights are counts."""
    recipe = stage("sparse", pieces="own", target=target, query_flops=0.0, passage_flops=0.0)
    folder = train(retriever, tiny, tmp_path, recipe)
    described = read_json(folder / "cdmae.json")
    assert described["head"] == "sparse"
    assert (described["pieces"], described["target"]) == ("own", target)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    network = transformers.AutoModel.from_pretrained(folder).eval()
    own.load(network, folder)
    assert checkpoint.load(folder, "retriever").network.weigh.weight.equal(network.weigh.weight)
    (shard,) = inference.shards(folder, tiny.tokens, threads=1)
    read = tokenizer(tiny.passages, truncation=True, max_length=32)["input_ids"]
    with torch.no_grad():
        expected = by_hand(network, read)[1]
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
