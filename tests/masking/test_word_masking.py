"""Masking by frequency, in spans and in collocations: what each strategy knows of the words, and
what it chooses.
"""

import itertools
import math
from collections import Counter
from dataclasses import replace
from typing import get_args

import numpy as np
import pytest
from test_masking import KEY, batch_of, random_batch, words_of
from transformers import BertTokenizer

from cdmae import masking
from cdmae.config.encoders import Masking, reads
from cdmae.config.importance import Importance
from cdmae.config.objectives import Mae
from cdmae.errors import InputError
from cdmae.files import read_json
from cdmae.importance import ami, ngrams
from cdmae.masking import Corpus, Side, choose, terms
from cdmae.masking.strategies import idf, pmi_span
from cdmae.masking.strategies.span import length
from cdmae.tokens.corpus import Tokens
from cdmae.tokens.vocabulary import Vocabulary

TEXTS = ["aa bb cc", "aa cc ccd", "aa ccd aa", "bb"]
PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "aa", "bb", "cc", "##d"]


def corpus(texts=TEXTS, pieces=PIECES, estimate=None):
    """Texts whose words are word-pieces; `ccd` is two of them."""
    ids = []
    for text in texts:
        words = [["cc", "##d"] if word == "ccd" else [word] for word in text.split()]
        ids.append([pieces.index(piece) for piece in itertools.chain(*words)])
    starts = np.cumsum([0, *map(len, ids)])
    begins = np.array([not piece.startswith("##") for piece in pieces])
    tokens = Tokens(np.array([*itertools.chain(*ids)], np.uint16), starts, starts[:-1], begins)
    special = np.arange(len(pieces)) < 5
    ordinary = np.flatnonzero(~special).astype(np.int32)
    return Corpus(
        tokens, Vocabulary(len(pieces), 0, 2, 3, 4, special, ordinary, begins), estimate=estimate
    )


@pytest.mark.parametrize("name", get_args(Masking))
def test_every_strategy_has_a_number_for_every_word_piece(tmp_path, name):
    texts = [*TEXTS * 10, *["bb"] * 100]  # collocations cover at most half of a collection
    tokens = corpus(texts).tokens
    ngrams.count_to(tmp_path / "ngrams", tokens)
    formula = Importance().formula()
    ami.estimate(tmp_path / "importance", tmp_path / "ngrams", tokens, formula)
    vocabulary = {piece: index for index, piece in enumerate(PIECES)}
    BertTokenizer(vocab=vocabulary).save_pretrained(tmp_path / "tokenizer")
    read = corpus(texts, estimate=tmp_path / reads(name) if reads(name) else None)
    read = replace(read, tokenizer=tmp_path / "tokenizer")
    for found in masking.values([name], read).values():
        assert found.dtype == np.float16 and found.shape == tokens.ids.shape
        assert np.isfinite(found).all()


@pytest.mark.parametrize("found", [np.zeros(3), np.full(7, np.nan), [1.0]])
def test_values_that_are_not_one_finite_number_for_each_word_piece_are_refused(monkeypatch, found):
    monkeypatch.setattr(idf, "values", lambda _: found)
    read = corpus(["aa bb cc aa bb cc aa"])
    assert len(read.tokens.ids) == 7
    with pytest.raises(InputError, match="the masking strategy idf returns values of shape"):
        masking.values(["idf"], read)


