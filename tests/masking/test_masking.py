"""Masking: equation 1, Algorithm 1, and what holds for every strategy in the folder."""

import itertools
import math
from dataclasses import replace
from typing import get_args

import numpy as np
import pytest
from scipy import stats

from cdmae import masking
from cdmae.config.encoders import Masking, reads
from cdmae.masking import Batch, Side, choose, noise
from cdmae.masking.strategies.importance import perturb
from cdmae.tokens.corpus import Tokens
from cdmae.tokens.vocabulary import Vocabulary

SIZE = 200  # word-pieces; 0 to 4 are special, 5 to 9 unused, from 150 on they continue a word
SPECIAL = np.arange(SIZE) < 5
ORDINARY = np.arange(10, SIZE, dtype=np.int32)
VOCABULARY = Vocabulary(SIZE, 0, 2, 3, 4, SPECIAL, ORDINARY, word_starts=np.arange(SIZE) < 150)
KEY = masking.key(42, "decoder", 0)
STRATEGIES = pytest.mark.parametrize("name", get_args(Masking))


def batch_of(texts, values=None, length=1000):
    """A batch of passages given as lists of ids, values as lists of numbers."""
    starts = np.cumsum([0, *map(len, texts)]).astype(np.int64)
    ids = np.array([*itertools.chain(*texts)], np.uint16)
    tokens = Tokens(ids, starts, starts[:-1], VOCABULARY.word_starts)
    flat = None if values is None else np.array([*itertools.chain(*values)], np.float32)
    return masking.read(tokens, np.arange(len(texts)), length, VOCABULARY, flat)


def random_batch(passages=40, longest=60):
    """The pieces of a word have one value."""
    draw = np.random.default_rng(0)
    texts = [draw.integers(0, SIZE, draw.integers(0, longest)).tolist() for _ in range(passages)]
    batch = batch_of(texts)
    values = draw.normal(5, 6, batch.ids.shape).astype(np.float32)
    return replace(batch, values=batch.of_words(values))


def words_of(batch):
    """Per passage, the places of each word's candidates."""
    found = []
    for row in range(len(batch.ids)):
        words = []
        for place in range(1, batch.lengths[row] + 1):
            if batch.word_starts[row, place] or not words:
                words.append([])
            if batch.candidates[row, place]:
                words[-1].append(place)
        found.append([word for word in words if word])
    return found


def test_a_batch_is_cut_padded_and_told_apart():
    batch = batch_of([[20, 160, 4, 30], [40], []], [[1, 1, 2, 3], [4], []], length=3)
    assert batch.ids.tolist() == [[2, 20, 160, 4, 3], [2, 40, 3, 0, 0], [2, 3, 0, 0, 0]]
    assert batch.lengths.tolist() == [3, 1, 0]
    assert batch.inside.sum(axis=1).tolist() == batch.lengths.tolist()
    assert batch.real.sum(axis=1).tolist() == [5, 3, 2]
    expected = [[True, False, True], [True, False, False], [False] * 3]
    assert batch.word_starts[:, 1:-1].tolist() == expected
    expected = [[True, True, False], [True, False, False], [False] * 3]
    assert batch.candidates[:, 1:-1].tolist() == expected
    assert batch.values[:, 1:-1].tolist() == [[1, 1, 2], [4, 0, 0], [0, 0, 0]]
    for found in (batch.word_starts, batch.candidates, batch.values):
        assert not found[:, [0, -1]].any()


# --- equation 1 -----------------------------------------------------------------------------------


def test_eq1_random_tokens_are_any_ordinary_ones():
    batch = batch_of([[11] * 500] * 200)
    side = Side("uniform", 0.5, mask_share=0, random_share=1)
    found = masking.corrupt(batch, batch.candidates, side, VOCABULARY, KEY)[:, 1:-1]
    counts = np.bincount(found.ravel(), minlength=SIZE)
    assert counts[:10].sum() == 0
    assert stats.chisquare(counts[10:]).pvalue > 1e-4


