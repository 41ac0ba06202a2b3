"""Condenser and coCondenser against their published forms, naive and padded."""

from __future__ import annotations

import dataclasses

import pytest
import torch
from tiny_objectives import (
    SETTINGS,
    Padded,
    cross_entropy,
    encoder_states,
    first,
    language_model,
    learnt,
    network_of,
    same,
    transformers_layers,
    whole,
)

from cdmae.errors import InputError
from cdmae.objectives import condenser
from cdmae.objectives.cocondenser import contrast


@pytest.mark.parametrize(("early", "layers"), [(0, 1), (1, 1), (2, 2)])
def test_condenser_reads_late_cls_and_early_tokens(early: int, layers: int) -> None:
    """The head on [h_cls late; h early], and the late MLM loss; 0 is half of the three layers."""
    settings = dataclasses.replace(SETTINGS, early_layers=early)
    network, step = condenser.create(language_model(), settings, 5).eval(), first("condenser")
    padded = Padded(step, "encoder")
    states = encoder_states(network, padded)
    head = torch.cat([states[-1][:, :1], states[layers][:, 1:]], dim=1)
    for layer in transformers_layers(network.head, network.model.config):
        head = layer(head, attention_mask=padded.hidden)
    expected = cross_entropy(network, states[-1], padded) + cross_entropy(network, head, padded)
    same(network, network(whole(step))[0], expected)


def test_condenser_needs_late_layers() -> None:
    with pytest.raises(InputError, match="early_layers is 3; allowed: up to 2, the start has 3 layers"):
        condenser.create(language_model(), dataclasses.replace(SETTINGS, early_layers=3), 5)


# --- coCondenser ------------------------------------------------------------------------------------------------------


def test_cocondenser_contrasts_the_spans_of_the_global_batch() -> None:
    """Condenser's losses on spans, and -log of each span's share of its neighbour among all others' scores."""
    network, step = network_of("cocondenser"), first("cocondenser")
    padded = Padded(step, "encoder")
    assert len(padded.ids) == 12
    states = encoder_states(network, padded)
    head = torch.cat([states[-1][:, :1], states[1][:, 1:]], dim=1)
    for layer in transformers_layers(network.head, network.model.config):
        head = layer(head, attention_mask=padded.hidden)
    expected = cross_entropy(network, states[-1], padded) + cross_entropy(network, head, padded)
    h = states[-1][:, 0]
    for one in range(12):
        others = [other for other in range(12) if other != one]
        scores = torch.stack([h[one] @ h[other] for other in others])
        expected = expected - (h[one] @ h[one ^ 1] - scores.logsumexp(0)) / 12
    same(network, learnt(network, step)[0], expected)


def test_cocondenser_contrast_by_hand() -> None:
    vectors = torch.tensor([[1.0, 0.0], [2.0, 0.0], [0.0, 1.0], [0.0, 3.0]])
    shares = [
        torch.tensor([2.0, 0.0, 0.0]).softmax(0)[0],
        torch.tensor([2.0, 0.0, 0.0]).softmax(0)[0],
        torch.tensor([3.0, 0.0, 0.0]).softmax(0)[0],
        torch.tensor([3.0, 0.0, 0.0]).softmax(0)[0],
    ]
    torch.testing.assert_close(contrast(vectors), -torch.stack(shares).log().mean())
