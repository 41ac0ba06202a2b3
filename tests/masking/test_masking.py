"""Masking: equation 1, Algorithm 1, and what holds for every strategy in the folder."""

import itertools
import math
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

from cdmae import masking
from cdmae.config.encoders import concepts
from cdmae.masking import Batch, Side
from cdmae.masking.noise import draws
from cdmae.masking.strategies._top import budget, top
from cdmae.masking.strategies.importance import perturb
from cdmae.tokens.corpus import Tokens
from cdmae.tokens.vocabulary import Vocabulary

SIZE = 200  # word-pieces; 0 to 4 are special, 5 to 9 unused, from 150 on they continue a word
SPECIAL = np.arange(SIZE) < 5
VOCABULARY = Vocabulary(
    SIZE,
    0,
    2,
    3,
    4,
    SPECIAL,
    np.arange(10, SIZE, dtype=np.int32),
    word_starts=np.arange(SIZE) < 150,
)
KEY = masking.key(42, "decoder", 0)
NAMES = concepts("masking/strategies")


def batch_of(texts, importance=None, rows=None, length=1000):
    """A batch of passages given as lists of ids, importance as lists of numbers."""
    starts = np.concatenate([[0], np.cumsum([len(text) for text in texts])]).astype(np.int64)
    tokens = Tokens(
        np.array([*itertools.chain(*texts)], np.uint16), starts, starts[:-1], VOCABULARY.word_starts
    )
    flat = None if importance is None else np.array([*itertools.chain(*importance)], np.float32)
    batch = masking.read(tokens, np.arange(len(texts)), length, VOCABULARY, flat)
    return batch if rows is None else replace(batch, rows=np.asarray(rows))


def random_batch(seed=0, passages=40, longest=60):
    draw = np.random.default_rng(seed)
    texts = [draw.integers(0, SIZE, draw.integers(0, longest)).tolist() for _ in range(passages)]
    batch = batch_of(texts, [draw.normal(5, 6, len(text)).tolist() for text in texts])
    word = np.cumsum(batch.word_starts, axis=1) - 1
    values = np.take_along_axis(
        draw.normal(5, 6, batch.ids.shape).astype(np.float32), word.clip(0), axis=1
    )
    return replace(batch, importance=values)  # the pieces of a word have one importance


def words_of(batch):
    """Per passage, the places of each word's candidates."""
    found = []
    for row in range(len(batch.ids)):
        words = []
        for place in range(batch.lengths[row]):
            if batch.word_starts[row, place] or not words:
                words.append([])
            if batch.candidates[row, place]:
                words[-1].append(place)
        found.append([word for word in words if word])
    return found


def select(batch, side, key=KEY):
    return masking.strategy(side.strategy).select(batch, side, key)


# --- reading a batch ------------------------------------------------------------------------------


def test_a_batch_is_cut_padded_and_told_apart():
    batch = batch_of([[20, 160, 4, 30], [40], []], [[1, 1, 2, 3], [4], []], length=3)
    assert batch.ids.tolist() == [[20, 160, 4], [40, 0, 0], [0, 0, 0]]
    assert batch.lengths.tolist() == [3, 1, 0]
    assert batch.word_starts.tolist() == [
        [True, False, True],
        [True, False, False],
        [False, False, False],
    ]
    assert batch.candidates.tolist() == [
        [True, True, False],
        [True, False, False],
        [False, False, False],
    ]
    assert batch.importance.tolist() == [[1, 1, 2], [4, 0, 0], [0, 0, 0]]


def test_a_batch_of_nothing():
    batch = batch_of([])
    for name in NAMES:
        batch = replace(batch, importance=np.zeros(batch.ids.shape, np.float32))
        inputs, chosen = masking.mask(batch, Side(name, 0.5), VOCABULARY, KEY)
        assert inputs.shape == chosen.shape == (0, 0)


# --- equation 1 -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mask_share", "random_share", "expected"),
    [(1.0, 0.0, [4, 20, 4, 4, 30]), (0.0, 0.0, [11, 20, 12, 13, 30])],
)
def test_eq1_all_masked_and_all_kept(mask_share, random_share, expected):
    batch = batch_of([[11, 20, 12, 13, 30]])
    chosen = np.array([[True, False, True, True, False]])
    side = Side("uniform", 0.5, mask_share=mask_share, random_share=random_share)
    assert masking.corrupt(batch, chosen, side, VOCABULARY, KEY).tolist() == [expected]


def test_eq1_random_tokens_are_any_ordinary_ones():
    batch = batch_of([[11] * 500] * 200)
    chosen = np.ones_like(batch.candidates)
    found = masking.corrupt(
        batch, chosen, Side("uniform", 0.5, mask_share=0, random_share=1), VOCABULARY, KEY
    )
    counts = np.bincount(found.ravel(), minlength=SIZE)
    assert counts[:10].sum() == 0
    assert stats.chisquare(counts[10:]).pvalue > 1e-4