@pytest.mark.parametrize(("masks", "random"), [(0.8, 0.1), (0.3, 0.6), (1.0, 0.0), (0.0, 0.0)])
def test_eq1_shares_of_masks_and_of_random_tokens(masks, random):
    batch = batch_of([[11] * 500] * 200)
    chosen = np.zeros_like(batch.candidates)
    chosen[:, 1:-1:2] = True
    side = Side("uniform", 0.5, mask_share=masks, random_share=random)
    found = masking.corrupt(batch, chosen, side, VOCABULARY, KEY)[:, 1:-1]
    assert (found[:, 1::2] == 11).all()
    masked = found[:, ::2]
    kept = 1 - masks - random + random / len(ORDINARY)  # a random token may be the token itself
    for count, share in (((masked == 4).sum(), masks), ((masked == 11).sum(), kept)):
        deviation = math.sqrt(masked.size * max(0.0, share * (1 - share)))
        assert abs(count - share * masked.size) <= 4 * deviation + 1e-6
    replaced = set(masked[(masked != 4) & (masked != 11)].tolist())
    assert replaced == (set(ORDINARY.tolist()) - {11} if random else set())


def test_a_plain_side_shows_and_predicts_every_token():
    batch = batch_of([[20, 4, 30]])
    ids, chosen = masking.mask(batch, masking.PLAIN, VOCABULARY, KEY)
    assert ids.tolist() == [[2, 20, 4, 30, 3]]
    assert chosen.tolist() == [[False, True, False, True, False]]


# --- Algorithm 1 ----------------------------------------------------------------------------------


def test_algorithm1_without_noise_masks_the_k_most_important_and_of_equal_ones_the_left():
    # n = 7, p = 0.5: k = 3; the special token (9.0) is no candidate, so that n = 6.
    batch = batch_of([[11, 12, 4, 13, 14, 15, 16]], [[0.5, 3.0, 9.0, -1.0, 2.5, 2.75, 1.0]])
    found = choose(batch, Side("importance", 0.5, sigma=0.0), KEY)
    assert found[:, 1:-1].tolist() == [[False, True, False, False, True, True, False]]
    batch = batch_of([[11, 12, 13, 14, 15]], [[1.0, 2.0, 1.0, 1.0, 0.0]])
    found = choose(batch, Side("importance", 0.6, sigma=0.0), KEY)
    assert found[:, 1:-1].tolist() == [[True, True, True, False, False]]
    # 0.29 x 100 is 28.999999999999996 in floating point
    for number, ratio, k in ((100, 0.29, 29), (7, 0.5, 3), (1, 0.5, 0), (0, 0.5, 0)):
        assert masking.budget(np.ones((1, number), bool), ratio).tolist() == [k]


@pytest.mark.parametrize(("difference", "sigma"), [(1.0, 1.0), (2.0, 4.0), (100.0, math.inf)])
def test_algorithm1_perturbs_by_gaussian_noise_of_standard_deviation_sigma(difference, sigma):
    # Of two words, d apart in importance, the first is masked if N(d, 2 sigma^2) > 0: Phi(d /
    # (sigma sqrt 2)). With infinite sigma, the masks are uniform.
    number = 40_000
    batch = batch_of([[11, 12]] * number, [[difference, 0.0]] * number)
    found = choose(batch, Side("importance", 0.5, sigma=sigma), KEY)[:, 1].mean()
    expected = stats.norm.cdf(difference / (sigma * math.sqrt(2)))
    assert abs(found - expected) < 4 * math.sqrt(expected * (1 - expected) / number)


def test_algorithm1_the_pieces_of_a_word_share_their_noise():
    batch = random_batch()
    values = perturb(batch, 2.0, "word", KEY)
    for row, words in enumerate(words_of(batch)):
        for word in words:
            assert len({float(value) for value in values[row, word]}) == 1
    values = perturb(batch, 2.0, "wordpiece", KEY)
    assert len(set(values[batch.candidates].tolist())) > 0.99 * batch.candidates.sum()


