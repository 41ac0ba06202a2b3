"""Heads: equal to transformers' own model, forward and backward."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from tiny_models import ALL, ROTARY, model, padded

from cdmae.models import packed, transformer
from cdmae.models.heads import sparse
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