def test_eq1_80_10_10_and_the_two_sides_independent():
    batch = batch_of([[11] * 500] * 200)
    chosen = np.zeros_like(batch.candidates)
    chosen[:, ::2] = True
    found = masking.corrupt(batch, chosen, Side("uniform", 0.5), VOCABULARY, KEY)
    assert (found[:, 1::2] == 11).all()
    masked = found[:, ::2]
    number = masked.size
    kept = 0.1 + 0.1 / len(VOCABULARY.ordinary)  # a random token may be the token itself
    for count, share in (((masked == 4).sum(), 0.8), ((masked == 11).sum(), kept)):
        assert abs(count - share * number) < 4 * math.sqrt(number * share * (1 - share))
    assert batch.ids[0, 0] == 11  # the labels stay
    batch = batch_of([[11] * 100] * 100)
    encoder, decoder = (
        masking.mask(batch, Side("uniform", ratio), VOCABULARY, masking.key(42, name, 0))[1]
        for name, ratio in (("encoder", 0.3), ("decoder", 0.5))
    )
    assert abs((encoder & decoder).mean() - 0.15) < 0.01


# --- Algorithm 1 ----------------------------------------------------------------------------------


def test_algorithm1_without_noise_masks_the_k_most_important_k_rounded_down_and_of_equal_ones_the_left():
    # n = 7, p = 0.5: k = 3; the special token (9.0) is no candidate, so that n = 6.
    batch = batch_of([[11, 12, 4, 13, 14, 15, 16]], [[0.5, 3.0, 9.0, -1.0, 2.5, 2.75, 1.0]])
    found = select(batch, Side("importance", 0.5, sigma=0.0))
    assert found.tolist() == [[False, True, False, False, True, True, False]]
    batch = batch_of([[11, 12, 13, 14, 15]], [[1.0, 2.0, 1.0, 1.0, 0.0]])
    assert select(batch, Side("importance", 0.6, sigma=0.0)).tolist() == [
        [True, True, True, False, False]
    ]
    assert budget(np.ones((1, 100), bool), 0.29).tolist() == [
        29
    ]  # 28.999999999999996 in floating point
    assert budget(np.ones((1, 7), bool), 0.5).tolist() == [3]
    assert budget(np.ones((1, 1), bool), 0.5).tolist() == [0]
    assert budget(np.zeros((1, 9), bool), 0.5).tolist() == [0]


@pytest.mark.parametrize(("difference", "sigma"), [(1.0, 1.0), (2.0, 1.0), (2.0, 4.0)])
def test_algorithm1_perturbs_by_gaussian_noise_of_standard_deviation_sigma(difference, sigma):
    # Of two words, d apart in importance, the first is masked if N(d, 2 sigma^2) > 0: Phi(d /
    # (sigma sqrt 2)).
    number = 40_000
    batch = batch_of([[11, 12]] * number, [[difference, 0.0]] * number)
    found = select(batch, Side("importance", 0.5, sigma=sigma))[:, 0].mean()
    expected = stats.norm.cdf(difference / (sigma * math.sqrt(2)))
    assert abs(found - expected) < 4 * math.sqrt(expected * (1 - expected) / number)


def test_algorithm1_with_infinite_noise_is_uniform():
    number = 20_000
    batch = batch_of([[11, 12, 13, 14]] * number, [[100.0, 0.0, -100.0, 3.0]] * number)
    found = select(batch, Side("importance", 0.25, sigma=math.inf)).mean(axis=0)
    assert np.abs(found - 0.25).max() < 4 * math.sqrt(0.25 * 0.75 / number)


def test_algorithm1_the_pieces_of_a_word_share_their_noise():
    batch = random_batch()
    values = perturb(batch, 2.0, "word", KEY)
    for row, words in enumerate(words_of(batch)):
        for word in words:
            assert len({float(value) for value in values[row, word]}) == 1
    values = perturb(batch, 2.0, "wordpiece", KEY)
    assert len(set(values[batch.candidates].tolist())) > 0.99 * batch.candidates.sum()


@pytest.mark.parametrize(
    ("name", "ratio"),
    [("importance", 0.5), ("idf", 0.5), ("inverse_frequency", 0.5), ("span", 0.3)],
)
def test_at_most_one_word_is_masked_in_part(name, ratio):
    batch = random_batch(passages=200)
    found = select(batch, Side(name, ratio))
    for row, words in enumerate(words_of(batch)):
        assert sum(0 < found[row, word].sum() < len(word) for word in words) <= 1


