"""The packed forward equals transformers' padded one: states, gradients, chosen rows; and dropout."""

from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch
from tiny_models import padded
from torch._subclasses.fake_tensor import FakeTensorMode
from transformers import BertConfig, BertModel

from cdmae.models import attention, packed, transformer
from cdmae.models.ragged import Ragged
from cdmae.training import setup

SIZES = {
    "vocab_size": 50,
    "hidden_size": 24,
    "num_hidden_layers": 3,
    "num_attention_heads": 3,
    "intermediate_size": 40,
}
SEQUENCES = [[2, 7, 8, 9, 3], [2, 3], [2, 11, 12, 3], [2, 20, 21, 22, 23, 24, 25, 3]]


def bert(**extra):
    torch.manual_seed(0)
    return BertModel(
        BertConfig(**SIZES, initializer_range=0.3, **extra), add_pooling_layer=False
    ).eval()


def states(model, sequences, types=None):
    """What transformers computes, its padding cut away: [S, D]."""
    read = padded(sequences, types=types)
    return model(**read).last_hidden_state[read["attention_mask"].bool()]


def test_pairs_use_their_types():
    """Token types of query and passage reach the embeddings."""
    model = bert()
    types = [[0] * 2 + [1] * (len(each) - 2) for each in SEQUENCES]
    expected = states(model, SEQUENCES, types)
    batch = packed.pack(replace(Ragged.of(SEQUENCES), types=Ragged.of(types).values))
    found = transformer.hidden_states(model, batch)[: len(expected)]
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-5)
    assert not torch.allclose(found, states(model, SEQUENCES), atol=1e-3)


def test_dropout_follows_its_generator():
    """Off without a generator, repeatable with one, another generator another result."""
    model, cpu = bert(hidden_dropout_prob=0.2), torch.device("cpu")
    batch = packed.pack(SEQUENCES)
    plain = transformer.vectors(model, batch)
    one, again, other = (
        transformer.vectors(model, batch, generator=setup.generator(cpu, n, "drop"))
        for n in (1, 1, 2)
    )
    torch.testing.assert_close(plain, transformer.vectors(model, batch), atol=0, rtol=0)
    torch.testing.assert_close(one, again, atol=0, rtol=0)
    assert not torch.allclose(one, other)
    assert not torch.allclose(one, plain)


@pytest.mark.parametrize("kind", [torch.float32, torch.bfloat16])
def test_drop_keeps_the_mean(kind):
    """A share p becomes 0, the others are divided by 1 - p; every 64-bit word serves four numbers
    alike.
    """
    ones = torch.ones(1000, 400, dtype=kind)
    found = transformer.drop(ones, 0.1, setup.generator(torch.device("cpu"), 3, "drop"))
    assert sorted(found.unique().tolist()) == pytest.approx([0, 1 / 0.9])
    shares = (found.view(-1, 4) == 0).float().mean(0)
    assert shares.tolist() == pytest.approx([0.1] * 4, abs=0.005)


@pytest.mark.parametrize(
    ("size", "kind", "capability", "kernel"),
    [
        (64, torch.bfloat16, 8, "varlen"), (256, torch.float16, 9, "varlen"),
        (26, torch.bfloat16, 8, "grid"), (264, torch.bfloat16, 8, "grid"),
        (64, torch.float32, 8, "grid"), (64, torch.float16, 7, "grid"),
    ],
)  # fmt: skip
def test_the_cuda_kernel_is_given_what_it_takes(size, kind, capability, kernel, monkeypatch):
    """Heads of a multiple of 8 numbers, at most 256, in half precision, from the A100 on; tensors
    that only say that they are on CUDA.
    """
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda _: (capability, 5))
    monkeypatch.setattr(attention, "_varlen", lambda *given: "varlen")
    monkeypatch.setattr(attention, "_Attention", SimpleNamespace(apply=lambda *given: "grid"))
    grid = attention.Grid(packed.pack(SEQUENCES).layout, 3)
    with FakeTensorMode():
        states = torch.empty(4, 3 * size, dtype=kind, device="cuda")
        assert attention.attend(states, states, states, grid, grid) == kernel
