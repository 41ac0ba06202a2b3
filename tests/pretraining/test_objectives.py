"""What holds for every objective in the folder."""

from pathlib import Path

import pytest
import torch
from tiny_objectives import (
    CPU,
    NAMES,
    OBJECTIVES,
    SETTINGS,
    V,
    as_objective,
    first,
    gradients,
    language_model,
    learnt,
    network_of,
    reader,
    same,
)
from torch.nn import functional

from cdmae import masking
from cdmae.config.encoders import Pooled
from cdmae.pretraining.objectives import _prediction, objective
from cdmae.training import setup
from tests.naive import Naive

FILES = Path(_prediction.__file__).parent.glob("[!_]*.py")
EVERY = pytest.mark.parametrize("name", NAMES)


def test_every_file_has_a_class_and_settings():
    assert {path.stem for path in FILES} == {*NAMES}
    with pytest.raises(LookupError, match=r"_parts.py has no class with the name '_parts'"):
        objective("_parts")


@pytest.mark.parametrize(
    ("name", "changed"),
    [
        *((name, {}) for name in NAMES),
        *((name, {"pooling": "mean"}) for name in NAMES if issubclass(OBJECTIVES[name], Pooled)),
        ("mae", {"projection": False}),
        ("seed", {"attention_span": 1}),
        ("seed", {"attention_span": 4}),
        ("master", {"complement_ratio": 0}),
        ("dupmae", {"bag_weight": 0.1}),
        ("bowdpr", {"bag_weight": 3.0}),
        ("condenser", {"early_layers": 2}),
    ],
)
def test_every_objective_is_its_naive_form(name, changed):
    """Loss and gradient of the formulas, padded and with the head everywhere."""
    # Contriever's own temperature makes its gradients, and their rounding, 20 times as large.
    fixed = {"temperature": 1.0} if name == "contriever" else {}
    network, step = network_of(name, **fixed, **changed), first(name)
    loss, numbers = learnt(network, step)
    same(network, loss, Naive(name, network)(step))
    assert numbers.keys() == {"encoder_loss", "decoder_loss", "spread"}
    assert all(value.ndim == 0 and not value.requires_grad for value in numbers.values())
    torch.testing.assert_close(loss.detach(), numbers["encoder_loss"] + numbers["decoder_loss"])
    learning = gradients(network, learnt(network, step)[0])
    assert all(each.any() for key, each in learning.items() if "key.bias" not in key)
    idle = [key for key, _ in network.named_parameters() if key not in learning]
    assert all(name == "contriever" and "predictions" in key for key in idle)
    assert numbers["spread"] > 0.01
    if changed:
        usual = first(name, settings=network_of(name, **fixed).settings)
        assert not torch.isclose(loss, learnt(network_of(name, **fixed), usual)[0], atol=1e-4)


@pytest.mark.parametrize("at_once", [7 * V, 24 * V])
def test_logits_in_pieces_change_nothing(at_once, monkeypatch):
    network, step = network_of("mae"), first("mae")
    whole_loss = learnt(network, step)[0]
    monkeypatch.setitem(_prediction.LOGITS_AT_ONCE, "cpu", at_once)
    same(network, learnt(network, step)[0], whole_loss)