@STRATEGIES
def test_beyond_another_side_its_tokens_are_masked_first_and_count(name):
    batch = random_batch()
    first = choose(batch, Side("uniform", 0.3), masking.key(42, "encoder", 0))
    found = choose(batch, Side(name, 0.5), KEY, first)
    assert found[first].all()
    assert np.array_equal(found.sum(axis=1), masking.budget(batch.candidates, 0.5))
    assert np.array_equal(choose(batch, Side(name, 0.1), KEY, first), first)


# --- every strategy -------------------------------------------------------------------------------


@STRATEGIES
@pytest.mark.parametrize("ratio", [0.01, 0.3, 0.95])
def test_exactly_k_are_masked_and_never_a_special_token(name, ratio):
    batch = random_batch()
    found = choose(batch, Side(name, ratio), KEY)
    assert np.array_equal(found.sum(axis=1), masking.budget(batch.candidates, ratio))
    assert not (found & ~batch.candidates).any()


@STRATEGIES
def test_a_passage_is_masked_alike_in_every_batch(name):
    batch = random_batch(passages=30)
    side = Side(name, 0.4)
    inputs, chosen = masking.mask(batch, side, VOCABULARY, KEY)
    for rows in (np.arange(30)[::-1], np.array([7]), np.arange(0, 30, 3), np.arange(0)):
        length = batch.lengths[rows].max(initial=0) + 2
        arrays = {key: value for key, value in vars(batch).items() if value is not None}
        cut = {key: value[rows][:, :length] for key, value in arrays.items() if value.ndim == 2}
        part = Batch(**cut, lengths=batch.lengths[rows], rows=batch.rows[rows])
        inputs_, chosen_ = masking.mask(part, side, VOCABULARY, KEY)
        assert np.array_equal(chosen_, chosen[rows][:, :length])
        assert np.array_equal(inputs_, inputs[rows][:, :length])


@STRATEGIES
def test_epochs_seeds_and_passages_are_masked_differently(name):
    batch = batch_of([[11 + place for place in range(40)]] * 50, [[1.0] * 40] * 50)
    side = Side(name, 0.5)
    keys = [masking.key(*each) for each in ((1, "a", 0), (1, "a", 1), (2, "a", 0), (1, "b", 0))]
    masks = [choose(batch, side, key) for key in keys]
    assert len({row.tobytes() for found in masks for row in found}) == 200
    for one, other in itertools.combinations(masks, 2):
        assert abs((one & other)[:, 1:-1].mean() - 0.25) < 0.03


@pytest.mark.parametrize(
    "name", [name for name in get_args(Masking) if reads(name) == "importance"]
)
def test_what_reads_the_importance_perturbs_it_by_sigma(name):
    batch = random_batch()
    few, many = (choose(batch, Side(name, 0.3, sigma), KEY) for sigma in (0.0, 9.0))
    assert (few != many).any()


# --- noise ----------------------------------------------------------------------------------------


def test_noise_is_normal_also_in_the_tails():
    found = noise.normals(KEY, np.arange(1000), 1000, salt=1).ravel().astype(float)
    assert stats.kstest(found[:200_000], "norm").pvalue > 1e-4
    for edge in (1.0, 3.0, 3.7, 4.2):
        expected = stats.norm.sf(edge) * len(found)
        for tail in (found > edge, found < -edge):
            assert abs(tail.sum() - expected) < 4 * math.sqrt(expected)


def test_noise_is_uniform_differs_by_salt_and_has_the_key_of_every_process():
    one, other = (noise.uniforms(KEY, np.arange(300), 300, salt=salt).ravel() for salt in (1, 2))
    assert stats.kstest(one, "uniform").pvalue > 1e-4
    for shifted in (one[:-1], other[1:]):
        assert abs(np.corrcoef(one[1:], shifted)[0, 1]) < 4 / math.sqrt(len(one))
    assert int(noise.key(42, "decoder", 3)) == 8724798766497077298
