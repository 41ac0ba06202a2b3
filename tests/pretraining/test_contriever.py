"""Contriever: crops, deletions, and the contrast of a global batch."""

import copy
import math
from dataclasses import replace

import numpy as np
import pytest
import tiny_objectives
import tiny_pretraining
import torch
from any_kind import as_objective
from tiny_objectives import CPU, SETTINGS, V, learnt, network_of, reader_of, ready, same

from cdmae.pretraining.objectives import contriever
from cdmae.tokens.corpus import Tokens
from tests.naive import Naive

LENGTH = 40
QUEUED = {"queue": 12, "temperature": 1.0}
PIECES = 5 + np.arange(LENGTH) % (V - 5)


def reader(passages=400, length=LENGTH, seed=3, deletion=0.0, **changed):
    """Crops of passages of one length; word-piece i of every passage is 5 + i % 35."""
    starts = np.arange(passages + 1) * length
    ids = np.tile(PIECES[:length], passages).astype(np.uint16)
    changed |= {"batch": passages, "max_length": LENGTH + 2, "deletion": deletion}
    settings = as_objective("contriever", SETTINGS, **changed)
    return reader_of(settings, Tokens(ids, starts, starts[:-1], np.ones(V, bool)), seed)


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


def test_inverse_cloze_parts_a_passage():
    """The second part is the passage without the first, in its order; nothing is lost."""
    parts = reader(cut="cloze").read(0, 1)[0].sides["encoder"].inputs
    whole = PIECES.tolist()
    begins = set()
    for passage in range(400):
        first = parts[2 * passage][1:-1].tolist()
        rest = parts[2 * passage + 1][1:-1].tolist()
        assert len(first) + len(rest) == LENGTH
        assert 2 <= len(first) < LENGTH // 2
        begin = next(at for at in range(LENGTH) if rest == whole[:at] + whole[at + len(first) :])
        assert whole[begin : begin + len(first)] == first
        begins.add(begin)
    assert len(begins) > 20


def test_with_a_queue_each_part_is_a_side_of_its_own():
    """The same crops as without a queue, each passage once on each side."""
    (together,) = reader(passages=12, cut="cloze").read(0, 1)
    (apart,) = reader(passages=12, cut="cloze", **QUEUED).read(0, 1)
    assert apart.spans == 1
    joint = together.sides["encoder"].inputs
    for passage in range(12):
        for part, side in enumerate(("encoder", "passage")):
            found = apart.sides[side].inputs[passage]
            assert np.array_equal(found, joint[2 * passage + part])


# --- the queue ------------------------------------------------------------------------------------


def queued_step(settings):
    """A step of a contriever with a queue."""
    return next(tiny_objectives.reader("contriever", settings).steps(0, 1))


@pytest.mark.parametrize("pooling", ["cls", "mean"])
@pytest.mark.parametrize("cut", ["crops", "cloze"])
def test_the_queue_is_its_naive_form(cut, pooling):
    """Loss and gradient; the copy and the queue get none."""
    made = network_of("contriever", pooling, cut=cut, **QUEUED)
    step = queued_step(made.settings)
    loss, numbers = learnt(made, step)
    same(made, loss, Naive("contriever", made)(step))
    torch.testing.assert_close(loss.detach(), numbers["encoder_loss"])
    assert not any(weight.requires_grad for weight in made.slower.parameters())


def test_the_slower_copy_and_the_ring():
    """Each step moves the copy by 1 - m of the way, and replaces the oldest vectors in turn."""
    made = network_of("contriever", momentum=0.75, **QUEUED)
    step = queued_step(made.settings)
    filled = []
    for _ in range(4):
        own = copy.deepcopy(made.slower.state_dict())
        before = made.keys.clone()
        learnt(made, step)
        target = made.model.base_model.state_dict()
        for name, weight in made.slower.state_dict().items():
            torch.testing.assert_close(weight, 0.75 * own[name] + 0.25 * target[name])
        filled.append((made.keys != before).any(1).nonzero().flatten().tolist())
    assert filled == [list(range(begin, begin + 6)) for begin in (6, 12, 0, 6)]


def test_micro_batches_do_not_change_the_queue():
    made = network_of("contriever", **QUEUED)
    other = copy.deepcopy(made)
    step = queued_step(made.settings)
    whole = learnt(made, step)[0]
    parts = ready(other, *step.batches(8, CPU))
    assert len(parts) > 1
    torch.testing.assert_close(sum(other(part)[0] for part in parts), whole)
    torch.testing.assert_close(other.keys, made.keys)


def test_a_killed_training_with_a_queue_resumes_with_the_same_bits(inputs, tmp_path):
    """Queue and copy are part of the state; without them the resumed training would differ."""
    settings = as_objective(
        "contriever", tiny_pretraining.SETTINGS, steps=5, queue=12, momentum=0.9, cut="cloze"
    )
    whole = tiny_pretraining.run(inputs, tmp_path / "whole", settings)
    tiny_pretraining.cut_off(3, inputs, tmp_path / "cut", settings)
    again = tiny_pretraining.run(inputs, tmp_path / "cut", settings)
    assert tiny_pretraining.differences(whole, again) == []
    curves = [(each / "steps.tsv").read_text() for each in (whole, again)]
    assert curves[0] == curves[1]


# --- weights and settings -------------------------------------------------------------------------


def test_no_part_of_an_untied_head_waits_for_a_gradient():
    """Processes add up the gradients of all trained weights."""
    model = tiny_objectives.language_model()
    head = model.cls.predictions.decoder
    head.weight = torch.nn.Parameter(head.weight.detach().clone())
    made = contriever.Contriever(model, as_objective("contriever", SETTINGS), 5)
    assert not any(weight.requires_grad for weight in made.model.cls.parameters())
    assert all(weight.requires_grad for weight in made.model.bert.embeddings.parameters())


def test_settings_without_effect_are_named_and_those_that_do_not_fit_refused():
    plain = as_objective("contriever", SETTINGS)
    unread = {"encoder_masking", "encoder_ratio", "importance", "sigma", "momentum"}
    assert set(plain.unread) >= unread
    assert not unread & plain.values().keys()
    assert plain.maskings == ()
    queued = as_objective("contriever", SETTINGS, **QUEUED)
    assert "momentum" not in queued.unread and queued.values()["momentum"] == 0.9995
    for changed, words in (
        ({"crop_most": 0.01}, "crop_most is 0.01; expected from crop_least, 0.05, to 1"),
        ({"queue": 13}, "queue is 13 and batch is 6; expected 0, or a multiple"),
        ({"batch": 1}, "batch is 1; expected from 2"),
    ):
        with pytest.raises(ValueError, match=words):
            replace(plain, **changed)
    with pytest.raises(ValueError, match="batch is 1; expected from 2"):
        as_objective("cocondenser", SETTINGS, batch=1)
