"""Heads: equal to transformers' own model, forward and backward."""

import numpy as np
import pytest
import torch
from tiny_models import ALL, model, padded

from cdmae.models import packed, transformer
from cdmae.models.heads import sparse
from cdmae.models.ragged import BARE, HIDDEN, Ragged

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
    rounding = 1e-6 if family == "modernbert" else 1e-9  # its angles are float32
    pad = network.config.pad_token_id or 0
    expected = by_hand(network, pad)
    slopes = torch.randn(expected.shape, dtype=torch.float64)
    (expected * slopes).sum().backward()
    wanted = {name: weight.grad for name, weight in network.named_parameters()}
    assert 0 < (expected > 0).double().mean() < 1
    for at_once in (1, 1 << 20):
        monkeypatch.setitem(sparse.LOGITS_AT_ONCE, "cpu", at_once)
        network.zero_grad(set_to_none=True)
        found = sparse.vectors(network, packed.pack(TEXTS), None)
        assert torch.allclose(found, expected, atol=rounding)
        (found * slopes).sum().backward()
        for name, weight in network.named_parameters():
            if wanted[name] is not None and "token_type" not in name:
                largest = wanted[name].abs().max().clamp_min(1)
                assert (weight.grad - wanted[name]).abs().max() < rounding * largest, name
        with torch.no_grad():
            again = sparse.vectors(network, packed.pack(TEXTS), None)
        assert torch.allclose(again, found, atol=1e-12)


def test_logits_of_a_batch_are_never_all_kept(monkeypatch):
    """What the backward pass keeps grows with the texts' vectors, not with their positions."""
    network = model("bert", "encoder", vocab_size=53)
    texts = [np.arange(2, 34)] * 50
    kept = []
    with torch.autograd.graph.saved_tensors_hooks(
        lambda tensor: kept.append(tensor.shape) or tensor, lambda tensor: tensor
    ):
        sparse.vectors(network, packed.pack(texts), None)
    words = network.config.vocab_size
    assert max(shape.numel() for shape in kept if words in shape) == len(texts) * words


@pytest.mark.parametrize("family", ALL)
def test_hidden_word_pieces_are_computed_but_not_seen(family):
    """As transformers computes positions whose attention mask is 0, at the chosen rows only."""
    network = model(family, "retriever").double()
    rounding = 1e-6 if family == "modernbert" else 1e-9
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
    expected = torch.cat([own[: len(ids)] for own, ids in zip(expected, TEXTS, strict=True)])
    expected = expected[torch.from_numpy(flags & BARE == 0)]
    assert torch.allclose(states, expected, atol=rounding)
