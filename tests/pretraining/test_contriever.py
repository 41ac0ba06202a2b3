"""Contriever: crops, deletions, and the contrast of a global batch."""

import numpy as np
import pytest
from any_kind import as_objective
from tiny_objectives import SETTINGS, V, reader_of

from cdmae.tokens.corpus import Tokens

LENGTH = 40
PIECES = 5 + np.arange(LENGTH) % (V - 5)


def reader(passages=400, length=LENGTH, seed=3, deletion=0.0, **changed):
    """Crops of passages of one length; word-piece i of every passage is 5 + i % 35."""
    starts = np.arange(passages + 1) * length
    ids = np.tile(PIECES[:length], passages).astype(np.uint16)
    changed |= {"batch": passages, "max_length": LENGTH + 2, "deletion": deletion}
    settings = as_objective("contriever", SETTINGS, **changed)
    return reader_of(settings, Tokens(ids, starts, starts[:-1], np.ones(V, bool)), seed)


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
    for length in (0, 1):  # one word-piece is both crops
        texts = reader(passages=3, length=length).texts(np.arange(3), np.zeros(3, int))
        assert texts.lengths.tolist() == [length] * 6


def test_a_share_of_the_tokens_of_a_crop_is_deleted():
    """The rest keeps its order; each epoch deletes others; nothing is predicted."""
    (whole,) = reader().read(0, 1)
    (thinned,) = reader(deletion=0.1).read(0, 1)
    before = whole.sides["encoder"].inputs.lengths.sum() - 2 * 800
    masked = thinned.sides["encoder"]
    assert masked.inputs.lengths.sum() - 2 * 800 == pytest.approx(0.9 * before, rel=0.02)
    for text in range(50):
        given = iter(whole.sides["encoder"].inputs[text][1:-1].tolist())
        assert all(piece in given for piece in masked.inputs[text][1:-1].tolist()), "a subsequence"
    assert not masked.chosen.any()
    other = reader(deletion=0.1, seed=4).read(0, 1)[0].sides["encoder"]
    assert not np.array_equal(other.inputs.lengths, masked.inputs.lengths)