def test_the_highest_are_those_of_sorting():
    draw = np.random.default_rng(1)
    values = draw.choice([-np.inf, -3.5, -0.0, 0.0, 1e-30, 2.0, 7.0, 3e38], (300, 40)).astype(
        np.float32
    )
    values[:100] = draw.normal(size=(100, 40))
    k = draw.integers(0, 41, 300)
    found = top(values, k)
    for row in range(300):
        value = values[row] + 0.0  # -0.0 sorts below 0.0 by its bits
        expected = np.sort(value)[::-1][: k[row]]
        assert np.array_equal(np.sort(value[found[row]])[::-1], expected)


# --- every strategy -------------------------------------------------------------------------------

STRATEGIES = pytest.mark.parametrize("name", NAMES)


@STRATEGIES
@pytest.mark.parametrize("ratio", [0.01, 0.15, 0.3, 0.5, 0.95])
def test_exactly_k_are_masked_and_never_a_special_token(name, ratio):
    batch = random_batch()
    found = select(batch, Side(name, ratio))
    expected = np.floor(batch.candidates.sum(axis=1) * ratio + 1e-9)
    assert np.array_equal(found.sum(axis=1), expected)
    assert not (found & ~batch.candidates).any()


@STRATEGIES
def test_a_passage_is_masked_alike_in_every_batch(name):
    batch = random_batch(passages=30)
    side = Side(name, 0.4)
    inputs, chosen = masking.mask(batch, side, VOCABULARY, KEY)
    for rows in (np.arange(30)[::-1], np.array([7]), np.arange(0, 30, 3)):
        length = batch.lengths[rows].max()
        grids = {key: value for key, value in vars(batch).items() if value.ndim == 2}
        cut = {key: np.ascontiguousarray(value[rows][:, :length]) for key, value in grids.items()}
        part = Batch(**cut, lengths=batch.lengths[rows], rows=batch.rows[rows])
        inputs_, chosen_ = masking.mask(part, side, VOCABULARY, KEY)
        assert np.array_equal(chosen_, chosen[rows][:, :length])
        assert np.array_equal(inputs_, inputs[rows][:, :length])


@STRATEGIES
def test_epochs_seeds_and_passages_are_masked_differently(name):
    batch = batch_of([[11 + place for place in range(40)]] * 50, [[1.0] * 40] * 50)
    side = Side(name, 0.5)
    masks = [
        select(batch, side, masking.key(*each))
        for each in ((1, "a", 0), (1, "a", 1), (2, "a", 0), (1, "b", 0))
    ]
    assert len({row.tobytes() for found in masks for row in found}) == 200
    for one, other in itertools.combinations(masks, 2):
        assert abs((one & other).mean() - 0.25) < 0.03


@pytest.mark.parametrize("name", [name for name in NAMES if name != "span"])
def test_words_of_equal_importance_are_masked_equally_often(name):
    number = 4000  # spans reach the edges of a passage less often than its middle
    batch = batch_of([[11, 12, 13, 14, 15, 16]] * number, [[2.0] * 6] * number)
    found = select(batch, Side(name, 0.5)).mean(axis=0)
    assert np.abs(found - 0.5).max() < 4 * math.sqrt(0.25 / number)


def test_whole_words_are_gone_through_in_the_drawn_order():
    """The walk in plain Python: one of the words that are left, masked where it fits, else passed
    over.
    """
    batch = random_batch(passages=200)
    numbers = draws(KEY, batch.rows, batch.ids.shape[1], salt=masking.SELECT) >> np.uint64(32)
    found = select(batch, Side("whole_word", 0.4))
    for row, candidates in enumerate(batch.candidates.tolist()):
        words, before = [], False
        for place, candidate in enumerate(candidates):
            if candidate and (batch.word_starts[row, place] or not before):
                words.append([])
            if candidate:
                words[-1].append(place)
            before = candidate
        left, masked, passed_over = math.floor(0.4 * sum(candidates) + 1e-9), [], []
        for number in numbers[row, : len(words)].tolist():
            place = number * len(words) >> 32
            words[place], words[0] = words[0], words[place]
            word = words.pop(0)
            if left and len(word) <= left:
                masked += word
                left -= len(word)
            elif left:
                passed_over.append(word)
        masked += passed_over[0][:left] if left else []
        assert np.flatnonzero(found[row]).tolist() == sorted(masked)
    longer_than_all = batch_of([[11, 150, 151, 152]])
    assert select(longer_than_all, Side("whole_word", 0.5)).tolist() == [[True, True, False, False]]


def test_the_sides_of_an_encoder():
    settings = SimpleNamespace(
        encoder_masking="whole_word", decoder_masking="importance", encoder_ratio=0.3, decoder_ratio=0.5, sigma=2.0,
        mask_share=0.7, random_share=0.2,
    )  # fmt: skip
    assert masking.sides(settings, "wordpiece") == {
        "encoder": Side("whole_word", 0.3, 2.0, "wordpiece", 0.7, 0.2),
        "decoder": Side("importance", 0.5, 2.0, "wordpiece", 0.7, 0.2),
    }
