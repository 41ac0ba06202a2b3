"""Half of a passage finds the other half: how passages are halved, what the measure is, every
objective.
"""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from tiny_pretraining import PIECES, SETTINGS, START

from cdmae.models import checkpoint
from cdmae.pretraining import objectives
from cdmae.pretraining.probes import halves
from cdmae.tokens.corpus import Tokens

CPU = torch.device("cpu")
CLS, SEP = 2, 3


def reader_of(passages, word_starts=None, length=30):
    """What `halves` reads of a reader, for passages given as lists of ids."""
    bounds = np.cumsum([0, *map(len, passages)])
    begins = np.ones(50, bool) if word_starts is None else word_starts
    tokens = Tokens(np.concatenate(passages).astype(np.uint16), bounds, bounds[:-1], begins)
    vocabulary = SimpleNamespace(
        word_starts=begins, cls_id=CLS, sep_id=SEP, of_model=lambda ids: ids
    )
    return SimpleNamespace(tokens=tokens, length=length, vocabulary=vocabulary)


def lists(read):
    return [
        read.values[a:b].tolist() for a, b in zip(read.starts[:-1], read.starts[1:], strict=True)
    ]


def test_passages_are_cut_as_in_training_and_halved_but_no_word_is():
    long = list(range(10, 40))
    found = lists(halves.halves(reader_of([long, [5] * 15, long[:17]], length=20)))
    expected = [
        [CLS, *long[:10], SEP],
        [CLS, *long[10:20], SEP],
        [CLS, *long[:8], SEP],
        [CLS, *long[8:17], SEP],
    ]
    assert found == expected
    starts_word = np.ones(50, bool)
    starts_word[[17, 18]] = (
        False  # the middle of the passage, 18, belongs to the word that begins at 16
    )
    found = lists(halves.halves(reader_of([list(range(10, 26))], starts_word)))
    assert found == [[CLS, *range(10, 16), SEP], [CLS, *range(16, 26), SEP]]


def test_however_many_passages_there_are_a_constant_number_is_looked_at(monkeypatch):
    monkeypatch.setattr(halves, "PASSAGES", 5)
    passages = [[5 + row % 40] * 16 for row in range(41)]
    found = lists(halves.halves(reader_of(passages)))
    assert [each[1] for each in found[::2]] == [5, 15, 25, 35, 5]  # rows 0, 10, 20, 30, 40


def test_reciprocal_ranks_by_hand():
    """The right one is first, third and eleventh; equal scores stand before it."""
    wanted, most = torch.eye(12), torch.full((12, 12), -1.0)
    most[0, 0] = 1.0
    most[1, :4] = torch.tensor([2.0, 1.0, 3.0, 0.5])
    most[2, :] = 5.0
    most[2, 2], most[2, 11] = 4.0, 0.0  # ten before it
    scores = most.clone()
    for row in range(3, 12):
        scores[row] = 1.0  # all alike
    assert halves.reciprocal_rank(scores, wanted) == pytest.approx((1 + 1 / 3 + 0 + 0) / 12)


def test_vectors_that_tell_passages_apart_find_every_other_half_in_mixed_precision_too():
    """Vectors that differ little, as in the middle of a training: products in bfloat16 would tie."""
    vectors = 10 + 0.1 * torch.randn(200, 32, generator=torch.Generator().manual_seed(1))
    vectors /= vectors.norm(dim=1, keepdim=True)
    with torch.autocast("cpu", torch.bfloat16):
        assert halves.reciprocal_rank(vectors, vectors) == 1
    vectors = torch.randn(30, 8, generator=torch.Generator().manual_seed(1))
    vectors /= vectors.norm(dim=1, keepdim=True)
    assert halves.reciprocal_rank(vectors, vectors) == 1
    assert halves.reciprocal_rank(vectors, vectors.roll(15, 0)) < 0.4


def test_too_few_long_passages_are_not_looked_at(inputs):
    network = objectives.objective("mae")(
        checkpoint.start_encoder(START, inputs["tokenizer"], 1), SETTINGS, 1
    )
    assert halves.look(network, reader_of([[5] * 16, [6] * 3]), 4096, CPU) is None
    assert len(PIECES) == 50
