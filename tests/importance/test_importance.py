"""Importance: counts of n-grams against a slow counter, and equations 7 and 8 against a slow form."""

import itertools
import math
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest
from tiny_tokenizers import TEXTS, word_piece

from cdmae.importance import ami, ngrams, shading
from cdmae.tokens import words
from cdmae.tokens.corpus import Tokens
from cdmae.tokens.tokenise import Tokeniser

PIECES = 12  # word-pieces 9, 10 and 11 continue a word
WORD_STARTS = np.array([True] * 9 + [False] * 3)


def tokens_of(passages, word_starts=WORD_STARTS):
    """Tokens from (title ids, text ids) per passage."""
    segments = [segment for passage in passages for segment in passage]
    lengths = np.array([len(segment) for segment in segments], np.int64)
    return Tokens.of(np.array([*itertools.chain(*segments)], np.uint16), lengths, word_starts)


def random_tokens(seed, passages=60):
    draw = np.random.default_rng(seed)
    shares = 1 / np.arange(1, PIECES + 1)

    def text():
        return draw.choice(PIECES, draw.integers(0, 25), p=shares / shares.sum()).tolist()

    return tokens_of([(text()[:4], text()) for _ in range(passages)])


def segments_of(tokens, unit="word"):
    """The words of every title and text, as tuples of word-pieces."""
    found = []
    for begin, end in itertools.pairwise(tokens.edges.tolist()):
        segment = []
        for place, piece in enumerate(tokens.ids[begin:end].tolist()):
            if unit == "wordpiece" or place == 0 or tokens.word_starts[piece]:
                segment.append((piece,))
            else:
                segment[-1] += (piece,)
        found.append(segment)
    return found


def naive(tokens, unit, window):
    """The counts [L, W] and the number of n-grams [L], with dictionaries of tuples."""
    counts = []
    totals = []
    for order in range(1, window + 1):
        grams = []
        for segment in segments_of(tokens, unit):
            size = max(0, len(segment) - order + 1)
            grams += [tuple(segment[at : at + order]) for at in range(size)]
            grams += [None] * (len(segment) - size)
        occurrences = Counter(filter(None, grams))
        counts.append([occurrences[gram] if gram else 0 for gram in grams])
        totals.append(occurrences.total())
    return np.array(counts), totals


def read_counts(folder):
    """What `count_to` wrote."""
    names = ("counts", "segments", "totals")
    return SimpleNamespace(**{name: np.load(folder / f"{name}.npy") for name in names})


def count(tokens, **how):
    with TemporaryDirectory() as folder:
        ngrams.count_to(Path(folder, "ngrams"), tokens, **how)
        return read_counts(Path(folder, "ngrams"))


@pytest.mark.parametrize("unit", ["word", "wordpiece"])
@pytest.mark.parametrize("passages", [60, 2, 0])
def test_counts_are_those_of_the_slow_counter(unit, passages):
    tokens = random_tokens(5, passages)
    found = count(tokens, unit=unit, window=6)
    counts, totals = naive(tokens, unit, 6)
    assert np.array_equal(found.counts, counts.reshape(6, -1))
    assert found.totals.tolist() == totals


def test_blocks_and_less_memory_change_no_bit(tmp_path, monkeypatch):
    """Words of many pieces; ranges of about 300 hashes, read from blocks of 700 words."""
    draw = np.random.default_rng(3)
    passages = [([], draw.integers(0, 50, 100).tolist()) for _ in range(200)]
    tokens = tokens_of(passages, np.arange(50) < 40)
    ngrams.count_to(tmp_path / "whole", tokens)
    monkeypatch.setattr(words, "BLOCK", 900)
    monkeypatch.setattr(ngrams, "BLOCK", 700)
    ngrams.count_to(tmp_path / "spilt", tokens, memory=2 * 300 * ngrams.KEY)
    for path in (tmp_path / "whole").iterdir():
        assert (tmp_path / "spilt" / path.name).read_bytes() == path.read_bytes()
    assert np.array_equal(read_counts(tmp_path / "spilt").counts, naive(tokens, "word", 4)[0])


# --- equations 7 and 8 ----------------------------------------------------------------------------


LOG = math.log


def ami_of(passages, window, **settings):
    counts = count(tokens_of([([], text) for text in passages]), window=window)
    return ami.ami(counts.counts, counts.totals, **settings)


def test_eq7_pmi_of_two_words_by_order_and_pooled():
    # Words: 1 thrice, 2 twice, 3 once, of six; of three bigrams 1 2 is two, 1 3 one. With L = 2 the importance of a
    # word is the PMI with its only neighbour.
    #   PMI(1, 2) = log (2/3) / (3/6 x 2/6) = log 4        PMI(1, 3) = log (1/3) / (3/6 x 1/6) = log 4
    found = ami_of([[1, 2], [1, 2], [1, 3]], window=2)
    assert found == pytest.approx([LOG(4)] * 6)
    # Six words and three bigrams: PMI(1, 2) = log (2/9) / (3/9 x 2/9) = log 3, PMI(1, 3) = log
    # (1/9) / (3/9 x 1/9).
    found = ami_of([[1, 2], [1, 2], [1, 3]], window=2, normaliser="pooled")
    assert found == pytest.approx([LOG(3)] * 6)


