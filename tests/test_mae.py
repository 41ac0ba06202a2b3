"""Equations 2 to 6 and 9, each against the naive padded form, written out with transformers' own modules."""

from __future__ import annotations

import itertools
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn import functional
from transformers import BertConfig, BertForMaskedLM

from cdmae import training
from cdmae.batches import Batch, Reader, Step
from cdmae.config import Encoder
from cdmae.errors import InputError
from cdmae.files import Tokens
from cdmae.objectives import mae, objective, objectives
from cdmae.tokens import Vocabulary

V, D, CLS, SEP, MASK = 40, 24, 2, 3, 4
CPU = torch.device("cpu")
SETTINGS = Encoder(start="x", decoder_masking="uniform", encoder_masking="uniform", decoder_layers=2, batch=6)


def vocabulary() -> Vocabulary:
    special = np.arange(V) < 5
    return Vocabulary(V, 0, CLS, SEP, MASK, special, np.flatnonzero(~special), np.ones(V, bool))


def reader(
    settings: Encoder = SETTINGS, lengths: tuple[int, ...] = (5, 9, 1, 0, 7, 12, 3), max_length: int = 12
) -> Reader:
    starts = np.concatenate([[0], np.cumsum(lengths)])
    ids = np.random.default_rng(0).integers(5, V, starts[-1]).astype(np.uint16)
    tokens = Tokens(ids, starts, starts[:-1], np.ones(V, bool))
    sides = mae.sides(settings, "word")
    return Reader(tokens, None, vocabulary(), sides, batch=settings.batch, max_length=max_length, seed=3)


def language_model() -> BertForMaskedLM:
    torch.manual_seed(1)
    sizes = {"hidden_size": D, "num_hidden_layers": 3, "num_attention_heads": 3, "intermediate_size": 40}
    config = BertConfig(vocab_size=V, initializer_range=0.3, attn_implementation="eager", **sizes)
    model = BertForMaskedLM(config).eval()
    with torch.no_grad():
        model.cls.predictions.bias.normal_()  # or a missing bias would go unnoticed
    return model


@pytest.fixture
def network() -> mae.Mae:
    made = mae.create(language_model(), SETTINGS, seed=5).eval()
    with torch.no_grad():
        made.projection.bias.normal_()
    return made


@pytest.fixture
def step() -> Step:
    return next(reader().steps(0, 1))


class Padded:
    """A side of a step, padded, and what the paper computes from it; every function is an equation as it stands."""

    def __init__(self, step: Step, side: str) -> None:
        masked = step.sides[side]
        cuts = list(itertools.pairwise(masked.inputs.starts.tolist()))
        size = len(cuts), max(b - a for a, b in cuts)
        self.ids = torch.zeros(size, dtype=torch.long)
        self.attended, self.chosen = torch.zeros(size, dtype=torch.bool), torch.zeros(size, dtype=torch.bool)
        self.labels = torch.zeros(size, dtype=torch.long)
        for row, (a, b) in enumerate(cuts):
            self.ids[row, : b - a] = torch.from_numpy(masked.inputs.values[a:b])
            self.chosen[row, : b - a] = torch.from_numpy(masked.chosen[a:b])
            self.labels[row, : b - a] = torch.from_numpy(masked.labels[a:b])
            self.attended[row, : b - a] = True

    def encoder(self, network: mae.Mae) -> Tensor:
        """Equation 2: h = Encoder(x_enc), [B, n, D]."""
        return network.model.bert(self.ids, attention_mask=self.attended).last_hidden_state

    def decoder(self, network: mae.Mae, h_b: Tensor) -> Tensor:
        """Equation 5: h = Decoder(h_b, x_dec), [B, n, D]."""
        states = torch.cat([h_b[:, None], network.model.bert.embeddings(self.ids)[:, 1:]], dim=1)
        hidden = torch.zeros(self.attended.shape).masked_fill(~self.attended, -torch.inf)[:, None, None, :]
        for layer in network.decoder:
            states = layer(states, attention_mask=hidden)
        return states

    def loss(self, network: mae.Mae, states: Tensor) -> Tensor:
        """Equations 3 and 6, normalised: the mean of -log P(x | h) over the masked tokens."""
        logits = network.model.cls(states)  # [B, n, V], everywhere
        return functional.cross_entropy(logits[self.chosen], self.labels[self.chosen])


