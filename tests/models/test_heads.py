"""Heads: equal to transformers' own model, forward and backward."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from tiny_models import ALL, ROTARY, model, own_weights, padded

from cdmae.models import linear, packed, transformer
from cdmae.models.heads import own, sparse
from cdmae.models.ragged import BARE, HIDDEN, Ragged

SPLADE = SimpleNamespace(pieces="all")
TEXTS = [[2, 7, 9, 11, 3], [2, 30, 3], [2, *range(5, 25), 3]]


def by_hand(network, pad):
    """SPLADE's weights from the logits of the whole padded batch: [B, V]."""
    batch = padded(TEXTS, pad)
    logits = network(**batch).logits
    weights = torch.log1p(torch.relu(logits)) * batch["attention_mask"][..., None]
    return weights.amax(1)


@pytest.mark.parametrize("family", ALL)
def test_weights_and_their_gradient_equal_transformers(family, monkeypatch):
    """Some texts at a time, and one at a time, in float64."""
    network = model(family, "encoder").double()
    rounding = 1e-6 if family in ROTARY else 1e-9
    pad = network.config.pad_token_id or 0
    expected = by_hand(network, pad)
    slopes = torch.randn(expected.shape, dtype=torch.float64)
    (expected * slopes).sum().backward()
    wanted = {name: weight.grad for name, weight in network.named_parameters()}
    assert 0 < (expected > 0).double().mean() < 1
    for at_once in (1, 1 << 20):
        monkeypatch.setitem(sparse.LOGITS_AT_ONCE, "cpu", at_once)
        network.zero_grad(set_to_none=True)
        found = sparse.vectors(network, packed.pack(TEXTS), SPLADE)
        assert torch.allclose(found, expected, atol=rounding)
        (found * slopes).sum().backward()
        for name, weight in network.named_parameters():
            if wanted[name] is not None and "token_type" not in name:
                largest = wanted[name].abs().max().clamp_min(1)
                assert (weight.grad - wanted[name]).abs().max() < rounding * largest, name
        with torch.no_grad():
            again = sparse.vectors(network, packed.pack(TEXTS), SPLADE)
        assert torch.allclose(again, found, atol=1e-12)


def test_a_second_pass_does_not_compute_logits_again(monkeypatch):
    """Gradient caching: the gradient is the same, with the positions of the first pass."""
    network = model("bert", "encoder")
    slopes = torch.randn(len(TEXTS), network.config.vocab_size)

    def gradient(memory):
        network.zero_grad(set_to_none=True)
        found = sparse.vectors(network, packed.pack(TEXTS), SPLADE, memory=memory)
        (found * slopes).sum().backward()
        return [weight.grad for weight in network.parameters() if weight.grad is not None]

    expected = gradient(None)
    memory = {}
    with torch.no_grad():
        sparse.vectors(network, packed.pack(TEXTS), SPLADE, memory=memory)
    monkeypatch.setattr(sparse, "_largest", None)
    assert all(map(torch.equal, gradient(memory), expected))


@pytest.mark.parametrize("family", ["bert", "roberta", "modernbert"])
def test_own_word_pieces_have_the_largest_weight_of_their_positions(family):
    """uniCOIL by hand: w_j = max ReLU(v . h_i + c) over the positions of word-piece j."""
    network = model(family, "retriever")
    linear.start_layers(network, own.LAYERS, seed=5)
    texts = [[2, 7, 9, 7, 7, 3], [2, 3], [2, *range(5, 25), 3]]
    found = sparse.vectors(network, packed.pack(texts), SimpleNamespace(pieces="own"))
    pad = network.config.pad_token_id or 0
    batch = padded(texts, pad)
    states = network(**batch).last_hidden_state
    scores = network.weigh(states)[..., 0]
    expected = own_weights(scores, texts, network.config.vocab_size)
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-4)
    assert (found[0] > 0).sum() <= 2
    assert not found[1].any()
    slopes = torch.randn(found.shape)
    gradients = []
    for weights in (found, expected):
        network.zero_grad()
        (weights * slopes).sum().backward()
        gradients.append(network.weigh.weight.grad.clone())
    torch.testing.assert_close(*gradients, atol=1e-5, rtol=1e-4)


def test_counts_of_word_pieces():
    found = own.counts(Ragged.of([[2, 7, 9, 7, 3], [2, 3]]), 12).toarray()
    assert found[0].nonzero()[0].tolist() == [7, 9]
    assert found[0, [7, 9]].tolist() == [2, 1]
    assert not found[1].any()


@pytest.mark.parametrize("family", ALL)
def test_hidden_word_pieces_are_computed_but_not_seen(family):
    """As transformers computes positions whose attention mask is 0, at the chosen rows only."""
    network = model(family, "retriever").double()
    rounding = 1e-6 if family in ROTARY else 1e-9
    texts = Ragged.of(TEXTS)
    flags = np.zeros(len(texts.values), np.uint8)
    flags[texts.starts[1:-1] - 1] = HIDDEN
    flags[texts.starts[2] + 4] = BARE
    batch = packed.pack(Ragged(texts.values, texts.starts, flags=flags))
    rows = batch.scored
    states = transformer.hidden_states(network, batch, last_rows=rows)[: len(rows.layout.cells)]
    read = padded(TEXTS, network.config.pad_token_id or 0)
    mask = read["attention_mask"]
    for text, ids in enumerate(TEXTS[:2]):
        mask[text, len(ids) - 1] = 0
    expected = network(**read).last_hidden_state
    expected = torch.cat([each[: len(ids)] for each, ids in zip(expected, TEXTS, strict=True)])
    expected = expected[torch.from_numpy(flags & BARE == 0)]
    assert torch.allclose(states, expected, atol=rounding)