def test_masked_words_are_counted_and_stop_words_are_whole_words(tmp_path):
    """All eight word-pieces are masked: "the" twice, ".", and "aorta", whose "a" is none."""
    pieces = [*PIECES[:5], "the", "a", "##orta", ".", "heart"]
    BertTokenizer(vocab={piece: row for row, piece in enumerate(pieces)}).save_pretrained(tmp_path)
    begins = np.array([not piece.startswith("##") for piece in pieces])
    ids = np.array([5, 6, 7, 8, 5, 6, 7, 9], np.uint16)
    tokens = Tokens.of(ids, np.array([0, 8]), begins)
    ngrams.count_to(tmp_path / "ngrams", tokens)
    ami.estimate(tmp_path / "i", tmp_path / "ngrams", tokens, Importance().formula())
    mae = Mae(start="s", collection="c", importance="ami", max_length=62)
    object.__setattr__(mae, "decoder_ratio", 1.0)  # a config allows up to .95
    terms.describe(tmp_path / "t", tokens, tmp_path, tmp_path / "i", settings=mae)
    top = [["the", 0.3333], ["aorta", 0.3333], [".", 0.1667], ["heart", 0.1667]]
    expected = {"top": top, "stop_word_share": 0.375}
    assert read_json(tmp_path / "t") == {"uniform": expected, "importance": expected}
    object.__setattr__(mae, "decoder_ratio", 1 / 8)  # one word-piece
    terms.describe(tmp_path / "t", tokens, tmp_path, tmp_path / "i", settings=mae)
    for found in read_json(tmp_path / "t").values():
        words = [word for word, _ in found["top"]]
        assert found["stop_word_share"] == (words in (["the"], ["."]))


# --- 1 / frequency, and inverse document frequency ------------------------------------------------


def test_inverse_frequency_counts_words_and_idf_passages():
    """MASTER: 1 / the occurrences of the word, the same for all its word-pieces; BM25's idf."""

    def of_pieces(weights):
        words = [word for text in TEXTS for word in text.split()]
        return [weights[word] for word in words for _ in range(1 + (word == "ccd"))]

    occurrences = Counter(word for text in TEXTS for word in text.split())
    values = masking.values(["inverse_frequency", "idf"], corpus())
    found = values["inverse_frequency"]
    assert found.dtype == np.float16
    expected = of_pieces({word: -math.log(count) for word, count in occurrences.items()})
    assert found.tolist() == pytest.approx(expected, abs=1e-3)
    having = Counter(word for text in TEXTS for word in {*text.split()})
    weights = {word: math.log(1 + (4 - n + 0.5) / (n + 0.5)) for word, n in having.items()}
    found = np.exp(values["idf"].astype(float))
    assert found.tolist() == pytest.approx(of_pieces(weights), rel=1e-3)


@pytest.mark.parametrize("name", ["idf", "inverse_frequency"])
def test_words_are_drawn_in_proportion_to_their_weights(name):
    """The first of a sample is w / sum w; the second follows without replacement."""
    number, weights = 40_000, np.array([0.5, 0.3, 0.15, 0.05])
    batch = batch_of([[11, 12, 13, 14]] * number, [np.log(weights).tolist()] * number)
    first = choose(batch, Side(name, 0.25), KEY)[:, 1:-1].mean(axis=0)
    assert np.abs(first - weights).max() < 4 * math.sqrt(0.25 / number)
    both = choose(batch, Side(name, 0.5), KEY)[:, 1:-1].mean(axis=0)
    odds = weights / (1 - weights)  # of another after it, if drawn first
    second = weights + weights * (odds.sum() - odds)
    assert np.abs(both - second).max() < 4 * math.sqrt(0.25 / number)


@pytest.mark.parametrize("name", ["importance", "whole_word", "idf", "inverse_frequency", "span"])
def test_at_most_one_word_is_masked_in_part(name):
    batch = random_batch(passages=200)
    found = choose(batch, Side(name, 0.4), KEY)
    for row, words in enumerate(words_of(batch)):
        assert sum(0 < found[row, word].sum() < len(word) for word in words) <= 1


def test_the_first_word_that_is_too_long_completes_the_number():
    """Two of six word-pieces are masked, of words of three, two and one.

    In two of the six orders of the words, the longest is too long before any other.
    """
    batch = batch_of([[11, 160, 161, 12, 162, 13]] * 6000)
    share = choose(batch, Side("whole_word", 0.34), KEY)[:, 1].mean()
    assert abs(share - 1 / 3) < 4 * math.sqrt(2 / 9 / 6000)


# --- spans ----------------------------------------------------------------------------------------