def whole(step: Step) -> Batch:
    (batch,) = step.batches(10_000, CPU)
    return batch


def test_equation_2_encoder(network: mae.Mae, step: Step) -> None:
    view, padded = whole(step)["encoder"], Padded(step, "encoder")
    h_c, masked = network.encode(view)
    expected = padded.encoder(network)
    torch.testing.assert_close(h_c, expected[:, 0], atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(masked[: padded.chosen.sum()], expected[padded.chosen], atol=1e-5, rtol=1e-5)


def test_equation_3_and_6_losses(network: mae.Mae, step: Step) -> None:
    _, numbers = network(whole(step))
    encoder, decoder = Padded(step, "encoder"), Padded(step, "decoder")
    states = encoder.encoder(network)
    torch.testing.assert_close(numbers["encoder_loss"], encoder.loss(network, states), atol=1e-5, rtol=1e-5)
    states = decoder.decoder(network, network.projection(states[:, 0]))
    torch.testing.assert_close(numbers["decoder_loss"], decoder.loss(network, states), atol=1e-5, rtol=1e-5)


def test_equation_4_bottleneck(network: mae.Mae) -> None:
    h_c = torch.randn(5, D)
    expected = h_c @ network.projection.weight.T + network.projection.bias
    torch.testing.assert_close(network.bottleneck(h_c), expected)


def test_equation_4_without_projection() -> None:
    """The ablation of table 4: h_b is h_c."""
    network = mae.create(language_model(), Encoder(start="x", projection=False), seed=5)
    h_c = torch.randn(5, D)
    assert torch.equal(network.bottleneck(h_c), h_c)


def test_equation_5_decoder(network: mae.Mae, step: Step) -> None:
    h_b, padded = torch.randn(6, D), Padded(step, "decoder")
    found = network.decode(h_b, whole(step)["decoder"])
    torch.testing.assert_close(
        found[: padded.chosen.sum()], padded.decoder(network, h_b)[padded.chosen], atol=1e-5, rtol=1e-5
    )


def test_equation_9_loss_and_gradient(network: mae.Mae, step: Step) -> None:
    """L = L_enc + L_dec, and its gradient with respect to every weight."""
    encoder, decoder = Padded(step, "encoder"), Padded(step, "decoder")
    states = encoder.encoder(network)
    hidden = decoder.decoder(network, network.projection(states[:, 0]))
    expected = encoder.loss(network, states) + decoder.loss(network, hidden)
    found, numbers = network(whole(step))
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(found.detach(), numbers["encoder_loss"] + numbers["decoder_loss"])
    names, weights = zip(*network.named_parameters(), strict=True)
    both = torch.autograd.grad(found, weights), torch.autograd.grad(expected, weights)
    for name, ours, theirs in zip(names, *both, strict=True):
        torch.testing.assert_close(ours, theirs, atol=2e-5, rtol=1e-4, msg=lambda text, name=name: f"{name}: {text}")


def test_logits_in_pieces_change_nothing(network: mae.Mae, step: Step, monkeypatch: pytest.MonkeyPatch) -> None:
    """A few rows of logits at a time, whatever divides them."""
    from cdmae.objectives import _prediction

    weights = list(network.parameters())
    results = []
    for at_once in (1 << 24, 7 * V):
        monkeypatch.setitem(_prediction.LOGITS_AT_ONCE, "cpu", at_once)
        loss, _ = network(whole(step))
        results.append((loss.detach(), *torch.autograd.grad(loss, weights)))
    for one, other in zip(*results, strict=True):
        torch.testing.assert_close(one, other, atol=1e-6, rtol=1e-4)


def test_accumulation_changes_neither_loss_nor_gradient(network: mae.Mae, step: Step) -> None:
    """1 x 6 equals several micro-batches, also shared out to two processes."""
    weights = list(network.parameters())

    def total(*parts: Batch) -> list[Tensor]:
        sums = [torch.zeros(())] * 3 + [torch.zeros_like(each) for each in weights]
        for part in parts:
            loss, numbers = network(part)
            found = [
                loss.detach(),
                numbers["encoder_loss"],
                numbers["decoder_loss"],
                *torch.autograd.grad(loss, weights),
            ]
            sums = [one + other for one, other in zip(sums, found, strict=True)]
        return sums

    expected = total(whole(step))
    pieces = list(step.batches(15, CPU))
    shared = [list(step.batches(15, CPU, rank, 2)) for rank in (0, 1)]
    assert len(pieces) >= 3
    assert len(shared[0]) == len(shared[1])
    assert sum(part.share for part in pieces) == pytest.approx(1)
    for parts in (pieces, shared[0] + shared[1]):
        for found, whole_one in zip(total(*parts), expected, strict=True):
            torch.testing.assert_close(found, whole_one, atol=1e-5, rtol=1e-4)


def test_decoder_starts_random_from_its_seed() -> None:
    """Spread as the model's other weights, biases 0; a function of the seed; the global generator is left alone."""
    state = torch.get_rng_state()
    model = language_model()
    torch.set_rng_state(state)
    one, again, other = (mae.create(model, SETTINGS, seed) for seed in (1, 1, 2))
    weight = one.decoder[1].intermediate.dense.weight
    assert weight.std().item() == pytest.approx(0.3, rel=0.1)
    assert not one.decoder[0].output.dense.bias.any()
    assert torch.equal(one.decoder[0].output.LayerNorm.weight, torch.ones(D))
    assert torch.equal(weight, again.decoder[1].intermediate.dense.weight)
    assert not torch.equal(weight, other.decoder[1].intermediate.dense.weight)
    assert torch.equal(state, torch.get_rng_state())


def test_spread_is_zero_where_all_vectors_are_the_same() -> None:
    """The number that tells a collapse."""
    model = language_model()
    with torch.no_grad():
        for each in model.parameters():
            if each.ndim > 1:
                each.mul_(1e-9)
    collapsed, alive = mae.create(model, SETTINGS, seed=1), mae.create(language_model(), SETTINGS, seed=1)
    batch = whole(next(reader().steps(0, 1)))
    assert collapsed(batch)[1]["spread"] < 1e-4
    assert alive(batch)[1]["spread"] > 0.1


def test_one_batch_can_be_learnt_by_heart(network: mae.Mae) -> None:
    """Both losses fall near 0 on one batch: gradients reach everything that must learn."""
    batch = whole(next(reader().steps(0, 1)))
    adam, first = training.optimiser(network, 5e-3, 0.0), {}
    for done in range(80):
        training.set_learning_rate(adam, training.learning_rate(done, 80, 8, 5e-3))
        loss, numbers = network(batch)
        loss.backward()
        adam.step()
        adam.zero_grad()
        first = first or numbers
    for side in ("encoder_loss", "decoder_loss"):
        assert numbers[side] < 0.15 * first[side]


def test_only_a_bert_can_be_pretrained() -> None:
    model = SimpleNamespace(config=SimpleNamespace(model_type="electra"))
    with pytest.raises(InputError, match="needs a BERT .* type electra"):
        mae.create(model, SETTINGS, seed=1)


@pytest.mark.parametrize("name", objectives())
def test_every_objective_offers_what_the_loop_calls(name: str) -> None:
    """A new file in the folder is tested unasked."""
    module = objective(name)
    network = module.create(language_model(), SETTINGS, seed=1)
    sides = module.sides(SETTINGS, "word")
    source = reader()
    made = Reader(source.tokens, None, source.vocabulary, sides, batch=6, max_length=12, seed=3)
    loss, numbers = network(whole(next(made.steps(0, 1))), None)
    assert torch.isfinite(loss)
    loss.backward()
    assert all(value.ndim == 0 and not value.requires_grad for value in numbers.values())
    with pytest.raises(InputError, match="objective is 'nothing'; allowed: .*mae"):
        objective("nothing")
