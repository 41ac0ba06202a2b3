"""LexMAE's bottleneck: a distribution over the vocabulary, and the mean word embedding under it."""

import math
from dataclasses import replace

import pytest
import torch
from any_kind import as_objective
from tiny_objectives import SETTINGS, D, V, first, language_model, whole

from cdmae.errors import InputError
from cdmae.models import packed
from cdmae.pretraining.objectives import lexmae


def network():
    """A network of `lexmae` without dropout."""
    return lexmae.LexMae(language_model(), as_objective("lexmae", SETTINGS), 5).eval()


def test_the_distribution_by_hand():
    """Two passages of the rows [CLS] a b [SEP] and [CLS] c [SEP]; the logits are the states."""
    made = network()
    head = made.model.cls.predictions
    with torch.no_grad():
        head.transform = torch.nn.Identity()
        head.transform.dense = head.transform.transform_act_fn = torch.nn.Identity()
        head.transform.LayerNorm = torch.nn.Identity()
        head.decoder.weight.zero_()
        head.decoder.weight[:D] = torch.eye(D)
        head.decoder.bias.zero_()
    inputs = packed.pack([[2, 7, 8, 3], [2, 9, 3]])
    states = torch.zeros(inputs.layout.rows, D)
    states[0, 0] = states[3, 0] = states[4, 0] = states[6, 0] = 9.0  # special tokens do not count
    states[1, 1] = 2.0
    states[2, 1], states[2, 2] = 1.0, 3.0
    states[5, 3] = -1.0
    found = made.distribution(states, inputs)
    total = V - 2 + math.exp(2) + math.exp(3)
    assert found[0, 1].item() == pytest.approx(math.exp(2) / total, rel=1e-5)
    assert found[0, 2].item() == pytest.approx(math.exp(3) / total, rel=1e-5)
    assert found[0, 0].item() == pytest.approx(1 / total, rel=1e-5)
    assert found[1, 3].item() == pytest.approx(math.exp(-1) / (V - 1 + math.exp(-1)), rel=1e-5)
    torch.testing.assert_close(found.sum(1), torch.ones(2))


def test_the_bottleneck_is_the_mean_embedding_and_teaches_embeddings_nothing():
    made = network()
    shares = torch.tensor([[0.25, 0.75] + [0.0] * (V - 2)], requires_grad=True)
    words = made.model.bert.embeddings.word_embeddings.weight
    mean = made.embedded(shares)
    torch.testing.assert_close(mean[0], 0.25 * words[0] + 0.75 * words[1])
    of_shares, of_words = torch.autograd.grad(mean.sum(), [shares, words], allow_unused=True)
    assert of_words is None
    torch.testing.assert_close(of_shares[0], words.sum(1).detach())


def test_a_passage_without_words_has_the_uniform_distribution():
    made = network()
    inputs = packed.pack([[2, 3], [2, 9, 3]])
    states = torch.randn(inputs.layout.rows, D, requires_grad=True)
    shares = made.distribution(states, inputs)
    torch.testing.assert_close(shares[0], torch.full((V,), 1 / V))
    (gradient,) = torch.autograd.grad(shares.square().sum(), states)
    assert torch.isfinite(gradient).all()
    assert not gradient[:2].any()


def test_the_decoder_masks_all_that_the_encoder_masks_and_cannot_mask_less():
    step = first("lexmae")
    encoder, decoder = (step.sides[name].chosen for name in ("encoder", "decoder"))
    assert encoder.any()
    assert decoder[encoder].all()
    assert decoder.sum() > encoder.sum()
    settings = as_objective("lexmae", SETTINGS)
    with pytest.raises(InputError, match="decoder_ratio is 0.2; expected from encoder_ratio"):
        replace(settings, decoder_ratio=0.2).check_nested()


def test_spread_is_zero_where_all_passages_have_the_same_distribution():
    """The number that reveals a collapse."""
    made = network()
    assert made(whole(first("lexmae")))[1]["spread"] > 0.01
    with torch.no_grad():
        made.model.cls.predictions.transform.dense.weight.zero_()
    lengths = (5, 9, 2, 3, 7, 12, 4)  # a passage without words would have the uniform one
    assert made(whole(first("lexmae", lengths)))[1]["spread"] < 1e-4