def test_span_lengths_are_geometric():
    """SpanBERT: P(l) in proportion to 0.2 x 0.8^(l - 1) up to 10, 3.8 on average."""
    draws = np.random.default_rng(0).integers(0, 2**64, 50_000, dtype=np.uint64)
    found = np.bincount([length(draw) for draw in draws], minlength=12) / len(draws)
    expected = np.array([0.0, *(0.2 * 0.8**each for each in range(10)), 0.0])
    expected /= expected.sum()
    assert np.abs(found - expected).max() < 4 * math.sqrt(0.25 / len(draws))


def test_spans_are_contiguous_words_and_end_at_a_special_token():
    batch = random_batch(passages=200)

    def runs(name):
        padded = np.pad(choose(batch, Side(name, 0.3), KEY), ((0, 0), (1, 0)))
        return (padded[:, 1:] & ~padded[:, :-1]).sum()

    assert runs("span") < 0.5 * runs("whole_word"), "far fewer runs than masked words"
    # of a passage in two parts, it masks in one what a long span would take of the other
    found = choose(batch_of([[11, 4, 12, 13, 14, 15]] * 500), Side("span", 0.2), KEY)
    assert (found.sum(axis=1) == 1).all()
    assert not found[:, 2].any()


# --- collocations ---------------------------------------------------------------------------------


def units_of(folder, texts, pieces):
    """The tokens of texts, and their values for masking by collocations."""
    tokens = corpus(texts, pieces).tokens
    ngrams.count_to(folder, tokens)
    read = corpus(texts, pieces, estimate=folder)
    return read, masking.values(["pmi_span"], read)["pmi_span"]


def test_collocations_are_masked_as_units(tmp_path):
    """They cover at most half of the text; a rare n-gram is none, whatever its PMI."""
    draw = np.random.default_rng(0)
    spoken = [f"w{n}" for n in range(30)]
    spoken += ["new york city", "machine learning", "as well as possible"]
    texts = [" ".join(draw.choice(spoken, 12)) for _ in range(300)] + ["rare pair"] * 9
    pieces = [*PIECES[:5], *sorted({word for text in texts for word in text.split()})]
    read, values = units_of(tmp_path / "ngrams", texts, pieces)
    assert set(values.tolist()) == {0.0, 1.0}
    units = []
    for number, begins in zip(read.tokens.ids.tolist(), values.tolist(), strict=True):
        if begins:
            units.append(pieces[number])
        else:
            units[-1] += f" {pieces[number]}"
    found = [unit for unit in units if " " in unit]
    assert {"machine learning", "new york city", "as well as possible"} <= set(found)
    assert "rare pair" not in found
    assert sum(len(unit.split()) for unit in found) <= 0.5 * len(values)
    batch = masking.read(read.tokens, np.arange(200), 30, read.vocabulary, values)
    chosen = choose(batch, Side("pmi_span", 0.3), KEY)
    parted = 0
    whole = 0
    for row in range(200):
        edges = np.flatnonzero(batch.values[row] > 0).tolist() + [int(batch.lengths[row]) + 1]
        shares = [chosen[row, a:b].mean() for a, b in itertools.pairwise(edges) if b - a > 1]
        parted += sum(0 < share < 1 for share in shares)
        whole += sum(share == 1 for share in shares)
    assert whole > 5 * parted


def test_a_list_of_collocations_has_as_many_pairs_as_longer_ones():
    """Five pairs occur ten times, five triples twenty times; two of each fit into half of 400 words."""
    words = []
    for number in range(5):
        words += [(20 + number, 10, 0), (20 + number, 0, 0)] * 10
        words += [(20 + number, 9, 20), (20 + number, 9, 0), (20 + number, 0, 0)] * 20
    longest = pmi_span.collocations(np.array(words).T, np.full(3, 400))
    assert [(longest == words).sum() for words in (2, 3)] == [20, 40]


def test_a_text_without_frequent_ngrams_is_refused(tmp_path):
    with pytest.raises(InputError, match="no n-gram of the collection occurs 10 times"):
        units_of(tmp_path / "ngrams", TEXTS, PIECES)
