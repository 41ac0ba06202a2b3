"""SimLM against its published form, naive and padded."""

from __future__ import annotations

import dataclasses

import pytest
import torch
from tiny_objectives import (
    SETTINGS,
    D,
    Padded,
    V,
    bounds,
    cross_entropy,
    first,
    language_model,
    network_of,
    reader,
    same,
    transformers_layers,
    transformers_model,
    whole,
)
from torch import Tensor
from torch.nn import functional

from cdmae.errors import InputError
from cdmae.objectives import simlm


def test_simlm_predicts_originals_of_replaced_tokens() -> None:
    """Generator, encoder and decoder as in the paper, tokens sampled by the cumulated probabilities."""
    network, step = network_of("simlm"), first("simlm")
    generator = transformers_model(network.generator)
    for each in (network.model, generator):  # a sampled [PAD] is a token like any other
        each.bert.embeddings.word_embeddings.padding_idx = None
    whole_text = Padded(step, "passage")

    def fill(side: str) -> tuple[Tensor, Tensor]:
        padded = Padded(step, side)
        logits = generator(padded.ids, attention_mask=padded.attended).logits
        ids, masked = padded.ids.clone(), step.sides[side]
        for row, (a, _) in enumerate(bounds(masked)):
            for place in padded.chosen[row].nonzero()[:, 0].tolist():
                heap = logits[row, place].softmax(-1).cumsum(0)
                ids[row, place] = int((heap <= masked.draws[a + place] * heap[-1]).sum())
        return ids, functional.cross_entropy(logits[padded.chosen], padded.labels[padded.chosen])

    filled, of_generator = fill("encoder")
    more, _ = fill("decoder")
    assert (filled != whole_text.ids).any()
    states = network.model.bert(filled, attention_mask=whole_text.attended).last_hidden_state
    decoded = torch.cat([states[:, :1], network.model.bert.embeddings(more)[:, 1:]], dim=1)
    for layer in transformers_layers(network.decoder, network.model.config):
        decoded = layer(decoded, attention_mask=whole_text.hidden)
    expected = cross_entropy(network, states, whole_text) + cross_entropy(network, decoded, whole_text) + of_generator
    same(network, network(whole(step))[0], expected)


def test_simlm_samples_from_the_generator() -> None:
    """Over many draws words come as often as the generator says."""
    head = language_model().cls.predictions
    state = torch.randn(1, D)
    number = 20_000
    draws = torch.rand(number, generator=torch.Generator().manual_seed(1))
    found = simlm.sample(head, state.expand(number, D), draws).bincount(minlength=V) / number
    expected = head(state)[0].softmax(-1).detach()
    assert (found - expected).abs().max() < 4 * (0.25 / number) ** 0.5


def test_simlm_decoder_masks_all_that_the_encoder_masks() -> None:
    """And so many more that both are p_dec; the two inputs are corrupted on their own."""
    source = reader("simlm", lengths=(10,) * 40)
    for step in source.steps(0, 4):
        encoder, decoder = step.sides["encoder"], step.sides["decoder"]
        assert (decoder.chosen >= encoder.chosen).all()
        for a, b in bounds(encoder):
            candidates = int((encoder.labels[a:b] > 4).sum())
            more = int((0.5 - 0.3) / (1 - 0.3) * (candidates - encoder.chosen[a:b].sum()) + 1e-9)
            assert decoder.chosen[a:b].sum() == encoder.chosen[a:b].sum() + more


def test_simlm_decoder_begins_as_the_last_layers() -> None:
    network = simlm.create(language_model(), SETTINGS, 5)
    ours, theirs = network.decoder.state_dict(), network.model.bert.encoder.layer[1:].state_dict()
    assert [key for key in ours if not torch.equal(ours[key], theirs[key])] == []
    assert network.decoder[0] is not network.model.bert.encoder.layer[1]
    assert network.generator.config.num_attention_heads == 1
    assert network.generator.config.hidden_size == D // 3
    with pytest.raises(InputError, match="decoder_layers is 4; allowed: up to 3, the layers that simlm copies"):
        simlm.create(language_model(), dataclasses.replace(SETTINGS, decoder_layers=4), 5)
