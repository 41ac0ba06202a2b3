"""SimLM: what is masked and sampled, and where the decoder begins; its formula is in `benchmarks.naive`."""

import dataclasses

import pytest
import torch
from tiny_objectives import SETTINGS, D, V, bounds, language_model, reader

from cdmae.errors import InputError
from cdmae.models import architectures
from cdmae.pretraining.objectives import simlm


def test_simlm_samples_from_the_generator():
    """Over many draws words come as often as the generator says."""
    head = architectures.head(language_model())
    state = torch.randn(1, D)
    number = 20_000
    draws = torch.rand(number, generator=torch.Generator().manual_seed(1))
    found = simlm.sample(head, state.expand(number, D), draws, V).bincount(minlength=V) / number
    expected = head(state)[0].softmax(-1).detach()
    assert (found - expected).abs().max() < 4 * (0.25 / number) ** 0.5


def test_simlm_decoder_masks_all_that_the_encoder_masks():
    """And so many more that both are p_dec; the two inputs are corrupted on their own."""
    source = reader("simlm", lengths=(10,) * 40)
    for step in source.steps(0, 4):
        encoder, decoder = step.sides["encoder"], step.sides["decoder"]
        assert (decoder.chosen >= encoder.chosen).all()
        for a, b in bounds(encoder):
            candidates = int((encoder.labels[a:b] > 4).sum())
            more = int((0.5 - 0.3) / (1 - 0.3) * (candidates - encoder.chosen[a:b].sum()) + 1e-9)
            assert decoder.chosen[a:b].sum() == encoder.chosen[a:b].sum() + more


def test_simlm_decoder_begins_as_the_last_layers():
    network = simlm.SimLm(language_model(), SETTINGS, 5)
    ours, theirs = network.decoder.state_dict(), network.model.bert.encoder.layer[1:].state_dict()
    assert [key for key in ours if not torch.equal(ours[key], theirs[key])] == []
    assert network.decoder[0] is not network.model.bert.encoder.layer[1]
    assert network.generator.config.num_attention_heads == 1
    assert network.generator.config.hidden_size == D // 3
    with pytest.raises(InputError, match="decoder_layers is 4; allowed: up to 3, the layers that simlm copies"):
        simlm.SimLm(language_model(), dataclasses.replace(SETTINGS, decoder_layers=4), 5)