@pytest.mark.parametrize("kind", ["fp32", "bf16", "fp16"])
@pytest.mark.parametrize("lead", [-20.0, 0.0, 6.0, 10.5])
@pytest.mark.parametrize("size", [1.0, 1e-7])
def test_small_losses_have_the_gradient_of_float64(kind, lead, size):
    """With logits that bfloat16 holds, whatever it makes of probabilities near 1; the losses are 24
    to .001, and a global batch's weights are too small for float16.
    """
    generator = torch.Generator().manual_seed(2)
    rows, labels = torch.eye(8), torch.arange(8)
    shapes = ((V, 8), (V,))
    matrix, bias = (torch.randint(-16, 17, shape, generator=generator) / 16 for shape in shapes)
    matrix[labels, labels] += lead
    weights = torch.rand(8, generator=generator) * size
    inputs = [each.requires_grad_() for each in (rows, matrix, bias)]
    with setup.autocast(kind, CPU):
        loss, each = _prediction._CrossEntropy.apply(*inputs, labels, weights)
    wide = [each.detach().double().requires_grad_() for each in inputs]
    expected = functional.cross_entropy(functional.linear(*wide), labels, reduction="none")
    torch.testing.assert_close(each.double(), expected.detach(), rtol=0.01, atol=0)
    total = torch.dot(expected, weights.double())
    found = torch.autograd.grad(loss, inputs)
    for ours, exact in zip(found, torch.autograd.grad(total, wide), strict=True):
        assert (ours - exact).norm() < 0.01 * exact.norm()


@EVERY
@pytest.mark.parametrize("precision", ["bf16", "fp16"])
def test_mixed_precision_gives_nearly_the_same_loss(name, precision):
    """Weights, states and losses stay in float32; SimLM's generator may sample other words."""
    network, step = network_of(name), first(name)
    expected = learnt(network, step)[0]
    with setup.autocast(precision, CPU):
        found = learnt(network, step)[0]
    assert found.dtype == torch.float32
    assert found.item() == pytest.approx(expected.item(), rel=0.1 if name == "simlm" else 0.02)
    assert all(each.dtype == torch.float32 for each in gradients(network, found).values())


@EVERY
@pytest.mark.parametrize("lengths", [(1, 0, 0, 0, 1, 0, 0, 3), (0,) * 6])
def test_a_batch_with_nothing_to_predict_teaches_nothing(name, lengths):
    """Passages of no word or of one, of which none is masked: the loss and its gradient are finite."""
    network = network_of(name)
    loss, _ = learnt(network, first(name, lengths))
    assert torch.isfinite(loss)
    assert all(torch.isfinite(each).all() for each in gradients(network, loss).values())


@EVERY
def test_new_weights_are_a_function_of_the_seed(name):
    model = language_model()
    settings = as_objective(name, SETTINGS)
    one, again, other = (objective(name)(model, settings, seed).state_dict() for seed in (1, 1, 2))
    assert all(torch.equal(one[key], again[key]) for key in one)
    if name not in ("bowdpr", "contriever", "mlm"):
        assert any(not torch.equal(one[key], other[key]) for key in one)


@EVERY
def test_a_side_predicts_what_it_masks_or_every_token(name):
    """Sides are masked in the settings' shares; plain ones and RetroMAE's decoder predict all."""
    lengths = (10, 10, 10, 10, 10, 10, 10)
    source = reader(name, lengths=lengths)
    (step,) = source.read(0, 1)
    for side, masked in step.sides.items():
        real = masked.labels >= 5
        shares = {"encoder": 0.3, "second": 0.5}
        share = shares.get(side, 0.5 if side in ("decoder", "neighbour") else 1.0)
        if source.sides[side] == masking.PLAIN:
            share = 0.0 if name == "contriever" else 1.0
        if name in ("retromae", "dupmae") and side == "decoder":
            share = 1.0
        if side == "complement":
            share = 0.5
        found = masked.chosen.sum() / real.sum()
        assert found == pytest.approx(share, abs=0.12), side
        assert not masked.chosen[~real].any()


@pytest.mark.parametrize("name", ["mae", "lexmae"])
def test_spread_is_zero_where_all_passages_have_the_same_vector(name):
    """The number that reveals a collapse."""
    network = network_of(name)
    with torch.no_grad():
        for each in network.model.parameters():
            if each.ndim > 1:
                each.mul_(1e-9)
    lengths = (5, 9, 2, 3, 7, 12, 4)  # LexMAE: a passage without words has the uniform distribution
    assert learnt(network, first(name, lengths=lengths))[1]["spread"] < 1e-4
