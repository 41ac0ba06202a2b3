"""Contriever: crops, deletions, and the contrast of a global batch."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from any_kind import as_objective
from tiny_objectives import SETTINGS, V, vocabulary

from cdmae.masking import Side
from cdmae.pretraining.objectives import contriever
from cdmae.pretraining.reader import Reader
from cdmae.tokens.corpus import Tokens

LENGTH = 40


def reader(passages=400, length=LENGTH, seed=3, **changed):
    """Crops of passages of one length; word-piece i of every passage is 5 + i % 35."""
    ids = np.tile(5 + np.arange(length) % (V - 5), passages).astype(np.uint16)
    starts = np.arange(passages + 1) * length
    tokens = Tokens(ids, starts, starts[:-1], np.ones(V, bool))
    side = replace(Side("", 0.0, spans=2, crops=(0.05, 0.5)), **changed)
    how = {"batch": passages, "max_length": LENGTH + 2, "seed": seed}
    return Reader(tokens, {}, vocabulary(), {"encoder": side}, **how)


def test_the_loss_by_hand():
    """Two passages: -log of the share of a crop's own passage, at temperature 0.5."""
    q = [[1.0, 0.0], [0.5, 1.0]]
    k = [[0.8, 0.1], [0.0, 0.6]]
    vectors = torch.tensor([q[0], k[0], q[1], k[1]])
    first = -math.log(math.exp(1.6) / (math.exp(1.6) + math.exp(0.0)))
    second = -math.log(math.exp(1.2) / (math.exp(1.2) + math.exp(1.0)))
    found = contriever.contrast(vectors, 0.5).item()
    assert found == pytest.approx((first + second) / 2, rel=1e-6)


def test_crops_are_independent_and_uniform():
    texts = reader().texts(np.arange(400), np.zeros(400, int))
    sizes = texts.lengths.reshape(-1, 2)
    offsets = (texts.begins - np.repeat(np.arange(400) * LENGTH, 2)).reshape(-1, 2)
    assert sizes.min() == 2 and sizes.max() == LENGTH // 2 - 1  # 5 % and just below 50 %
    assert sizes.mean() == pytest.approx(0.275 * LENGTH - 0.5, rel=0.05)
    assert offsets.min() == 0 and (offsets + sizes).max() == LENGTH
    for numbers in (sizes, offsets):
        assert abs(np.corrcoef(numbers.T)[0, 1]) < 0.15
    assert len(np.unique(texts.rows)) == 800


def test_a_share_of_the_tokens_of_a_crop_is_deleted():
    """The rest keeps its order; each epoch deletes others; nothing is predicted."""
    (whole,) = reader().read(0, 1)
    (thinned,) = reader(deleted=0.1).read(0, 1)
    before = whole.sides["encoder"].inputs.lengths.sum() - 2 * 800
    masked = thinned.sides["encoder"]
    assert masked.inputs.lengths.sum() - 2 * 800 == pytest.approx(0.9 * before, rel=0.02)
    for text in range(50):
        kept = masked.inputs[text][1:-1].tolist()
        given = iter(whole.sides["encoder"].inputs[text][1:-1].tolist())
        assert all(piece in given for piece in kept), "a subsequence"
    assert not masked.chosen.any()
    other = reader(deleted=0.1, seed=4).read(0, 1)[0].sides["encoder"]
    assert not np.array_equal(other.inputs.lengths, masked.inputs.lengths)


@pytest.mark.parametrize("length", [0, 1])
def test_passages_without_room_for_a_crop(length):
    """One word-piece is both crops; a passage without any leaves [CLS] and [SEP]."""
    texts = reader(passages=3, length=length).texts(np.arange(3), np.zeros(3, int))
    assert texts.lengths.tolist() == [length] * 6


def test_settings_without_effect_are_named():
    settings = as_objective("contriever", SETTINGS)
    assert set(settings.unread) >= {"encoder_masking", "encoder_ratio", "importance", "sigma"}
    assert "encoder_ratio" not in settings.values()
    assert settings.maskings == ()
    with pytest.raises(ValueError, match="crop_most is 0.01; allowed: from crop_least, 0.05, to 1"):
        replace(settings, crop_most=0.01)


def test_a_batch_of_one_passage_has_no_negatives_and_is_refused():
    with pytest.raises(ValueError, match="batch is 1; allowed with objective contriever: from 2"):
        as_objective("contriever", SETTINGS, batch=1)
