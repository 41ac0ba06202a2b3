"""Equations 2 to 6 and 9, each against the naive padded form, written out with transformers' own
modules.
"""

import pytest
import torch
from tiny_objectives import SETTINGS, D, V, language_model, reader, same, whole
from torch import Tensor
from torch.nn import functional

from cdmae.config.objectives import Mae
from cdmae.pretraining.objectives import mae
from cdmae.training import setup
from tests.naive import Side


@pytest.fixture
def network():
    made = mae.Mae(language_model(), SETTINGS, seed=5).eval()
    with torch.no_grad():
        made.projection.bias.normal_()
    return made


@pytest.fixture
def step():
    return next(reader().steps(0, 1))


class Padded(Side):
    """What the paper computes from a padded side; every function is an equation as it stands."""

    def encoder(self, network: mae.Mae) -> Tensor:
        """Equation 2: h = Encoder(x_enc), [B, n, D]."""
        return network.model.bert(self.ids, attention_mask=self.attended).last_hidden_state

    def decoder(self, network: mae.Mae, h_b: Tensor) -> Tensor:
        """Equation 5: h = Decoder(h_b, x_dec), [B, n, D]."""
        states = torch.cat([h_b[:, None], network.model.bert.embeddings(self.ids)[:, 1:]], dim=1)
        for layer in network.decoder:
            states = layer(states, attention_mask=self.hidden)
        return states

    def loss(self, network: mae.Mae, states: Tensor) -> Tensor:
        """Equations 3 and 6, normalised: the mean of -log P(x | h) over the masked tokens."""
        logits = network.model.cls(states)  # [B, n, V], everywhere
        return functional.cross_entropy(logits[self.chosen], self.labels[self.chosen])


def test_equation_2_encoder(network, step):
    view, padded = whole(step)["encoder"], Padded.of(step, "encoder")
    h_c, masked = network.encode(view)
    expected = padded.encoder(network)
    torch.testing.assert_close(h_c, expected[:, 0], atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(
        masked[: padded.chosen.sum()], expected[padded.chosen], atol=1e-5, rtol=1e-5
    )


def test_equation_4_bottleneck_with_and_without_projection(network):
    h_c = torch.randn(5, D)
    expected = h_c @ network.projection.weight.T + network.projection.bias
    torch.testing.assert_close(network.bottleneck(h_c), expected)
    # Without, as in the ablation of table 4, h_b is h_c.
    network = mae.Mae(language_model(), Mae(start="x", collection="c", projection=False), seed=5)
    assert torch.equal(network.bottleneck(h_c), h_c)


def test_equation_5_decoder(network, step):
    h_b, padded = torch.randn(6, D), Padded.of(step, "decoder")
    found = network.decode(h_b, whole(step)["decoder"])
    expected = padded.decoder(network, h_b)[padded.chosen]
    torch.testing.assert_close(found[: padded.chosen.sum()], expected, atol=1e-5, rtol=1e-5)


def test_equations_3_6_and_9_losses_and_gradient(network, step):
    """L = L_enc + L_dec, and its gradient with respect to every weight."""
    encoder, decoder = Padded.of(step, "encoder"), Padded.of(step, "decoder")
    states = encoder.encoder(network)
    of_encoder = encoder.loss(network, states)
    of_decoder = decoder.loss(network, decoder.decoder(network, network.projection(states[:, 0])))
    found, numbers = network(whole(step))
    torch.testing.assert_close(numbers["encoder_loss"], of_encoder, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(numbers["decoder_loss"], of_decoder, atol=1e-5, rtol=1e-5)
    same(network, found, of_encoder + of_decoder)


def test_logits_in_pieces_change_nothing(network, step, monkeypatch):
    """A few rows of logits at a time, whatever divides them."""
    from cdmae.pretraining.objectives import _prediction

    weights = list(network.parameters())
    results = []
    for at_once in (1 << 24, 7 * V):
        monkeypatch.setitem(_prediction.LOGITS_AT_ONCE, "cpu", at_once)
        loss, _ = network(whole(step))
        results.append((loss.detach(), *torch.autograd.grad(loss, weights)))
    for one, other in zip(*results, strict=True):
        torch.testing.assert_close(one, other, atol=1e-6, rtol=1e-4)


@pytest.mark.parametrize("kind", ["fp32", "bf16", "fp16"])
@pytest.mark.parametrize("lead", [-20.0, 0.0, 6.0, 10.5])
@pytest.mark.parametrize("size", [1.0, 1e-7])
def test_small_losses_have_the_gradient_of_float64(kind, lead, size):
    """With logits that bfloat16 holds, whatever it makes of probabilities near 1; the losses are 24
    to .001, and a global batch's weights are too small for float16.
    """
    from cdmae.pretraining.objectives import _prediction

    generator = torch.Generator().manual_seed(2)
    rows, labels = torch.eye(8), torch.arange(8)
    matrix, bias = (
        torch.randint(-16, 17, shape, generator=generator) / 16 for shape in ((V, 8), (V,))
    )
    matrix[labels, labels] += lead
    weights = torch.rand(8, generator=generator) * size
    inputs = [each.requires_grad_() for each in (rows, matrix, bias)]
    with setup.autocast(kind, torch.device("cpu")):
        loss, each = _prediction._CrossEntropy.apply(*inputs, labels, weights)
    wide = [each.detach().double().requires_grad_() for each in inputs]
    expected = functional.cross_entropy(functional.linear(*wide), labels, reduction="none")
    torch.testing.assert_close(each.double(), expected.detach(), rtol=0.01, atol=0)
    total = torch.dot(expected, weights.double())
    for ours, exact in zip(
        torch.autograd.grad(loss, inputs), torch.autograd.grad(total, wide), strict=True
    ):
        assert (ours - exact).norm() < 0.01 * exact.norm()


def test_decoder_starts_random():
    """Spread as the model's other weights, biases 0."""
    decoder = mae.Mae(language_model(), SETTINGS, seed=1).decoder
    assert decoder[1].intermediate.dense.weight.std().item() == pytest.approx(0.3, rel=0.1)
    assert not decoder[0].output.dense.bias.any()
    assert torch.equal(decoder[0].output.LayerNorm.weight, torch.ones(D))


def test_spread_is_zero_where_all_vectors_are_the_same(step):
    """The number that tells a collapse."""
    model = language_model()
    with torch.no_grad():
        for each in model.parameters():
            if each.ndim > 1:
                each.mul_(1e-9)
    assert mae.Mae(model, SETTINGS, seed=1)(whole(step))[1]["spread"] < 1e-4
    assert mae.Mae(language_model(), SETTINGS, seed=1)(whole(step))[1]["spread"] > 0.1
