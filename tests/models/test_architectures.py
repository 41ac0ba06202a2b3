"""Every architecture is computed on packed rows as transformers computes it padded, with every head
and objective.
"""

import itertools
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from tiny_models import ALL, ROTARY, model, padded
from tiny_objectives import CPU, NAMES, SETTINGS, as_objective, gradients, reader, ready, whole

from cdmae.models import attention, packed, transformer
from cdmae.models.heads import sparse
from cdmae.models.ragged import BARE, HIDDEN, Ragged
from cdmae.pretraining.objectives import objective
from cdmae.training import setup

SEQUENCES = [[2, 7, 8, 9, 3], [2, 3], [2, *range(5, 38), 3], [2, *range(11, 22), 3]]


def theirs(network):
    """The last states by transformers, its padding cut away: [S, D]."""
    read = padded(SEQUENCES, network.config.pad_token_id)
    return network(**read).last_hidden_state[read["attention_mask"].bool()]


def close(one, other, tolerance, name=""):
    torch.testing.assert_close(
        one, other, atol=tolerance, rtol=tolerance, msg=lambda text: f"{name}: {text}"
    )


@pytest.mark.parametrize(
    ("family", "long"), [*((family, attention.LONG) for family in ALL), ("bert", 1)]
)
def test_states_and_gradients_are_those_of_transformers(family, long, monkeypatch):
    """Gradients of all weights: from all rows, and from the last layer at chosen rows alone; by both ways of
    padded attention.

    In float64, of which transformers computes rotations in float32.
    """
    monkeypatch.setattr(attention, "LONG", long)
    exact = 1e-4 if family in ROTARY else 1e-8
    network = model(family).double()
    names, weights = zip(*network.named_parameters(), strict=True)
    batch = packed.pack(SEQUENCES)
    starts = np.cumsum([0, *map(len, SEQUENCES)])
    chosen = np.array([0, 2, 7, 9, 20, 39, 45])
    rows = packed.select(chosen, starts)
    expected = theirs(network)
    everywhere = transformer.hidden_states(network, batch)[: len(expected)]
    there = transformer.hidden_states(network, batch, last_rows=rows)[: len(chosen)]
    for found, wanted in ((everywhere, expected), (there, expected[chosen])):
        close(found, wanted, exact)
        direction = torch.randn(
            wanted.shape, dtype=torch.float64, generator=torch.Generator().manual_seed(1)
        )
        ours = torch.autograd.grad((found * direction).sum(), weights, retain_graph=True)
        others = torch.autograd.grad((wanted * direction).sum(), weights, retain_graph=True)
        for name, one, other in zip(names, ours, others, strict=True):
            close(one, other, exact, name)


@pytest.mark.parametrize(
    ("family", "name"),
    [
        *((family, "mae") for family in ALL),
        *zip(itertools.cycle(("electra", "modernbert")), NAMES),
    ],
)
def test_every_objective_trains_every_architecture(family, name):
    """A loss that does not depend on micro-batches; a gradient for every weight; the same dropout
    for the same generator.
    """
    start = model(family, "encoder")
    network = objective(name)(start, as_objective(name, SETTINGS), seed=5).eval()
    step = next(reader(name).steps(0, 1))
    (batch,) = ready(network, whole(step))
    loss, numbers = network(batch)
    batches = list(step.batches(15, CPU))
    assert len(batches) > 1
    parts, shown = zip(*map(network, ready(network, *batches)), strict=True)
    close(sum(parts), loss, 1e-5)
    for side in ("encoder_loss", "decoder_loss"):
        close(sum(part[side] for part in shown), numbers[side], 1e-5)
    assert loss.isfinite() and float(numbers["spread"]) > 0
    ours = gradients(network, loss)
    small = gradients(network, sum(parts))
    for key, gradient in ours.items():
        close(gradient, small[key], 2e-4, key)
    assert all(gradient.isfinite().all() for gradient in ours.values())
    one, again = (network(batch, setup.generator(CPU, 1, "drop"))[0] for _ in range(2))
    assert torch.equal(one, again)


@pytest.mark.parametrize("kind", [torch.float32, torch.bfloat16])
def test_dropout_keeps_the_mean(kind):
    """A share p becomes 0, the others are divided by 1 - p; every 64-bit word serves four numbers
    alike.
    """
    ones = torch.ones(1000, 400, dtype=kind)
    found = transformer.drop(ones, 0.1, setup.generator(CPU, 3, "drop"))
    assert sorted(found.unique().tolist()) == pytest.approx([0, 1 / 0.9])
    shares = (found.view(-1, 4) == 0).float().mean(0)
    assert shares.tolist() == pytest.approx([0.1] * 4, abs=0.005)


# --- heads ----------------------------------------------------------------------------------------


SPLADE = SimpleNamespace(pieces="all")
TEXTS = [[2, 7, 9, 11, 3], [2, 30, 3], [2, *range(5, 25), 3]]


@pytest.mark.parametrize("family", ALL)
def test_weights_and_their_gradient_equal_transformers(family, monkeypatch):
    """Some texts at a time, and one at a time, in float64; the matrix is that of the embeddings."""
    network = model(family, "encoder").double()
    assert network.get_output_embeddings().weight is network.get_input_embeddings().weight
    rounding = 1e-6 if family in ROTARY else 1e-9
    read = padded(TEXTS, network.config.pad_token_id or 0)
    logits = network(**read).logits
    expected = (torch.log1p(torch.relu(logits)) * read["attention_mask"][..., None]).amax(1)
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
    states = transformer.hidden_states(network, batch, last_rows=rows)[: len(rows.cells)]
    read = padded(TEXTS, network.config.pad_token_id or 0)
    mask = read["attention_mask"]
    for text, ids in enumerate(TEXTS[:2]):
        mask[text, len(ids) - 1] = 0
    expected = network(**read).last_hidden_state
    expected = torch.cat([each[: len(ids)] for each, ids in zip(expected, TEXTS, strict=True)])
    expected = expected[torch.from_numpy(flags & BARE == 0)]
    assert torch.allclose(states, expected, atol=rounding)