def slow(counts, segments, totals, pmi, normaliser, edges):
    """Equations 7 and 8, over all ways of cutting."""
    window = len(counts)
    norms = totals if normaliser == "order" else [sum(totals)] * window

    def log_p(begin, end):
        return LOG(counts[end - begin - 1][begin] / norms[end - begin - 1])

    def value(begin, end):
        ways = [
            sum(log_p(a, b) for a, b in itertools.pairwise([begin, *cuts, end]))
            for number in range(1, end - begin)
            for cuts in itertools.combinations(range(begin + 1, end), number)
        ]
        return log_p(begin, end) - (max(ways) if pmi == "min" else ways[-1])

    found = []
    for first, last in itertools.pairwise(segments):
        for word in range(first, last):
            sides = [value(word - j, word + 1) for j in range(1, window) if word - j >= first]
            sides += [value(word, word + j + 1) for j in range(1, window) if word + j < last]
            found.append(
                sum(sides) / (window - 1)
                if edges == "literal"
                else 2 * sum(sides) / max(1, len(sides))
            )
    return found


@pytest.mark.parametrize("pmi", ("min", "product"))
@pytest.mark.parametrize("normaliser", ("order", "pooled"))
@pytest.mark.parametrize("edges", ("literal", "mean"))
@pytest.mark.parametrize("window", [2, 4])
def test_eq8_beside_the_slow_form(pmi, normaliser, edges, window):
    tokens = random_tokens(1, passages=25)
    counted = count(tokens, window=window)
    settings = {"pmi": pmi, "normaliser": normaliser, "edges": edges}
    counts, totals = naive(tokens, "word", window)
    found = ami.ami(counted.counts, counted.totals, **settings)
    assert found == pytest.approx(
        slow(counts.tolist(), counted.segments.tolist(), totals, **settings), abs=1e-5
    )


def test_a_word_gives_its_importance_to_its_pieces_if_it_was_counted():
    tokens = tokens_of(
        [([1, 9], [2, 10, 11, 3]), ([9], [])]
    )  # a segment's first piece begins a word
    values = np.array([0.5, -1.25, 2, 1e6], np.float32)
    found = words.broadcast(values, tokens, "word")
    assert found.dtype == np.float16
    assert found.tolist() == [0.5, 0.5, -1.25, -1.25, -1.25, 2, words.LARGEST]
    assert words.broadcast(np.arange(7), tokens, "wordpiece").tolist() == list(range(7))


@pytest.mark.parametrize("unit", ["word", "wordpiece"])
def test_the_table_scores_the_text_of_its_collection_alike(unit, tmp_path, monkeypatch):
    """The importance is the same by blocks of passages; it finds its n-grams where both move."""
    tokens = random_tokens(3)
    one = tmp_path / "one"
    ngrams.count_to(one / "ngrams", tokens, unit=unit, window=4)
    counted = read_counts(one / "ngrams")
    settings = {"pmi": "product", "normaliser": "pooled", "edges": "mean"}
    monkeypatch.setattr(words, "BLOCK", 50)
    ami.estimate(one / "importance", one / "ngrams", tokens, settings)
    expected = ami.ami(counted.counts, counted.totals, **settings)
    importance = one.rename(tmp_path / "two") / "importance"
    values = ami.read_values(importance)
    assert np.array_equal(values, words.broadcast(expected, tokens, unit))
    assert ngrams.unit_of(importance) == unit
    table = ami.Table.read(importance)
    segments = [tokens.ids[begin:end] for begin, end in itertools.pairwise(tokens.edges.tolist())]
    found = [table.score(ids, WORD_STARTS) for ids in segments]
    assert np.concatenate(found) == pytest.approx(expected, abs=1e-6)


def test_ngrams_of_new_text_that_the_collection_does_not_repeat_count_once(tmp_path):
    tokens = tokens_of([([], [1, 2, 5]), ([], [1, 2]), ([], [3])])
    ngrams.count_to(tmp_path / "ngrams", tokens, window=2)
    settings = {"pmi": "min", "normaliser": "order", "edges": "literal"}
    ami.estimate(tmp_path / "importance", tmp_path / "ngrams", tokens, settings)
    table = ami.Table.read(tmp_path / "importance")
    # Six words and three bigrams: PMI(1, new) = log (1/3) / (2/6 x 1/6); the new word 7+9 has two
    # pieces, and PMI(1, 2) = log (2/3) / (2/6 x 2/6).
    assert table.score(np.array([1, 7, 9]), WORD_STARTS) == pytest.approx([LOG(6)] * 2)
    assert table.score(np.array([1, 2]), WORD_STARTS) == pytest.approx([LOG(6)] * 2)


def test_words_are_shaded_and_what_separates_them_is_not(tmp_path):
    word_piece().save_pretrained(tmp_path / "tokenizer")
    passages = pa.table({"title": [""] * 2, "text": TEXTS})
    tokens = Tokeniser(tmp_path / "tokenizer").tokens(passages)
    ngrams.count_to(tmp_path / "ngrams", tokens, window=4)
    settings = {"pmi": "min", "normaliser": "order", "edges": "literal"}
    ami.estimate(tmp_path / "importance", tmp_path / "ngrams", tokens, settings)
    shades = shading.Shades(tmp_path / "importance", tmp_path / "tokenizer")
    importance = {word.text: word.importance for word in shades.words(TEXTS[0])}
    spans = shades.spans(f" {TEXTS[0]} ")
    assert "".join(span.text for span in spans) == f" {TEXTS[0]} "
    shaded = {span.text.lower(): span.shade for span in spans if span.shade}
    darkest = max(importance, key=importance.get)
    assert shaded[darkest] == 5 and shaded.keys() <= importance.keys()
    share = importance["decoder"] / importance[darkest]
    assert shaded["decoder"] == round(5 * share) and 0 < share < 1
    assert shading.shades([0.2, 0.12, -1]) == [5, 3, 0]
